// Five levels of the pyramid over the blocks' boxes from a level that stands: see
// bvh/gpu/refit.py. A workgroup does 1024 boxes.

#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"
#import "bvh/gpu/shaders/refit_runs.wgsl"
#import "bvh/gpu/shaders/refit_tile.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read_write> boxes: array<vec2i>;
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>, 4>;

var<workgroup> own: array<i32, 2040>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    if (parameters.level == BLOCK_LEVELS && tile == 0u && lane == 0u) {
        // Between the blocks, which add to the one, and the nodes, which add to the other.
        atomicStore(&counts[FOUND_NONFINITE], atomicExchange(&counts[PENDING_NONFINITE], 0u));
        atomicStore(&counts[FOUND_OVERFLOW], 0u);
    }
    var level = find_level(parameters.blocks, parameters.level);
    if (level.y <= PYRAMID_TOP) { return; }
    let last = level.x + level.y - 1u;
    let first = level.x + 1024u * tile + 4u * lane;
    level = level_above(level);
    var box = inverted_box();
    if (first <= last) {
        box = join_four(first, min(first + 3u, last));
        store_box(level.x + 256u * tile + lane, box);
    }
    keep_own(lane, box);
    join_tile(lane, tile, level);
}
