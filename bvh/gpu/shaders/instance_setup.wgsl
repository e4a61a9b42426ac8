// An instance's guest bytes and its world box, or why it has none: see bvh/gpu/tlas_setup.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.tlas_records
#import "bvh/gpu/shaders/two_float.wgsl"

@group(0) @binding(0) var<uniform> parameters: TlasParameters;
@group(0) @binding(1) var<storage, read> instance_count: array<u32>;
@group(0) @binding(2) var<storage, read> instances: array<InstanceRecord>;
@group(0) @binding(3) var<storage, read> blases: array<BlasRecord>;
@group(0) @binding(4) var<storage, read_write> placed: array<PlacedInstance>;
@group(0) @binding(5) var<storage, read_write> summaries: array<InstanceGroup>;
@group(0) @binding(6) var<storage, read_write> report: array<u32>;

const PADDING = 20.0 * 0x1p-24;
const SMALLEST_DETERMINANT = 0x1p-20;
const FARTHEST = 3e38;

struct Affine {
    rows: array<vec3f, 3>,
    offset: vec3f,
    sound: bool,
}

struct Range {
    low: vec3f,
    high: vec3f,
}

fn exponents(v: vec3f) -> vec3u {
    return bitcast<vec3u>(v) >> vec3u(23u) & vec3u(0xffu);
}

// Powers of two that bring numbers of these exponents to [1, 2) (to [2, 4) the very largest).
fn factors(exponent: vec3u) -> vec3f {
    return bitcast<vec3f>((vec3u(254u) - clamp(exponent, vec3u(1u), vec3u(253u))) << vec3u(23u));
}

fn largest(v: vec3f) -> u32 {
    let e = exponents(v);
    return max(max(e.x, e.y), e.z);
}

// The inverse of x -> rows x + offset. Rows and columns are scaled by powers of two, so that
// scales however different lose nothing.
fn inverse(map: Affine) -> Affine {
    let columns = max(max(exponents(map.rows[0]), exponents(map.rows[1])), exponents(map.rows[2]));
    let by_column = factors(columns);
    var a = map.rows[0] * by_column;
    var b = map.rows[1] * by_column;
    var c = map.rows[2] * by_column;
    let rows = vec3u(largest(a), largest(b), largest(c));
    let by_row = factors(rows);
    a *= by_row.x;
    b *= by_row.y;
    c *= by_row.z;
    var result = Affine(array<vec3f, 3>(), vec3f(0.0), false);
    if (any(columns == vec3u(0u)) || any(rows == vec3u(0u))) { return result; }
    // Loops that the compiler cannot unroll, here and around: the code read for the first time costs
    // more than running it. Rows and columns go round in turn.
    var x: Two;
    var y: Two;
    var z: Two;
    for (var i = 0u; i < 3u + parameters.zero; i += 1u) {
        x = y;
        y = z;
        z = two_cross(b, c);
        let first = a;
        a = b;
        b = c;
        c = first;
    }
    let determinant = total(multiply(Two(a, vec3f(0.0)), x));
    if (!(abs(determinant.high.x) >= SMALLEST_DETERMINANT)) { return result; }
    let factor = reciprocal(determinant);
    let scaled = map.offset * by_row;
    let exponent = vec3u(clamp(largest(scaled), 1u, 253u));
    var t = scaled * factors(exponent);
    // x, y and z become columns of the inverse of the scaled matrix.
    var moved: Two;
    for (var i = 0u; i < 3u + parameters.zero; i += 1u) {
        let column = multiply(x, factor);
        let one = multiply(column, Two(t.xxx, vec3f(0.0)));
        if (i == 0u) { moved = one; } else { moved = add(moved, one); }
        x = y;
        y = z;
        z = column;
        t = t.yzx;
    }
    result.offset = -kept(kept(moved.high * by_column) * bitcast<vec3f>(exponent << vec3u(23u)));
    for (var i = 0u; i < 3u; i += 1u) {
        let row = vec3f(x.high[i], y.high[i], z.high[i]) * by_row;
        result.rows[i] = kept(row * by_column[i]);
    }
    let most = max(max(largest(result.rows[0]), largest(result.rows[1])),
        max(largest(result.rows[2]), largest(result.offset)));
    result.sound = most < 0xffu;
    return result;
}

