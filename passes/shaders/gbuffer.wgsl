// What the G-buffer holds. The rasteriser or primary rays give `ids` (object, triangle); the rest
// is resolved from them once, so that both agree:
// visibility: object, triangle, bits of u and v, the weights of its vertices 1 and 2;
// surface.x shading normal, .y geometric normal (both octahedral, turned to the viewer),
// .z base colour rgba8 (square root encoded), .w material | roughness << 16 | metalness << 24.

#import "passes/shaders/octahedral.wgsl"
#import "passes/shaders/camera.wgsl"

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

// Lane -> pixel of an 8x8 tile; 32 lanes make an 8x4 block, so that rays pushed in lane order
// stay coherent. A pass that runs in parts has workgroups for some rows of tiles only.
fn tile_pixel(group: vec3u, lane: u32) -> vec2u {
    return vec2u(group.x * 8u + (lane & 7u), (frame.first_tile_row + group.y) * 8u + (lane >> 3u));
}
