// Needs `frame`.

// How wide a reflection's lobe is, radians. A half vector's angle turns a reflected ray by twice as
// much.
fn lobe_angle(roughness: f32) -> f32 {
    return 2.0 * roughness * roughness;
}

// The same on the picture, in pixels, `away` from the camera, of what lies at a distance: mirrors are
// sharp, and so is what touches a surface.
fn lobe_radius(roughness: f32, distance: f32, away: f32) -> f32 {
    return lobe_angle(roughness) * distance / (distance + away) / frame.pixel_spread;
}
