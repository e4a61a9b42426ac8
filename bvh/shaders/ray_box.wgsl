// Four ray/box tests at once: the slab test with a conservative error bound.
//
// t of a plane is one fused multiply-add: plane * inverse - origin * inverse. Its rounding error is
// at most a few ULPs of t plus a few ULPs of origin * inverse, so t of the near plane is lowered
// and that of the far plane raised by BIAS_SLACK of the latter, and the far one grows by GROWTH of
// the former (Ize, "Robust BVH Ray Traversal", JCGT 2013, with the absolute part added). Boxes are
// widened, never narrowed: a hit that the triangle test accepts is not lost to its parents' boxes.
// Which plane is near depends on the ray alone, so both corrections are in its constants, and
// sorting the two planes' t by min and max (cheaper than choosing planes) cannot undo them.

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
    min_scale: vec3f, // t of a min plane is min * min_scale + min_bias
    min_bias: vec3f,
    max_scale: vec3f,
    max_bias: vec3f,
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
    let near_bias = -offset - slack;
    let far_scale = inverse * (1.0 + GROWTH);
    let far_bias = (slack - offset) * (1.0 + GROWTH);
    let backwards = inverse < vec3f(0.0);
    return BoxRay(
        select(inverse, far_scale, backwards),
        select(near_bias, far_bias, backwards),
        select(far_scale, inverse, backwards),
        select(far_bias, near_bias, backwards),
    );
}

// Each argument holds one coordinate of the four children. Empty slots hold NaN, for which the
// result means nothing: the caller tests their pointers.
fn test_boxes(
    ray: BoxRay, t_min: f32, t_max: f32,
    min_x: vec4f, min_y: vec4f, min_z: vec4f, max_x: vec4f, max_y: vec4f, max_z: vec4f,
) -> BoxHits {
    let a_x = fma(min_x, vec4f(ray.min_scale.x), vec4f(ray.min_bias.x));
    let a_y = fma(min_y, vec4f(ray.min_scale.y), vec4f(ray.min_bias.y));
    let a_z = fma(min_z, vec4f(ray.min_scale.z), vec4f(ray.min_bias.z));
    let b_x = fma(max_x, vec4f(ray.max_scale.x), vec4f(ray.max_bias.x));
    let b_y = fma(max_y, vec4f(ray.max_scale.y), vec4f(ray.max_bias.y));
    let b_z = fma(max_z, vec4f(ray.max_scale.z), vec4f(ray.max_bias.z));
    let entry = max(max(min(a_x, b_x), min(a_y, b_y)), max(min(a_z, b_z), vec4f(t_min)));
    let leave = min(min(max(a_x, b_x), max(a_y, b_y)), min(max(a_z, b_z), vec4f(t_max)));
    return BoxHits(entry, entry <= leave);
}
