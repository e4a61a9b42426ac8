// Which points of which lights shadow rays go to. Needs `frame` and `tables`.
#import "passes/shaders/choose_light.wgsl"
#import "passes/shaders/light.wgsl"
#import "passes/shaders/sample_number.wgsl"

// A random point of a light, as a shadow ray carries it.
fn sample_light(pixel: u32, dimension: u32, light: u32) -> u32 {
    let uv = vec2f(sample_number(pixel, dimension), sample_number(pixel, dimension + 1u));
    return pack_light(uv, light);
}

// What the `number`th shadow ray of a pixel's surface of that kind may bring (kind and number as in
// shadow_slot.wgsl); the sum over its rays estimates what all lights bring.
fn light_sample(
    pixel: u32, kind: u32, number: u32, position: vec3f, geometric_normal: vec3f, normal: vec3f, view: vec3f,
    base_color: vec3f, metalness: f32, roughness: f32,
) -> LightSample {
    var r = 0.0;
    if (frame.light_count > SHADOW_RAYS) {
        r = sample_number(pixel, light_choice_dimension(kind, number));
    }
    let choice = choose_light(number, r, position, geometric_normal, normal);
    let light_uv = sample_light(pixel, light_dimension(kind, number), choice.light);
    var result = light_from(light_uv, position, geometric_normal, normal, view, base_color, metalness, roughness);
    result.radiance *= choice.weight;
    return result;
}
