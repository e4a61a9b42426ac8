// Four ray/box tests at once: the slab test with a conservative error bound.
//
// near = plane * inverse - origin * inverse is one fused multiply-add a plane. Its rounding error
// is at most a few ULPs of t plus a few ULPs of origin * inverse, so the near side is lowered and
// the far side raised by BIAS_SLACK of the latter, and the far side grows by GROWTH of the former
// (Ize, "Robust BVH Ray Traversal", JCGT 2013, with the absolute part added). Boxes are widened,
// never narrowed: a hit that the triangle test accepts is not lost to its parents' boxes.

#import "bvh/shaders/ray.wgsl"

const GROWTH: f32 = 4.7683716e-7; // 2^-21: 4 ULPs of t
const BIAS_SLACK: f32 = 2.3841858e-7; // 2^-22
// A direction component below this part of the largest one (zero included) counts as this part of
// it, with its own sign: its reciprocal stays finite, and the point at t moves by less than
// float32 can tell. Such a ray stays where it is on that axis, so the planes that it starts on
// must not end it: near and far are moved apart by ZERO_SLACK, more than the t of any hit, which
// widens the box by 2^-30 units on that axis.
const SMALLEST_COMPONENT: f32 = 5.4210109e-20; // 2^-64
const ZERO_SLACK: f32 = 1.7179869e10; // 2^34, over the largest component

struct BoxRay {
    near_scale: vec3f,
    near_bias: vec3f,
    far_scale: vec3f,
    far_bias: vec3f,
}

struct BoxHits {
    entry: vec4f, // where the ray enters each child, at least t_min
    hit: vec4<bool>,
}

fn prepare_box_ray(origin: vec3f, given_direction: vec3f) -> BoxRay {
    let direction = flush_denormals(given_direction);
    let size = abs(direction);
    let largest = max(size.x, max(size.y, size.z));
    let smallest = vec3f(largest * SMALLEST_COMPONENT);
    let clamped = max(size, smallest);
    let inverse = select(1.0 / clamped, -1.0 / clamped, direction < vec3f(0.0));
    let offset = origin * inverse;
    let slack = abs(offset) * BIAS_SLACK
        + select(vec3f(0.0), vec3f(ZERO_SLACK / largest), size < smallest);
    return BoxRay(
        inverse,
        -offset - slack,
        inverse * (1.0 + GROWTH),
        (slack - offset) * (1.0 + GROWTH),
    );
}

// Each argument holds one coordinate of the four children. Empty slots hold NaN, for which the
// result means nothing: the caller tests their pointers.
fn test_boxes(
    ray: BoxRay, t_min: f32, t_max: f32,
    min_x: vec4f, min_y: vec4f, min_z: vec4f, max_x: vec4f, max_y: vec4f, max_z: vec4f,
) -> BoxHits {
    let negative = ray.near_scale < vec3f(0.0);
    let near_x = fma(select(min_x, max_x, negative.x), vec4f(ray.near_scale.x), vec4f(ray.near_bias.x));
    let near_y = fma(select(min_y, max_y, negative.y), vec4f(ray.near_scale.y), vec4f(ray.near_bias.y));
    let near_z = fma(select(min_z, max_z, negative.z), vec4f(ray.near_scale.z), vec4f(ray.near_bias.z));
    let far_x = fma(select(max_x, min_x, negative.x), vec4f(ray.far_scale.x), vec4f(ray.far_bias.x));
    let far_y = fma(select(max_y, min_y, negative.y), vec4f(ray.far_scale.y), vec4f(ray.far_bias.y));
    let far_z = fma(select(max_z, min_z, negative.z), vec4f(ray.far_scale.z), vec4f(ray.far_bias.z));
    let entry = max(max(near_x, near_y), max(near_z, vec4f(t_min)));
    let leave = min(min(far_x, far_y), min(far_z, vec4f(t_max)));
    return BoxHits(entry, entry <= leave);
}
