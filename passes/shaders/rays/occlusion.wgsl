// The occlusion ray's record and whether the way was free. Needs `queue`, `results`, `frame`.
#import passes.rays.occlusion
#import "passes/shaders/octahedral.wgsl"

alias RayRecord = OcclusionRay;
alias RayResult = u32;

fn load_ray(index: u32) -> Ray {
    let r = queue.records[index];
    return Ray(vec3f(r.origin[0], r.origin[1], r.origin[2]), 0.0,
               decode_normal(r.direction), frame.occlusion_radius);
}

fn ray_slot(index: u32) -> u32 {
    return queue.records[index].pixel;
}

// By pixel, so that the composite finds it: 1 free, 0 occluded.
fn store_result(index: u32, result: Hit) {
    results[queue.records[index].pixel] = select(0u, 1u, result.object == MISS);
}
