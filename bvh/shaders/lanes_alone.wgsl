// Fills traverse.wgsl's $vote slot: each lane goes its own way.
fn any_lane(x: bool) -> bool {
    return x;
}
