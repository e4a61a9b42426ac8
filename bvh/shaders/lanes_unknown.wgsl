// Fills count_events.wgsl's $lanes slot where nobody asks for lanes, or the adapter has no subgroup
// operations.
fn count_lanes(node: u32) {}
fn subgroup_lanes() -> u32 { return 0u; }
