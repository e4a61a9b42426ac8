// What the stages share that put blocks in a row. Who imports this declares `triangle_boxes`,
// `block_total`, `boxes` and `state`, as in bvh/gpu/shaders/make_blocks.wgsl.

#import "bvh/gpu/shaders/block_members.wgsl"
#import "bvh/gpu/shaders/triangle_box.wgsl"

var<workgroup> counts: array<atomic<u32>, 3>; // usable, degenerate, non-finite

// Before a barrier.
fn clear_counts(lane: u32) {
    if (lane < 3u) { atomicStore(&counts[lane], 0u); }
}

// `box` is the triangle's own, which says why set-up removed it.
fn count_triangle(box: Box, removed: bool) {
    let degenerate = box.high.x == -REMOVED_DEGENERATE;
    atomicAdd(&counts[select(0u, select(2u, 1u, degenerate), removed)], 1u);
}

fn write_box(at: u32, box: Box) {
    boxes[3u * at] = box.low.xy;
    boxes[3u * at + 1u] = vec2f(box.low.z, box.high.x);
    boxes[3u * at + 2u] = box.high.yz;
}

// After a barrier.
fn write_counts(lane: u32, triangle: u32) {
    if (lane < 3u) { atomicAdd(&state[1u + lane], atomicLoad(&counts[lane])); }
    if (triangle == 0u) { atomicStore(&state[0], block_total[0]); }
}
