// Fills traverse.wgsl's $accept slot in scenes without non-opaque triangles: never called.
fn accept_candidate(object: u32, primitive: u32, u: f32, v: f32) -> bool {
    return true;
}
