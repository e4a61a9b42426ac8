// One workgroup: a segment's boxes in Morton order. See bvh/gpu/small_sort.py.

#import bvh.gpu.build_records
#import bvh.gpu.cluster_records
#import "bvh/gpu/shaders/box.wgsl"
#import $lanes

@group(0) @binding(0) var<uniform> parameters: ClusterParameters;
@group(0) @binding(1) var<storage, read> segments: array<ClusterSegment>;
@group(0) @binding(2) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> order: array<u32>;

const GRID_BITS = 10u;

var<workgroup> lows: array<vec3f, LANES>;
var<workgroup> highs: array<vec3f, LANES>;
var<workgroup> keys: array<u32, 512>;
var<workgroup> items: array<u32, 512>;

fn rounded(v: vec3f) -> vec3f {
    return bitcast<vec3f>(bitcast<vec3u>(v) ^ vec3u(parameters.zero));
}

// An eighth of min + max, so that nothing overflows.
fn centre(at: u32) -> vec3f {
    let box = make_box(boxes[3u * at], boxes[3u * at + 1u], boxes[3u * at + 2u]);
    return rounded(box.low * 0.125 + box.high * 0.125);
}

fn spread(value: u32) -> u32 {
    var bits = value;
    bits = (bits | bits << 16u) & 0x030000ffu;
    bits = (bits | bits << 8u) & 0x0300f00fu;
    bits = (bits | bits << 4u) & 0x030c30c3u;
    return (bits | bits << 2u) & 0x09249249u;
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let segment = group.y * groups.x + group.x;
    if (segment >= parameters.segments) { return; }
    let first = segments[segment].first;
    let count = segments[segment].count;
    var low = vec3f(LARGEST);
    var high = vec3f(-LARGEST);
    for (var i = lane; i < count; i += LANES) {
        let mine = centre(first + i);
        low = min(low, mine);
        high = max(high, mine);
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
    // A cubic grid over the longest axis, found as in grid.wgsl: no division of floats.
    low = lows[0];
    let size = highs[0] - low;
    let pattern = bitcast<u32>(max(max(size.x, size.y), size.z));
    var normalise = 0.0;
    var scale = 0.0;
    if (count > 0u && pattern >> 23u > 0u) {
        normalise = bitcast<f32>((254u - (pattern >> 23u)) << 23u);
        let reciprocal = 0x1000000u / (((pattern >> 12u & 0x7ffu) | 0x800u) + 1u);
        scale = f32(reciprocal) * bitcast<f32>((127u + GRID_BITS - 13u) << 23u);
    }
    for (var i = lane; i < SEGMENT; i += LANES) {
        var key = 0xffffffffu;
        if (i < count) {
            let place = rounded(rounded(centre(first + i) - low) * normalise);
            let cell = min(vec3u(place * scale), vec3u((1u << GRID_BITS) - 1u));
            key = spread(cell.x) << 2u | spread(cell.y) << 1u | spread(cell.z);
        }
        keys[i] = key;
        items[i] = i;
    }
    workgroupBarrier();
    // Bitonic, by key and then by place, up to the power of two that holds them all.
    for (var span = 2u; span < 2u * count; span *= 2u) {
        for (var stride = span / 2u; stride > 0u; stride /= 2u) {
            for (var k = lane; k < SEGMENT / 2u; k += LANES) {
                let i = 2u * k - (k & (stride - 1u));
                let j = i + stride;
                if (i >= 2u * count) { break; }
                let above = keys[i] > keys[j] || (keys[i] == keys[j] && items[i] > items[j]);
                if (above == ((i & span) == 0u)) {
                    let key = keys[i];
                    keys[i] = keys[j];
                    keys[j] = key;
                    let item = items[i];
                    items[i] = items[j];
                    items[j] = item;
                }
            }
            workgroupBarrier();
        }
    }
    for (var i = lane; i < count; i += LANES) { order[first + i] = first + items[i]; }
}
