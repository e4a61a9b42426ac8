// Instances that are kept close up; the rest is counted: see bvh/gpu/tlas_setup.py.

#import bvh.gpu.build_records
#import bvh.gpu.tlas_records
#import bvh.gpu.cluster_records

@group(0) @binding(0) var<uniform> parameters: TlasParameters;
@group(0) @binding(1) var<storage, read> placed: array<PlacedInstance>;
@group(0) @binding(2) var<storage, read> places: array<u32>;
@group(0) @binding(3) var<storage, read_write> boxes: array<f32>;
@group(0) @binding(4) var<storage, read_write> leaves: array<u32>;
@group(0) @binding(5) var<storage, read_write> state: array<BuildState>;
@group(0) @binding(6) var<storage, read_write> segments: array<ClusterSegment>;
@group(0) @binding(7) var<storage, read_write> report: array<atomic<u32>>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + lane;
    let bound = parameters.bound;
    var kept = 0u;
    if (bound > 0u) {
        kept = places[bound - 1u] + select(0u, 1u, placed[bound - 1u].removed == 0u);
    }
    if (index == 0u) {
        state[0].kept = kept;
        state[0].triangles = kept;
        state[0].degenerate = 0u;
        state[0].nonfinite = 0u;
    }
    if (index <= parameters.segments) {
        let top = index == parameters.segments;
        let first = select(min(SEGMENT * index, kept), bound, top);
        segments[index].first = select(SEGMENT * index, bound, top);
        segments[index].count = select(min(kept - first, SEGMENT), 0u, top);
    }
    if (index >= bound) { return; }
    let removed = placed[index].removed;
    if (removed >= REASONS) { return; }
    if (removed != 0u) {
        atomicAdd(&report[removed], 1u);
        atomicMin(&report[REASONS + removed], index);
        return;
    }
    let at = places[index];
    if (at == 0u) { atomicMin(&report[REASONS], index); }
    if (at + 1u == kept) { atomicStore(&report[0], kept); }
    for (var axis = 0u; axis < 3u; axis += 1u) {
        boxes[6u * at + axis] = placed[index].low[axis];
        boxes[6u * at + 3u + axis] = placed[index].high[axis];
    }
    for (var k = 0u; k < 32u; k += 1u) { leaves[32u * at + k] = placed[index].node[k]; }
}
