// What follows from finished nodes, upwards, a round of them at a time: see
// bvh/gpu/cluster_tree.py. A node takes its left child's slot. Needs what cluster_tree.wgsl has.

fn shared_part(slot: u32) -> Part {
    let a = first_half[slot];
    let b = second_half[slot];
    return Part(bitcast<vec3f>(a.xyz), a.w, b.xyz, b.w);
}

fn share_part(slot: u32, part: Part) {
    first_half[slot] = vec4u(bitcast<vec3u>(part.cost), part.stack);
    second_half[slot] = vec4u(part.counts, part.depth);
}

// The best cut of every subtree, bytes as if all were FP32.
fn sweep_cuts(lane: u32, base: u32, rounds: u32, mine: Clusters) {
    for (var i = lane; i < 2u; i += LANES) { share_part(i, empty_part()); }
    workgroupBarrier();
    for (var k = 0u; k < PER_LANE; k += 1u) {
        if (mine.places[k] >= SEGMENT) { continue; }
        var part = leaf_part();
        let id = mine.ids[k];
        if (id >= 0) {
            part = Part(nodes[id].cost, nodes[id].stack, nodes[id].counts, nodes[id].depth);
        }
        share_part(mine.places[k], part);
    }
    workgroupBarrier();
    var first = 0u;
    for (var round = 0u; round < rounds; round += 1u) {
        let end = round_ends[round];
        for (var node = first + lane; node < end; node += LANES) {
            let slots = joined[node];
            let left = slots & SLOT_MASK;
            let both = join(shared_part(left), shared_part(slots >> SLOT_BITS), areas[node]);
            share_part(left, both.part);
            joined[node] = slots | both.shares << (2u * SLOT_BITS);
            let id = base + node;
            nodes[id].cost = both.part.cost;
            nodes[id].shares = both.shares;
            nodes[id].units = 2u * both.part.counts;
            nodes[id].counts = both.part.counts;
            nodes[id].stack = both.part.stack;
            nodes[id].depth = both.part.depth;
            nodes[id].reserved = array<u32, 2>(0u, 0u);
        }
        first = end;
        workgroupBarrier();
    }
}

// Which nodes are FP16, and how many bytes that makes of every subtree.
fn sweep_units(lane: u32, base: u32, rounds: u32, created: u32, mine: Clusters) {
    storageBarrier();
    for (var node = lane; node < created; node += LANES) {
        let id = base + node;
        if (wants_half(slots_of(nodes[id].left, nodes[id].right, nodes[id].shares))) {
            joined[node] |= HALF << (2u * SLOT_BITS);
        }
    }
    for (var i = lane; i < 2u; i += LANES) { first_half[i] = vec4u(0u); }
    workgroupBarrier();
    for (var k = 0u; k < PER_LANE; k += 1u) {
        if (mine.places[k] >= SEGMENT) { continue; }
        var units = vec3u(0u);
        if (mine.ids[k] >= 0) { units = nodes[mine.ids[k]].units; }
        first_half[mine.places[k]] = vec4u(units, 0u);
    }
    workgroupBarrier();
    var first = 0u;
    for (var round = 0u; round < rounds; round += 1u) {
        let end = round_ends[round];
        for (var node = first + lane; node < end; node += LANES) {
            let left = joined[node] & SLOT_MASK;
            let right = joined[node] >> SLOT_BITS & SLOT_MASK;
            let shares = joined[node] >> (2u * SLOT_BITS);
            let units = join_units(first_half[left].xyz, first_half[right].xyz, shares);
            first_half[left] = vec4u(units, 0u);
            nodes[base + node].units = units;
            nodes[base + node].shares = shares;
        }
        first = end;
        workgroupBarrier();
    }
}
