// Where the clusters of the dispatch before lie, chunk by chunk: `counts` and `clusters` are the
// stage's bindings. See bvh/gpu/ploc_stages.py.

var<workgroup> ends: array<u32, 256>; // clusters up to the end of each lane's share of `counts`

fn share() -> u32 {
    return (counts[0] + 255u) / 256u;
}

// Inclusive scan over the lanes' shares of `counts`.
fn scan_counts(lane: u32) {
    if (counts[0] <= 1u) {
        ends[lane] = select(0u, counts[1], counts[0] == 1u);
        workgroupBarrier();
        return;
    }
    var sum = 0u;
    for (var k = lane * share(); k < min((lane + 1u) * share(), counts[0]); k += 1u) {
        sum += counts[1u + k];
    }
    ends[lane] = sum;
    workgroupBarrier();
    for (var reach = 1u; reach < 256u; reach *= 2u) {
        var before = 0u;
        if (lane >= reach) { before = ends[lane - reach]; }
        workgroupBarrier();
        ends[lane] += before;
        workgroupBarrier();
    }
}

// The cluster at a place counted over all chunks; there are more than `place`.
fn cluster_at(place: u32) -> Cluster {
    var owner = 0u; // the first lane whose share ends behind it
    for (var step = 128u; step > 0u; step /= 2u) {
        if (ends[owner + step - 1u] <= place) { owner += step; }
    }
    var within = place;
    if (owner > 0u) { within -= ends[owner - 1u]; }
    var chunk = owner * share();
    while (within >= counts[1u + chunk]) {
        within -= counts[1u + chunk];
        chunk += 1u;
    }
    return clusters[chunk * CHUNK + within];
}
