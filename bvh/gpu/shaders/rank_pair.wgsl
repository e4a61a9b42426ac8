// Which pairs may be, and which is better. Who imports this declares `triangles`, `triangle_ids`,
// `triangle_boxes` and `parameters`, as in bvh/gpu/shaders/pair_near.wgsl.

#import "bvh/gpu/shaders/edge.wgsl"
#import "bvh/gpu/shaders/triangle_vertex.wgsl"
#import "bvh/gpu/shaders/triangle_box.wgsl"

// Whether half-edges `a` and `b` are the two sides of one edge, of different triangles.
fn are_mates(a: u32, b: u32) -> bool {
    let s = a / 3u;
    let t = b / 3u;
    if (s == t || triangle_ids[s].x != triangle_ids[t].x) { return false; }
    return all(vertex(s, a % 3u + 1u) == vertex(t, b % 3u + 2u))
        && all(vertex(s, a % 3u + 2u) == vertex(t, b % 3u + 1u));
}

// Rank of the pair of triangles over half-edges `a` and `b`; NONE where they may not be one.
fn rank_pair(a: u32, b: u32) -> u32 {
    if (!are_mates(a, b)) { return NONE; }
    let steps = waste(box_of(a / 3u), box_of(b / 3u), parameters.zero);
    if (steps == NONE) { return NONE; }
    return candidate_rank(steps, a, b);
}
