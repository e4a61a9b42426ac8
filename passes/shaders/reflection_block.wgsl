// Who sends reflection rays: of each block of REFLECTION_BLOCK x REFLECTION_BLOCK pixels the first,
// left and top, which a block that the picture's edge cuts has, too. The others share its ray.
override REFLECTION_BLOCK: u32 = 1u;

fn reflection_pixel(pixel: vec2u) -> vec2u {
    return pixel - pixel % REFLECTION_BLOCK;
}
