// Which pairs may be, and which is better. Who imports this declares `triangles`, `triangle_ids`,
// `triangle_boxes` and `parameters`, as in bvh/gpu/shaders/pair_near.wgsl.

#import "bvh/gpu/shaders/edge.wgsl"

fn vertex(triangle: u32, corner: u32) -> vec3u {
    let at = 9u * triangle + 3u * (corner % 3u);
    return vec3u(triangles[at], triangles[at + 1u], triangles[at + 2u]);
}

fn box_of(triangle: u32) -> Box {
    let at = 3u * triangle;
    return make_box(triangle_boxes[at], triangle_boxes[at + 1u], triangle_boxes[at + 2u]);
}

// Rank of the pair of triangles over half-edges `a` and `b`; NONE where they may not be one.
fn rank_pair(a: u32, b: u32) -> u32 {
    let s = a / 3u;
    let t = b / 3u;
    let i = a % 3u;
    let j = b % 3u;
    if (s == t || triangle_ids[s].x != triangle_ids[t].x) { return NONE; }
    if (any(vertex(s, i + 1u) != vertex(t, j + 2u))) { return NONE; }
    if (any(vertex(s, i + 2u) != vertex(t, j + 1u))) { return NONE; }
    let steps = waste(box_of(s), box_of(t), parameters.zero);
    if (steps == NONE) { return NONE; }
    return candidate_rank(steps, a, b);
}
