// One workgroup: which nodes take their plane, where their children go, and the next level. See
// bvh/gpu/spatial_stages.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/lane_runs.wgsl"

@group(0) @binding(0) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(1) var<storage, read_write> cuts: array<SpatialCut>;
@group(0) @binding(2) var<storage, read_write> sums: array<SpatialTile>;
@group(0) @binding(3) var<storage, read_write> split_state: array<SplitState>;
@group(0) @binding(4) var<storage, read_write> next_nodes: array<SahNode>;
@group(0) @binding(5) var<storage, read_write> next_tiles: array<SahTile>;

// Listed children, their tiles, references in them, references that are finished.
fn sizes(count: u32) -> vec4u {
    if (count > SPLIT_ABOVE) { return vec4u(1u, (count + SAH_TILE - 1u) / SAH_TILE, count, 0u); }
    return vec4u(0u, 0u, 0u, count);
}

// References on the left and on the right of a node's plane; `tiles_before` ends its tiles.
fn spatial_counts(slot: u32, node_count: u32, total: vec4u) -> vec2u {
    let first = sums[nodes[slot + 1u].first_tile];
    var end = total.yz;
    if (slot + 1u < node_count) {
        let next = sums[nodes[slot + 2u].first_tile];
        end = vec2u(next.space_left, next.space_right);
    }
    return end - vec2u(first.space_left, first.space_right);
}

// References that a node's plane would add; 0xffffffff where it takes none.
fn added_by(slot: u32, counts: vec2u) -> u32 {
    let count = nodes[slot + 1u].count;
    if (cuts[slot].cheaper == 0u || min(counts.x, counts.y) == 0u
        || max(counts.x, counts.y) >= count) { return 0xffffffffu; }
    return counts.x + counts.y - count;
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    let node_count = nodes[0].first;
    let tile_count = nodes[0].count;
    if (node_count == 0u) {
        if (lane == 0u) { next_nodes[0] = SahNode(0u, 0u, 0u, 0u); }
        return;
    }
    let budget = split_state[0].budget;
    let finished = split_state[0].finished;
    // Every lane takes a run of tiles and a run of nodes.
    let own_tiles = lane_run(lane, tile_count);
    let own_nodes = lane_run(lane, node_count);
    var mine = vec4u(0u);
    for (var t = own_tiles.x; t < own_tiles.y; t += 1u) {
        mine += vec4u(sums[t].object_left, sums[t].space_left, sums[t].space_right, 0u);
    }
    var before = scan_lanes(lane, mine);
    let tile_total = partial[255];
    for (var t = own_tiles.x; t < own_tiles.y; t += 1u) {
        let here = sums[t];
        sums[t] = SpatialTile(before.x, before.y, before.z);
        before += vec4u(here.object_left, here.space_left, here.space_right, 0u);
    }
    storageBarrier();
    workgroupBarrier();
    var added = 0u;
    for (var i = own_nodes.x; i < own_nodes.y; i += 1u) {
        let more = added_by(i, spatial_counts(i, node_count, tile_total));
        added += select(more, 0u, more == 0xffffffffu);
    }
    var wanted = scan_lanes(lane, vec4u(added, 0u, 0u, 0u)).x;
    // Who has room, and what that makes of the children.
    var taken = 0u;
    mine = vec4u(0u);
    for (var i = own_nodes.x; i < own_nodes.y; i += 1u) {
        let counts = spatial_counts(i, node_count, tile_total);
        let more = added_by(i, counts);
        let count = nodes[i + 1u].count;
        var left = cuts[i].object_left;
        var right = count - left;
        cuts[i].spatial = 0u;
        if (more != 0xffffffffu) {
            wanted += more;
            if (wanted <= budget) {
                cuts[i].spatial = 1u;
                taken += more;
                left = counts.x;
                right = counts.y;
            }
        }
        mine += sizes(left) + sizes(right);
    }
    var at = scan_lanes(lane, mine);
    let total = partial[255];
    _ = scan_lanes(lane, vec4u(taken, 0u, 0u, 0u));
    if (lane == 0u) {
        next_nodes[0] = SahNode(total.x, total.y, 0u, 0u);
        split_state[0].budget = budget - partial[255].x;
        split_state[0].finished = finished + total.w;
        split_state[0].open = total.z;
    }
    for (var i = own_nodes.x; i < own_nodes.y; i += 1u) {
        var counts = vec2u(cuts[i].object_left, nodes[i + 1u].count - cuts[i].object_left);
        if (cuts[i].spatial == 1u) { counts = spatial_counts(i, node_count, tile_total); }
        for (var side = 0u; side < 2u; side += 1u) {
            let count = counts[side];
            let size = sizes(count);
            let listed = size.x == 1u;
            let slot = select(NO_SLOT, at.x, listed);
            let first = select(finished + at.w, at.z, listed);
            if (side == 0u) {
                cuts[i].left_slot = slot;
                cuts[i].left_first = first;
            } else {
                cuts[i].right_slot = slot;
                cuts[i].right_first = first;
            }
            if (listed) {
                next_nodes[at.x + 1u] = SahNode(first, count, 0u, at.y);
                for (var t = 0u; t < size.y; t += 1u) { next_tiles[at.y + t].node = at.x; }
            }
            at += size;
        }
    }
}
