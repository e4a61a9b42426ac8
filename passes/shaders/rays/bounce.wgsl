// The record of a further reflection ray and its hit. Needs `queue` and `results`.
#import passes.rays.bounce

alias RayRecord = BounceRay;
alias RayResult = Hit;

fn load_ray(index: u32) -> Ray {
    let r = queue.records[index];
    return Ray(vec3f(r.origin[0], r.origin[1], r.origin[2]), 0.0,
               vec3f(r.direction[0], r.direction[1], r.direction[2]), INFINITE_T);
}

fn ray_slot(index: u32) -> u32 {
    return queue.records[index].pixel;
}

fn store_result(index: u32, result: Hit) {
    results[index] = result;
}
