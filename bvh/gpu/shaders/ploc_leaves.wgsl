// A cluster of every box, in Morton order: see bvh/gpu/ploc_stages.py.

#import bvh.gpu.build_records
#import bvh.gpu.ploc_stages
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(2) var<storage, read> payload: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> clusters: array<Cluster>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let place = flat_index(group, groups, lane);
    let kept = state[0].kept;
    if (place == 0u) { counts[0] = (kept + CHUNK - 1u) / CHUNK; }
    if (place >= kept) { return; }
    if (place % CHUNK == 0u) { counts[1u + place / CHUNK] = min(kept - place, CHUNK); }
    let primitive = payload[place];
    let at = 3u * primitive;
    let box = make_box(boxes[at], boxes[at + 1u], boxes[at + 2u]);
    clusters[place] = Cluster(box.low, ~i32(primitive), box.high, place << HEIGHT_BITS);
}
