// Empty bins, the root's record and the budget: see bvh/gpu/spatial_stages.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> split_state: array<SplitState>;
@group(0) @binding(3) var<storage, read_write> nodes: array<SahNode>;
@group(0) @binding(4) var<storage, read_write> extents: array<u32>;
@group(0) @binding(5) var<storage, read_write> bins: array<u32>;
@group(0) @binding(6) var<storage, read_write> space: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let kept = state[0];
    let first = group.x * 256u + lane;
    let stride = groups.x * 256u;
    for (var i = first; i < arrayLength(&bins); i += stride) {
        bins[i] = select(0u, 0xffffffffu, i % BIN_WORDS < 3u);
    }
    for (var i = first; i < arrayLength(&space); i += stride) {
        space[i] = select(0u, 0xffffffffu, i % SPACE_BIN_WORDS < 3u);
    }
    if (first < 6u) { extents[first] = select(0u, 0xffffffffu, first < 3u); }
    if (first == 0u) {
        let share = parameters.budget_share;
        var fresh = SplitState();
        fresh.budget = (kept >> 8u) * share + ((kept & 255u) * share >> 8u);
        let large = kept > SPLIT_ABOVE;
        fresh.finished = select(kept, 0u, large);
        fresh.open = select(0u, kept, large);
        split_state[0] = fresh;
        let tiles = (kept + SAH_TILE - 1u) / SAH_TILE;
        nodes[0] = SahNode(select(0u, 1u, large), select(0u, tiles, large), 0u, 0u);
        nodes[1] = SahNode(0u, kept, 0u, 0u);
    }
}
