// The light itself where a ray meets its front within t_max: a mirror sees it, since no sampled
// direction can. Needs `frame`.
fn light_seen(origin: vec3f, direction: vec3f, t_max: f32) -> vec3f {
    let facing = dot(direction, frame.light_normal.xyz);
    if (facing >= 0.0) { return vec3f(0.0); }
    let t = dot(frame.light_center.xyz - origin, frame.light_normal.xyz) / facing;
    let p = origin + t * direction - frame.light_center.xyz;
    let u = dot(p, frame.light_half_u.xyz) / dot(frame.light_half_u.xyz, frame.light_half_u.xyz);
    let v = dot(p, frame.light_half_v.xyz) / dot(frame.light_half_v.xyz, frame.light_half_v.xyz);
    let inside = t > 0.0 && t < t_max && abs(u) <= 1.0 && abs(v) <= 1.0;
    return select(vec3f(0.0), frame.light_radiance.xyz, inside);
}
