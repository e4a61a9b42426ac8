// Where a pixel's shadow rays and what they bring have their places; see passes/shadow_slots.py.
override SHADOW_RAYS: u32 = 1u; // from each surface
override REFLECTION_BOUNCES: u32 = 1u;
override SHADOW_STEPS: f32 = 1.0; // what their results count (shadow_visibility.wgsl)

// Of the `number`th shadow ray from a pixel's visible surface (kind 0) or its kind-th reflection hit.
fn shadow_slot(pixel: u32, kind: u32, number: u32) -> u32 {
    return (pixel * (1u + REFLECTION_BOUNCES) + kind) * SHADOW_RAYS + number;
}

// In `direct`: what that ray from the visible surface brings.
fn direct_place(pixel: u32, number: u32) -> u32 {
    return pixel * SHADOW_RAYS + number;
}

// In `reflected`: what reflections bring without shadow rays.
fn reflected_place(pixel: u32) -> u32 {
    return pixel * (1u + REFLECTION_BOUNCES * SHADOW_RAYS);
}

// In `reflected`: what that ray from the kind-th hit brings.
fn reflected_light_place(pixel: u32, kind: u32, number: u32) -> u32 {
    return reflected_place(pixel) + 1u + (kind - 1u) * SHADOW_RAYS + number;
}
