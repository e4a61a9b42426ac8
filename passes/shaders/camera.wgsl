// Through the centre of a pixel, (0, 0) top left: not normalised, one unit along the view axis.
// Needs `frame`.
fn camera_direction(pixel: vec2u) -> vec3f {
    let x = (f32(pixel.x) + 0.5) / f32(frame.width) * 2.0 - 1.0;
    let y = 1.0 - (f32(pixel.y) + 0.5) / f32(frame.height) * 2.0;
    return frame.camera_forward.xyz + x * frame.camera_right.xyz + y * frame.camera_up.xyz;
}
