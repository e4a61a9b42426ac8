// Begins a pass over what an earlier one drew: fills the depth of a layer, and the ids beside it,
// with those of another of the same size.

@group(0) @binding(0) var below_depth: texture_depth_2d;
@group(0) @binding(1) var below_ids: texture_2d<u32>; // read by `ids_main` alone

@vertex
fn vertex_main(@builtin(vertex_index) vertex: u32) -> @builtin(position) vec4f {
    // One triangle that covers the square from -1 to 1.
    return vec4f(select(-1.0, 3.0, vertex == 1u), select(-1.0, 3.0, vertex == 2u), 0.0, 1.0);
}

@fragment
fn depth_main(@builtin(position) place: vec4f) -> @builtin(frag_depth) f32 {
    return textureLoad(below_depth, vec2u(place.xy), 0);
}

struct Texel {
    @location(0) ids: vec2u,
    @builtin(frag_depth) depth: f32,
}

@fragment
fn ids_main(@builtin(position) place: vec4f) -> Texel {
    let pixel = vec2u(place.xy);
    return Texel(textureLoad(below_ids, pixel, 0).xy, textureLoad(below_depth, pixel, 0));
}
