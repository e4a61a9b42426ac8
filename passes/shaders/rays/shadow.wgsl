// The shadow ray's record and whether it reached the light. Needs `queue`, `results`, `frame`.
#import passes.rays.shadow
#import "passes/shaders/light.wgsl"

alias RayRecord = ShadowRay;
alias RayResult = u32;

fn load_ray(index: u32) -> Ray {
    let r = queue.records[index];
    let origin = vec3f(r.origin[0], r.origin[1], r.origin[2]);
    return Ray(origin, 0.0, light_point(r.light_uv) - origin, SHADOW_T_MAX);
}

fn ray_slot(index: u32) -> u32 {
    return queue.records[index].slot;
}

// By slot, so that the composite finds it: 1 lit, 0 in shadow.
fn store_result(index: u32, result: Hit) {
    results[queue.records[index].slot] = select(0u, 1u, result.object == MISS);
}
