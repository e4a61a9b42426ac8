// One reference a block, in the work or, of a small root, finished: see
// bvh/gpu/spatial_stages.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read> boxes: array<u32>;
@group(0) @binding(3) var<storage, read_write> tiles: array<SahTile>;
@group(0) @binding(4) var<storage, read_write> work: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> done: array<vec4u>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let kept = state[0];
    for (var i = group.x * 256u + lane; i < kept; i += groups.x * 256u) {
        let at = 6u * i;
        let low = ordered(bitcast<vec3f>(vec3u(boxes[at], boxes[at + 1u], boxes[at + 2u])));
        let high = ordered(bitcast<vec3f>(vec3u(boxes[at + 3u], boxes[at + 4u], boxes[at + 5u])));
        let a = vec4u(low, high.x);
        let b = vec4u(high.yz, i, 0u);
        if (kept > SPLIT_ABOVE) {
            work[2u * i] = a;
            work[2u * i + 1u] = b;
        } else {
            done[2u * i] = a;
            done[2u * i + 1u] = b;
        }
        if (i * SAH_TILE < kept) { tiles[i].node = 0u; }
    }
}
