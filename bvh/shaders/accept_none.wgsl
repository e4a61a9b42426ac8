// Fills traverse.wgsl's $accept slot: no candidate is a hit, so that a ray meets every triangle on
// its way. With RAY_FORCE_NON_OPAQUE this counts all crossings.
var<private> candidates: u32;

fn accept_candidate(object: u32, primitive: u32, u: f32, v: f32) -> bool {
    candidates += 1u;
    return false;
}

fn candidate_count() -> u32 {
    return candidates;
}
