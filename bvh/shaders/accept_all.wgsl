// Fills traverse.wgsl's $accept slot: every candidate on a non-opaque triangle is a hit.
fn accept_candidate(object: u32, primitive: u32, u: f32, v: f32) -> bool {
    return true;
}

fn candidate_count() -> u32 {
    return 0u;
}