fn sum_of(row: vec3f, v: vec3f) -> f32 {
    let products = kept(row * v);
    let two = kept(vec3f(products.x + products.y)).x;
    return kept(vec3f(two + products.z)).x;
}

// The box around the image of a box, with room for what rounding does here and in traversal.
fn image(map: Affine, low: vec3f, high: vec3f) -> Range {
    let centre = kept(low * 0.5 + high * 0.5);
    let half_size = kept(high * 0.5 - low * 0.5);
    let far = kept(abs(centre) + half_size);
    var out: Range;
    for (var i = 0u; i < 3u; i += 1u) {
        let middle = kept(vec3f(sum_of(map.rows[i], centre) + map.offset[i])).x;
        let reach = sum_of(abs(map.rows[i]), half_size);
        let size = kept(vec3f(sum_of(abs(map.rows[i]), far) + abs(map.offset[i])));
        let room = kept(vec3f(reach + kept(size * PADDING).x)).x;
        out.low[i] = middle - room;
        out.high[i] = middle + room;
    }
    return out;
}

// Zeros get a positive sign, which a minimum or maximum need not keep.
fn unsigned_zero(v: vec3f) -> vec3f {
    let bits = bitcast<vec3u>(v);
    return bitcast<vec3f>(select(bits, vec3u(0u), bits == vec3u(0x80000000u)));
}

fn is_identity(map: Affine) -> bool {
    return all(map.rows[0] == vec3f(1.0, 0.0, 0.0)) && all(map.rows[1] == vec3f(0.0, 1.0, 0.0))
        && all(map.rows[2] == vec3f(0.0, 0.0, 1.0)) && all(map.offset == vec3f(0.0));
}

fn flag_bits(flags: u32) -> u32 {
    return select(0u, INSTANCE_FORCE_OPAQUE, (flags & 1u) != 0u)
        | select(INSTANCE_NO_FORCE_NON_OPAQUE, 0u, (flags & 2u) != 0u)
        | select(0u, INSTANCE_DISABLE_FACING_CULL, (flags & 4u) != 0u)
        | select(0u, INSTANCE_FLIP_FACING, (flags & 8u) != 0u);
}

fn put_matrix(index: u32, first: u32, map: Affine) {
    for (var i = 0u; i < 3u; i += 1u) {
        let row = vec4f(map.rows[i], map.offset[i]);
        for (var j = 0u; j < 4u; j += 1u) {
            placed[index].node[first + 4u * i + j] = bitcast<u32>(row[j]);
        }
    }
}

// The world box of a BLAS's, from what its rays are mapped by forward and back again.
fn world_box(forward: Affine, recovered: Affine, low: vec3f, high: vec3f) -> Range {
    var map = forward;
    var box: Range;
    for (var i = 0u; i < 2u + parameters.zero; i += 1u) {
        let one = image(map, low, high);
        if (i == 0u) { box = one; }
        box.low = min(box.low, one.low);
        box.high = max(box.high, one.high);
        map = recovered;
    }
    return Range(unsigned_zero(box.low), unsigned_zero(box.high));
}

struct Placed {
    box: Range,
    removed: u32, // why, or 0
}

