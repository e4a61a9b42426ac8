// The lights themselves where a ray meets their fronts within t_max: mirrors and narrow lobes see them,
// since hardly a sampled direction can. Needs `frame`.
#import "passes/shaders/rect_light.wgsl"

fn light_on_ray(light: RectLight, origin: vec3f, direction: vec3f, t_max: f32) -> vec3f {
    let facing = dot(direction, light.normal);
    if (facing >= 0.0) { return vec3f(0.0); }
    let t = dot(light.center - origin, light.normal) / facing;
    let p = origin + t * direction - light.center;
    let u = dot(p, light.half_u) / dot(light.half_u, light.half_u);
    let v = dot(p, light.half_v) / dot(light.half_v, light.half_v);
    let inside = t > 0.0 && t < t_max && abs(u) <= 1.0 && abs(v) <= 1.0;
    return select(vec3f(0.0), light.radiance, inside);
}

fn light_seen(origin: vec3f, direction: vec3f, t_max: f32) -> vec3f {
    var sum = light_on_ray(light_at(0u), origin, direction, t_max);
    for (var i = 1u; i < frame.light_count; i += 1u) {
        sum += light_on_ray(light_at(i), origin, direction, t_max);
    }
    return sum;
}
