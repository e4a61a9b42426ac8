// Every node's parent, and what the rounds start from: see bvh/gpu/reinsertion.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> children: array<vec2i>;
@group(0) @binding(3) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> parents: array<i32>;
@group(0) @binding(5) var<storage, read_write> moving: array<u32>;
@group(0) @binding(6) var<storage, read_write> marks: array<u32>;
@group(0) @binding(7) var<storage, read_write> progress: array<Progress>;

// A power of two: sides become at most 2 (8 where the root's is beyond 2^126).
fn scale_of(box: Box) -> f32 {
    let side = min(box.high - box.low, vec3f(LARGEST));
    let exponent = bitcast<u32>(max(max(side.x, side.y), side.z)) >> 23u;
    return bitcast<f32>((254u - clamp(exponent, 1u, 252u)) << 23u);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = flat_index(group, groups, lane);
    let kept = state[0].kept;
    if (index == 0u) {
        let root = make_box(bounds[0], bounds[1], bounds[2]);
        let scale = scale_of(root);
        let least = LEAST_GAIN * scaled_area(root, scale, parameters.zero);
        // Fewer than four leaves have one shape only.
        let done = select(0u, 1u, kept < 4u);
        progress[0] = Progress(scale, least, 0.0, 0.0, done, NO_VERDICT, 0u, 0u, 0u, 0u);
        parents[0] = -1;
    }
    if (index >= kept) { return; }
    moving[parameters.nodes + index] = 0u;
    if (index + 1u >= kept) { return; }
    moving[index] = 0u;
    marks[index] = 0u;
    let pair = children[index];
    parents[place(pair.x, parameters.nodes)] = i32(index);
    parents[place(pair.y, parameters.nodes)] = i32(index);
}
