// A ray as it is, and its hit: for rays that no queue of the frame holds. Needs `queue`, `results`.

alias RayRecord = Ray;
alias RayResult = Hit;

fn load_ray(index: u32) -> Ray {
    return queue.records[index];
}

fn ray_slot(index: u32) -> u32 {
    return index;
}

fn store_result(index: u32, result: Hit) {
    results[index] = result;
}
