// Work of one workgroup of 256 lanes, a run of items each.

var<workgroup> partial: array<vec4u, 256>;

// [x, y): the lane's share of so many items.
fn lane_run(lane: u32, count: u32) -> vec2u {
    let first = min(lane * ((count + 255u) / 256u), count);
    return vec2u(first, min(first + (count + 255u) / 256u, count));
}

// Sum of the lanes before this one; `partial[255]` is everything's.
fn scan_lanes(lane: u32, mine: vec4u) -> vec4u {
    workgroupBarrier();
    partial[lane] = mine;
    workgroupBarrier();
    for (var reach = 1u; reach < 256u; reach *= 2u) {
        var before = vec4u(0u);
        if (lane >= reach) { before = partial[lane - reach]; }
        workgroupBarrier();
        partial[lane] += before;
        workgroupBarrier();
    }
    return partial[lane] - mine;
}
