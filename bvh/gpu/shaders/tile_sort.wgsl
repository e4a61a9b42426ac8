// One workgroup: keys of SEGMENT instances, sorted. See bvh/gpu/tlas_sort.py.

#import bvh.gpu.build_records
#import bvh.gpu.cluster_records
#import bvh.gpu.tlas_records
#import bvh.gpu.tlas_sort
#import "bvh/gpu/shaders/box.wgsl"
#import $lanes

@group(0) @binding(0) var<uniform> parameters: TlasParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(3) var<storage, read> summaries: array<InstanceGroup>;
@group(0) @binding(4) var<storage, read_write> tile_keys: array<u32>;
@group(0) @binding(5) var<storage, read_write> tile_items: array<u32>;

var<workgroup> lows: array<vec3f, LANES>;
var<workgroup> highs: array<vec3f, LANES>;
var<workgroup> shared_keys: array<u32, 512>;
var<workgroup> items: array<u32, 512>;

struct Grid {
    low: vec3f,
    normalise: f32,
    scale: f32,
}

fn rounded(v: vec3f) -> vec3f {
    return bitcast<vec3f>(bitcast<vec3u>(v) ^ vec3u(parameters.zero));
}

// As in grid.wgsl.
fn make_grid(low: vec3f, high: vec3f, kept: u32) -> Grid {
    let size = high - low;
    let pattern = bitcast<u32>(max(max(size.x, size.y), size.z));
    if (kept == 0u || pattern >> 23u == 0u) { return Grid(low, 0.0, 0.0); }
    let normalise = bitcast<f32>((254u - (pattern >> 23u)) << 23u);
    let reciprocal = 0x1000000u / (((pattern >> 12u & 0x7ffu) | 0x800u) + 1u);
    return Grid(low, normalise, f32(reciprocal) * bitcast<f32>((127u + GRID_BITS - 13u) << 23u));
}

// As in morton.wgsl.
fn make_key(at: u32, grid: Grid) -> u32 {
    let box = make_box(boxes[3u * at], boxes[3u * at + 1u], boxes[3u * at + 2u]);
    let centre = rounded(box.low * 0.125 + box.high * 0.125);
    let extent = box.high * 0.25 - box.low * 0.25;
    let widest = bitcast<f32>(min(254u, 255u - (bitcast<u32>(grid.normalise) >> 23u)) << 23u);
    let size = clamp(max(max(extent.x, extent.y), extent.z), 0.0, widest);
    let place = vec4f(rounded(centre - grid.low), size) * grid.normalise;
    let cell = min(vec4u(place * grid.scale), vec4u((1u << GRID_BITS) - 1u));
    var key = 0u;
    for (var level = 0u; level < GRID_BITS; level += 1u) {
        let bit = cell >> vec4u(GRID_BITS - 1u - level) & vec4u(1u);
        key = key << 3u | bit.x << 2u | bit.y << 1u | bit.z;
        if (level < SIZE_BITS) { key = key << 1u | bit.w; }
    }
    return key;
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = SEGMENT * group.x;
    let kept = state[0].kept;
    var low = vec3f(LARGEST);
    var high = vec3f(-LARGEST);
    for (var i = lane; 256u * i < parameters.bound; i += LANES) {
        low = min(low, summaries[i].low);
        high = max(high, summaries[i].high);
    }
    lows[lane] = low;
    highs[lane] = high;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if (lane < width) {
            lows[lane] = min(lows[lane], lows[lane + width]);
            highs[lane] = max(highs[lane], highs[lane + width]);
        }
        workgroupBarrier();
    }
    let grid = make_grid(lows[0], highs[0], kept);
    for (var i = lane; i < SEGMENT; i += LANES) {
        var key = 0xffffffffu;
        if (first + i < kept) { key = make_key(first + i, grid); }
        shared_keys[i] = key;
        items[i] = i;
    }
    workgroupBarrier();
    // Bitonic, by key and then by place.
    for (var span = 2u; span <= SEGMENT; span *= 2u) {
        for (var stride = span / 2u; stride > 0u; stride /= 2u) {
            for (var k = lane; k < SEGMENT / 2u; k += LANES) {
                let i = 2u * k - (k & (stride - 1u));
                let j = i + stride;
                let a = vec2u(shared_keys[i], items[i]);
                let b = vec2u(shared_keys[j], items[j]);
                let above = a.x > b.x || (a.x == b.x && a.y > b.y);
                if (above == ((i & span) == 0u)) {
                    shared_keys[i] = b.x;
                    shared_keys[j] = a.x;
                    items[i] = b.y;
                    items[j] = a.y;
                }
            }
            workgroupBarrier();
        }
    }
    for (var i = lane; i < SEGMENT; i += LANES) {
        tile_keys[first + i] = shared_keys[i];
        tile_items[first + i] = first + items[i];
    }
}
