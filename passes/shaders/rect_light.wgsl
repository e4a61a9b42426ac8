// The frame's area lights. Needs `frame`.

struct RectLight {
    center: vec3f,
    half_u: vec3f,
    half_v: vec3f,
    radiance: vec3f,
    normal: vec3f,
    area: f32,
}

fn light_at(i: u32) -> RectLight {
    if (i == 0u) {
        return RectLight(frame.light_center.xyz, frame.light_half_u.xyz, frame.light_half_v.xyz,
            frame.light_radiance.xyz, frame.light_normal.xyz, frame.light_normal.w);
    }
    let at = (i - 1u) * LIGHT_VEC4S;
    let normal = frame.more_lights[at + 4u];
    return RectLight(frame.more_lights[at].xyz, frame.more_lights[at + 1u].xyz, frame.more_lights[at + 2u].xyz,
        frame.more_lights[at + 3u].xyz, normal.xyz, normal.w);
}
