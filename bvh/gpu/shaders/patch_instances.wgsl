// Instance nodes of a moved TLAS to the new bases of their BLASes: see bvh/gpu/compaction.py.

#import bvh.layout
#import bvh.gpu.compaction

@group(0) @binding(0) var<uniform> parameters: CompactionParameters;
@group(0) @binding(1) var<storage, read> moves: array<Move>; // by source
@group(0) @binding(2) var<storage, read_write> tight: array<u32>;
@group(0) @binding(3) var<storage, read_write> lost: array<atomic<u32>>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let instance = (group.y * groups.x + group.x) * 256u + lane;
    let tlas = UNIT_WORDS * parameters.tlas_unit;
    if (instance >= tight[tlas + LEAF_COUNT_WORD]) { return; }
    let node = tlas + UNIT_WORDS * (tight[tlas + LEAF_UNIT_WORD] + 2u * instance);
    let old = tight[node + INSTANCE_BLAS_BASE_WORD];
    var low = 0u;
    var high = parameters.moves;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (moves[middle].old_unit <= old) { low = middle; } else { high = middle; }
    }
    if (moves[low].old_unit != old) {
        atomicAdd(&lost[0], 1u);
        return;
    }
    // Bytes >> 3 are units * 8: 64 bits, as bases have up to 32 in units.
    let base = moves[low].new_unit;
    tight[node + INSTANCE_BLAS_WORD] = ((base << 3u) + (HEADER_BYTES >> 3u)) | NODE_BOX_FP32;
    tight[node + INSTANCE_BLAS_WORD + 1u] = base >> 29u;
    tight[node + INSTANCE_BLAS_BASE_WORD] = base;
}
