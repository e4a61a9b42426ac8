// What the G-buffer holds. The visibility texture (object, primitive, bits of u, bits of v) comes
// from the rasteriser or from primary rays; everything else is resolved from it once:
// surface.x shading normal, .y geometric normal (both octahedral, turned to the viewer),
// .z base colour rgba8 (square root encoded), .w material | roughness << 16 | metalness << 24.

#import "passes/shaders/octahedral.wgsl"

const NOTHING: u32 = 0xffffffffu; // object of a pixel that sees the sky

struct GBufferSurface {
    shading_normal: vec3f,
    geometric_normal: vec3f,
    base_color: vec3f,
    material: u32,
    roughness: f32,
    metalness: f32,
}

fn pack_surface(s: GBufferSurface) -> vec4u {
    // The square root spends the 8 bits where the eye sees steps.
    let color = pack4x8unorm(vec4f(sqrt(clamp(s.base_color, vec3f(0.0), vec3f(1.0))), 1.0));
    let rough_metal = pack4x8unorm(vec4f(s.roughness, s.metalness, 0.0, 0.0));
    return vec4u(encode_normal(s.shading_normal), encode_normal(s.geometric_normal), color,
        (s.material & 0xffffu) | (rough_metal << 16u));
}

fn unpack_surface(words: vec4u) -> GBufferSurface {
    let color = unpack4x8unorm(words.z).xyz;
    let rough_metal = unpack4x8unorm(words.w >> 16u);
    return GBufferSurface(decode_normal(words.x), decode_normal(words.y), color * color,
        words.w & 0xffffu, rough_metal.x, rough_metal.y);
}

fn camera_direction(pixel: vec2u) -> vec3f {
    let x = (f32(pixel.x) + 0.5) / f32(frame.width) * 2.0 - 1.0;
    let y = 1.0 - (f32(pixel.y) + 0.5) / f32(frame.height) * 2.0;
    return frame.camera_forward.xyz + x * frame.camera_right.xyz + y * frame.camera_up.xyz;
}

// Lane -> pixel of an 8x8 tile; 32 lanes make an 8x4 block, so that rays pushed in lane order
// stay coherent.
fn tile_pixel(group: vec3u, lane: u32) -> vec2u {
    return vec2u(group.x * 8u + (lane & 7u), group.y * 8u + (lane >> 3u));
}
