// Half the surface area of an inner node. Who imports this declares `bounds` (six f32 a node) and
// `rounded`, which keeps a product apart from the sum it goes into.

#import "bvh/gpu/shaders/box.wgsl"

// Longer sides count as this long, so that sums over millions of nodes stay finite.
const LONGEST_SIDE = 1e15;

fn half_area(node: u32) -> f32 {
    let at = 3u * node;
    let box = make_box(bounds[at], bounds[at + 1u], bounds[at + 2u]);
    let side = clamp(box.high - box.low, vec3f(0.0), vec3f(LONGEST_SIDE));
    let two = rounded(rounded(side.x * side.y) + rounded(side.y * side.z));
    return two + rounded(side.z * side.x);
}
