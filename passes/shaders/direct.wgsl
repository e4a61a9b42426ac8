// The lights' direct light on what a pixel sees, where shadow rays arrived.
// Needs `direct` and `shadow_results`.
#import "passes/shaders/shadow_slot.wgsl"
#import "passes/shaders/tone_map.wgsl"

fn direct_radiance(pixel: u32) -> vec3f {
    var sum = unpack_radiance(direct[direct_place(pixel, 0u)]) * f32(shadow_results[shadow_slot(pixel, 0u, 0u)]);
    for (var number = 1u; number < SHADOW_RAYS; number += 1u) {
        sum += unpack_radiance(direct[direct_place(pixel, number)]) * f32(shadow_results[shadow_slot(pixel, 0u, number)]);
    }
    return sum;
}
