// Instances that are kept close up; the rest is counted: see bvh/gpu/tlas_setup.py.

#import bvh.gpu.build_records
#import bvh.gpu.tlas_records
#import bvh.gpu.cluster_records

@group(0) @binding(0) var<uniform> parameters: TlasParameters;
// Ten a PlacedInstance: node in eight; low, high; the rest of high, removed.
@group(0) @binding(1) var<storage, read> placed: array<vec4u>;
@group(0) @binding(2) var<storage, read> summaries: array<InstanceGroup>;
@group(0) @binding(3) var<storage, read_write> boxes: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> leaves: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> state: array<BuildState>;
@group(0) @binding(6) var<storage, read_write> segments: array<ClusterSegment>;
@group(0) @binding(7) var<storage, read_write> report: array<atomic<u32>>;

var<workgroup> sums: array<atomic<u32>, 2>; // kept in groups before this one, in all
var<workgroup> marks: array<atomic<u32>, 8>; // a bit a lane: kept

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group.y * groups.x + group.x;
    let index = number * 256u + lane;
    let bound = parameters.bound;
    let inside = index < bound;
    if (lane < 8u) { atomicStore(&marks[lane], 0u); }
    if (lane < 2u) { atomicStore(&sums[lane], 0u); }
    workgroupBarrier();
    // All of an instance is read at once, needed or not.
    var record: array<vec4u, 10>;
    for (var k = 0u; k < 10u; k += 1u) {
        if (inside) { record[k] = placed[10u * index + k]; }
    }
    var sum = vec2u(0u);
    for (var other = lane; 256u * other < bound; other += 256u) {
        let count = summaries[other].kept;
        sum += vec2u(select(0u, count, other < number), count);
    }
    if (sum.y > 0u) {
        atomicAdd(&sums[0], sum.x);
        atomicAdd(&sums[1], sum.y);
    }
    let removed = select(REASONS, record[9].z, inside);
    if (removed == 0u) { atomicOr(&marks[lane / 32u], 1u << (lane & 31u)); }
    workgroupBarrier();
    let kept = atomicLoad(&sums[1]);
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
    if (removed >= REASONS) { return; }
    if (removed != 0u) {
        atomicAdd(&report[removed], 1u);
        atomicMin(&report[REASONS + removed], index);
        return;
    }
    var at = atomicLoad(&sums[0]);
    for (var word = 0u; word < lane / 32u; word += 1u) {
        at += countOneBits(atomicLoad(&marks[word]));
    }
    at += countOneBits(atomicLoad(&marks[lane / 32u]) & ((1u << (lane & 31u)) - 1u));
    if (at == 0u) { atomicMin(&report[REASONS], index); }
    if (at + 1u == kept) { atomicStore(&report[0], kept); }
    boxes[3u * at] = record[8].xy;
    boxes[3u * at + 1u] = record[8].zw;
    boxes[3u * at + 2u] = record[9].xy;
    for (var k = 0u; k < 8u; k += 1u) { leaves[8u * at + k] = record[k]; }
}
