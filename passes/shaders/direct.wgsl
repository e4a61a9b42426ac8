// The lights' direct light on what a pixel sees, where shadow rays arrived.
// Needs `direct` and `shadow_results`.
#import "passes/shaders/shadow_visibility.wgsl"
#import "passes/shaders/tone_map.wgsl"

// The part of its shadow rays that arrived, 0 where none was sent.
fn light_visibility(pixel: u32) -> f32 {
    var sent = 0.0;
    var arrived = 0.0;
    for (var number = 0u; number < SHADOW_RAYS; number += 1u) {
        let radiance = unpack_radiance(direct[direct_place(pixel, number)]);
        // Light that is black sends no ray: what lies where its result would is older.
        if (max(radiance.x, max(radiance.y, radiance.z)) > 0.0) {
            sent += 1.0;
            arrived += shadow_visibility(shadow_slot(pixel, 0u, number));
        }
    }
    return arrived / max(sent, 1.0);
}

fn direct_radiance(pixel: u32) -> vec3f {
    var sum = unpack_radiance(direct[direct_place(pixel, 0u)]) * shadow_visibility(shadow_slot(pixel, 0u, 0u));
    for (var number = 1u; number < SHADOW_RAYS; number += 1u) {
        sum += unpack_radiance(direct[direct_place(pixel, number)]) * shadow_visibility(shadow_slot(pixel, 0u, number));
    }
    return sum;
}
