// One workgroup: the scene's centroid box and the grid over it. See bvh/gpu/scene_box.py.

#import bvh.gpu.build_records

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> partials: array<ScenePartial>;
@group(0) @binding(2) var<storage, read_write> state: array<BuildState>;
@group(0) @binding(3) var<storage, read_write> deepest: array<u32>; // one word an attempt

var<workgroup> shared_partials: array<ScenePartial, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    let tiles = (parameters.count + 2047u) / 2048u;
    var mine = ScenePartial(vec3f(LARGEST), 0u, vec3f(-LARGEST), 0u);
    for (var tile = lane; tile < tiles; tile += 256u) {
        let other = partials[tile];
        mine.low = min(mine.low, other.low);
        mine.high = max(mine.high, other.high);
        mine.degenerate += other.degenerate;
        mine.nonfinite += other.nonfinite;
    }
    shared_partials[lane] = mine;
    workgroupBarrier();
    for (var width = 128u; width > 0u; width /= 2u) {
        if (lane < width) {
            let other = shared_partials[lane + width];
            mine.low = min(mine.low, other.low);
            mine.high = max(mine.high, other.high);
            mine.degenerate += other.degenerate;
            mine.nonfinite += other.nonfinite;
            shared_partials[lane] = mine;
        }
        workgroupBarrier();
    }
    if (lane != 0u) { return; }
    deepest[0] = 0u;
    deepest[1] = 0u;
    let kept = parameters.count - mine.degenerate - mine.nonfinite;
    var normalise = 0u;
    var scale = 0.0;
    if (kept > 0u) {
        let size = mine.high - mine.low;
        let pattern = bitcast<u32>(max(max(size.x, size.y), size.z));
        let exponent = pattern >> 23u;
        if (exponent > 0u) {
            normalise = (254u - exponent) << 23u;
            let reciprocal = 0x1000000u / (((pattern >> 12u & 0x7ffu) | 0x800u) + 1u);
            scale = f32(reciprocal) * bitcast<f32>((127u + parameters.grid_bits - 13u) << 23u);
        }
    }
    state[0] = BuildState(mine.low, bitcast<f32>(normalise), scale, kept, mine.degenerate,
        mine.nonfinite);
}
