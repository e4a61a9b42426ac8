// Boxes to work records, and the root's centroid extents: see bvh/gpu/binned_sah_stages.py.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"

@group(0) @binding(0) var<uniform> parameters: SahParameters;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read> boxes: array<u32>;
@group(0) @binding(3) var<storage, read_write> work: array<vec4u>;
@group(0) @binding(4) var<storage, read_write> extents: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> tiles: array<SahTile>;
@group(0) @binding(6) var<storage, read_write> heads: array<SahHead>;
@group(0) @binding(7) var<storage, read_write> children: array<vec2i>;
@group(0) @binding(8) var<storage, read_write> bounds: array<u32>;

var<workgroup> found: array<atomic<u32>, 6>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let kept = state[0];
    if (lane < 6u) { atomicStore(&found[lane], select(0u, 0xffffffffu, lane < 3u)); }
    workgroupBarrier();
    for (var i = group.x * 256u + lane; i < kept; i += groups.x * 256u) {
        let at = 6u * i;
        let low = vec3f(bitcast<f32>(boxes[at]), bitcast<f32>(boxes[at + 1u]),
            bitcast<f32>(boxes[at + 2u]));
        let high = vec3f(bitcast<f32>(boxes[at + 3u]), bitcast<f32>(boxes[at + 4u]),
            bitcast<f32>(boxes[at + 5u]));
        let box = OrderedBox(ordered(low), ordered(high));
        work[2u * i] = vec4u(box.low, box.high.x);
        work[2u * i + 1u] = vec4u(box.high.yz, i, 0u);
        let only = i == 0u && kept >= 2u && kept <= SWEEP;
        heads[i] = SahHead(select(0u, kept, only), select(0u, 1u, only), 0u);
        if (i * SAH_TILE < kept) { tiles[i] = SahTile(0u, 0u); }
        let centre = ordered(centre_of(box));
        for (var axis = 0u; axis < 3u; axis += 1u) {
            atomicMin(&found[axis], centre[axis]);
            atomicMax(&found[3u + axis], centre[axis]);
        }
    }
    workgroupBarrier();
    if (lane < 3u) { atomicMin(&extents[lane], atomicLoad(&found[lane])); }
    if (lane >= 3u && lane < 6u) { atomicMax(&extents[lane], atomicLoad(&found[lane])); }
    if (group.x == 0u && lane == 0u && kept < 2u) {
        children[0] = vec2i(select(EMPTY_CHILD, -1, kept == 1u), EMPTY_CHILD);
        for (var k = 0u; k < 6u; k += 1u) {
            let nothing = select(0xff7fffffu, 0x7f7fffffu, k < 3u);
            if (kept == 1u) { bounds[k] = boxes[k]; } else { bounds[k] = nothing; }
        }
    }
}
