// Up to five levels of the pyramid over the blocks' boxes, from a level that stands: see
// bvh/gpu/refit.py. A workgroup does 1024 boxes.

#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"
#import "bvh/gpu/shaders/refit_runs.wgsl"
#import "bvh/gpu/shaders/refit_tile.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read_write> boxes: array<vec2i>;
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>, 4>;

// The 256 boxes of the first level above, then those of further ones.
var<workgroup> own: array<i32, 2040>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    if (parameters.level == 0u && tile == 0u && lane == 0u) {
        // Between the blocks, which add to the one, and the nodes, which add to the other.
        atomicStore(&counts[FOUND_NONFINITE], atomicExchange(&counts[PENDING_NONFINITE], 0u));
        atomicStore(&counts[FOUND_OVERFLOW], 0u);
    }
    var level = find_level(parameters.blocks, parameters.level);
    if (level.y <= PYRAMID_TOP) { return; }
    let bottom = level;
    level = level_above(level);
    for (var slot = lane; slot < 256u; slot += 64u) {
        let four = 1024u * tile + 4u * slot;
        var box = inverted_box();
        if (four < bottom.y) {
            box = join_four(bottom.x + four, bottom.x + min(four + 4u, bottom.y) - 1u);
            store_box(level.x + 256u * tile + slot, box);
        }
        keep_own(slot, box);
    }
    join_tile(lane, tile, level);
}