// Writes an instance of those given.
fn place(index: u32) -> Placed {
    if (index >= instance_count[0]) {
        placed[index].removed = NONE;
        put_box(index, Range(vec3f(0.0), vec3f(0.0)));
        return Placed(Range(vec3f(0.0), vec3f(0.0)), NONE);
    }
    var removed = 0u;
    var box = Range(vec3f(0.0), vec3f(0.0));
    let given = instances[index];
    let rows = array<vec3f, 3>(given.row_0.xyz, given.row_1.xyz, given.row_2.xyz);
    let forward = Affine(rows, vec3f(given.row_0.w, given.row_1.w, given.row_2.w), true);
    let most = max(max(largest(rows[0]), largest(rows[1])),
        max(largest(rows[2]), largest(forward.offset)));
    if (given.blas >= parameters.blas_count) {
        removed = UNKNOWN_BLAS;
    } else if (most == 0xffu) {
        removed = NONFINITE;
    } else {
        let blas = blases[given.blas];
        var backward: Affine;
        var recovered = forward;
        var sound = true;
        for (var i = 0u; i < 2u + parameters.zero; i += 1u) {
            recovered = inverse(recovered);
            if (i == 0u) { backward = recovered; }
            sound = sound && recovered.sound;
        }
        if (!sound) {
            removed = SINGULAR;
        } else if (!(blas.low.x <= blas.high.x)) {
            removed = EMPTY_BLAS;
        } else {
            box = Range(blas.low, blas.high);
            if (!is_identity(forward)) {
                box = world_box(forward, recovered, blas.low, blas.high);
            }
            let reach = max(abs(box.low), abs(box.high));
            if (!all(reach <= vec3f(FARTHEST))) { removed = BEYOND; }
        }
        let unit = blas.base_unit + HEADER_BYTES / UNIT_BYTES;
        placed[index].node[INSTANCE_BLAS_WORD] = unit << 3u | NODE_BOX_FP32;
        placed[index].node[INSTANCE_BLAS_WORD + 1u] = unit >> 29u;
        placed[index].node[INSTANCE_CUSTOM_WORD] =
            (given.custom_index & INSTANCE_INDEX_MASK) | given.mask << INSTANCE_MASK_SHIFT;
        placed[index].node[INSTANCE_OBJECT_WORD] =
            (given.first_object & INSTANCE_INDEX_MASK) | flag_bits(given.flags);
        placed[index].node[INSTANCE_ID_WORD] = index;
        placed[index].node[INSTANCE_BLAS_BASE_WORD] = blas.base_unit;
        placed[index].node[INSTANCE_GEOMETRY_COUNT_WORD] = blas.geometry_count;
        placed[index].node[INSTANCE_RESERVED_WORD] = 0u;
        put_matrix(index, INSTANCE_WORLD_TO_OBJECT_WORD, backward);
        put_matrix(index, INSTANCE_OBJECT_TO_WORLD_WORD, forward);
    }
    placed[index].removed = removed;
    put_box(index, box);
    return Placed(box, removed);
}

fn put_box(index: u32, box: Range) {
    for (var axis = 0u; axis < 3u; axis += 1u) {
        placed[index].low[axis] = box.low[axis];
        placed[index].high[axis] = box.high[axis];
    }
}

var<workgroup> kept_here: atomic<u32>;
var<workgroup> lows: array<vec3f, 256>;
var<workgroup> highs: array<vec3f, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group.y * groups.x + group.x;
    let index = number * 256u + lane;
    if (index < REASONS) {
        report[index] = 0u;
        report[REASONS + index] = NONE;
    }
    if (lane == 0u) { atomicStore(&kept_here, 0u); }
    workgroupBarrier();
    var centres = Range(vec3f(LARGEST), vec3f(-LARGEST));
    if (index < parameters.bound) {
        let placed = place(index);
        if (placed.removed == 0u) {
            atomicAdd(&kept_here, 1u);
            let centre = placed.box.low * 0.125 + placed.box.high * 0.125;
            centres = Range(centre, centre);
        }
    }
    lows[lane] = centres.low;
    highs[lane] = centres.high;
    workgroupBarrier();
    for (var width = 128u; width > 0u; width /= 2u) {
        if (lane < width) {
            centres.low = min(centres.low, lows[lane + width]);
            centres.high = max(centres.high, highs[lane + width]);
            lows[lane] = centres.low;
            highs[lane] = centres.high;
        }
        workgroupBarrier();
    }
    if (lane == 0u && index < parameters.bound) {
        summaries[number] =
            InstanceGroup(centres.low, atomicLoad(&kept_here), centres.high, 0u);
    }
}
