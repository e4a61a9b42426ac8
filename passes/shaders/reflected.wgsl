// What a pixel is shown of what reflection rays brought. Upsampling is plain: the block's ray as it
// is. A filter that knows edges belongs into `reflected_radiance`.
// Needs `frame`, `visibility`, `surface`, `reflected` and `shadow_results`.
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/tone_map.wgsl"
#import "passes/shaders/reflection_block.wgsl"
#import "passes/shaders/shadow_slot.wgsl"

// Whether the pixel whose ray this one shares has sent it. What lies in `reflected` where none was
// sent is older.
fn has_reflection(pixel: vec2u) -> bool {
    let sender = reflection_pixel(pixel);
    return textureLoad(visibility, sender, 0).x != NOTHING
        && unpack_surface(textureLoad(surface, sender, 0)).roughness <= frame.roughness_cutoff;
}

fn reflected_radiance(pixel: vec2u) -> vec3f {
    let sender = reflection_pixel(pixel);
    let index = sender.y * frame.width + sender.x;
    var sum = unpack_radiance(reflected[reflected_place(index)]);
    for (var kind = 1u; kind <= REFLECTION_BOUNCES; kind += 1u) {
        for (var number = 0u; number < SHADOW_RAYS; number += 1u) {
            sum += unpack_radiance(reflected[reflected_light_place(index, kind, number)])
                * f32(shadow_results[shadow_slot(index, kind, number)]);
        }
    }
    return sum;
}
