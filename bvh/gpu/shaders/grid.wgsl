// One workgroup: the scene's centroid box and the grid over it. See bvh/gpu/scene_box.py.

#import bvh.gpu.build_records

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> partials: array<ScenePartial>;
@group(0) @binding(2) var<storage, read_write> state: array<BuildState>;
@group(0) @binding(3) var<storage, read_write> sort_count: array<u32>;

var<workgroup> shared_partials: array<ScenePartial, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    let tiles = (parameters.count + 2047u) / 2048u;
    var mine = ScenePartial(vec3f(LARGEST), 0u, vec3f(-LARGEST), 0u);
    for (var tile = lane; tile < tiles; tile += 256u) {
        let other = partials[tile];
        mine.low = min(mine.low, other.low);
        mine.high = max(mine.high, other.high);
    }
    shared_partials[lane] = mine;
    workgroupBarrier();
    for (var width = 128u; width > 0u; width /= 2u) {
        if (lane < width) {
            let other = shared_partials[lane + width];
            mine.low = min(mine.low, other.low);
            mine.high = max(mine.high, other.high);
            shared_partials[lane] = mine;
        }
        workgroupBarrier();
    }
    if (lane != 0u) { return; }
    var normalise = 0u;
    var scale = 0.0;
    if (state[0].kept > 0u) {
        let size = mine.high - mine.low;
        let pattern = bitcast<u32>(max(max(size.x, size.y), size.z));
        let exponent = pattern >> 23u;
        if (exponent > 0u) {
            normalise = (254u - exponent) << 23u;
            let reciprocal = 0x1000000u / (((pattern >> 12u & 0x7ffu) | 0x800u) + 1u);
            scale = f32(reciprocal) * bitcast<f32>((127u + parameters.grid_bits - 13u) << 23u);
        }
    }
    sort_count[0] = min(state[0].kept, parameters.count);
    state[0].low = mine.low;
    state[0].normalise = bitcast<f32>(normalise);
    state[0].scale = scale;
}
