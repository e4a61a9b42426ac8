// What a pixel's own reflection ray brought, its hits' shadow rays included: the one place where their
// results become light. Needs `reflected` and `shadow_results`.
#import "passes/shaders/tone_map.wgsl"
#import "passes/shaders/shadow_visibility.wgsl"

// What lies here where no ray was sent is older.
fn reflected_radiance(index: u32) -> vec3f {
    var sum = unpack_radiance(reflected[reflected_place(index)]);
    for (var kind = 1u; kind <= REFLECTION_BOUNCES; kind += 1u) {
        for (var number = 0u; number < SHADOW_RAYS; number += 1u) {
            sum += unpack_radiance(reflected[reflected_light_place(index, kind, number)])
                * shadow_visibility(shadow_slot(index, kind, number));
        }
    }
    return sum;
}

// Metres to what the ray hit first, MISS_DISTANCE where it hit nothing.
fn reflected_distance(index: u32) -> f32 {
    return unpack2x16float(reflected[reflected_place(index)].y).y;
}
