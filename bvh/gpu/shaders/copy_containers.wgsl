// Containers and their parent links to their new places, 16 bytes a lane: bvh/gpu/compaction.py.

#import bvh.layout
#import bvh.gpu.compaction

@group(0) @binding(0) var<uniform> parameters: CompactionParameters;
@group(0) @binding(1) var<storage, read> moves: array<Move>;
@group(0) @binding(2) var<storage, read> loose: array<vec4u>;
@group(0) @binding(3) var<storage, read> loose_links: array<u32>;
@group(0) @binding(4) var<storage, read_write> tight: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> tight_links: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = (group.y * groups.x + group.x) * 256u + lane;
    let unit = item / 4u;
    if (unit >= parameters.units) { return; }
    // The last move that begins at or before this unit; an empty one has the same beginning as the
    // move behind it.
    var low = 0u;
    var high = parameters.moves;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (moves[middle].first <= unit) { low = middle; } else { high = middle; }
    }
    let one = moves[low];
    let local = unit - one.first;
    var words = loose[4u * (one.old_unit + local) + item % 4u];
    if (4u * local + item % 4u == DESCRIPTOR_WORD / 4u) {
        words.x = one.new_unit / (BASE_ALIGN_BYTES / UNIT_BYTES);
        words.y &= 0xffffff00u;
    }
    tight[4u * (one.new_unit + local) + item % 4u] = words;
    if (item % 4u == 0u) {
        tight_links[one.new_unit + local] = loose_links[one.old_unit + local];
    }
}
