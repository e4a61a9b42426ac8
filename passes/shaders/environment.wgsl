// The sky: three colours blended by the height of the direction. Needs `frame`.

fn environment(direction: vec3f) -> vec3f {
    let height = normalize(direction).y;
    let above = mix(frame.environment_horizon.xyz, frame.environment_zenith.xyz, sqrt(clamp(height, 0.0, 1.0)));
    let below = mix(frame.environment_horizon.xyz, frame.environment_ground.xyz, sqrt(clamp(-height, 0.0, 1.0)));
    return select(below, above, height >= 0.0);
}

// Cosine-weighted mean radiance over the hemisphere around `normal`, approximated by the blend
// that the normal sees: nothing is in its way here (occlusion rays are the composite's).
fn ambient_radiance(normal: vec3f) -> vec3f {
    let up = 0.5 * (normal.y + 1.0);
    let sky = 0.5 * (frame.environment_zenith.xyz + frame.environment_horizon.xyz);
    let ground = 0.5 * (frame.environment_ground.xyz + frame.environment_horizon.xyz);
    return mix(ground, sky, up);
}
