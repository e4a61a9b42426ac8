// What a slot's shadow results say: 0 or 1 of a ray, of a shadow map any of SHADOW_STEPS parts.
// Needs `shadow_results`.
#import "passes/shaders/shadow_slot.wgsl"

fn shadow_visibility(slot: u32) -> f32 {
    return f32(shadow_results[slot]) / SHADOW_STEPS;
}
