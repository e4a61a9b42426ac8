// Fills traverse.wgsl's $vote slot where the lanes of a subgroup go on together. Needs the feature
// `subgroup`.
fn any_lane(x: bool) -> bool {
    return subgroupAny(x);
}
