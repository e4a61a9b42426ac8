// One workgroup: where each tile's lefts begin, the next level's nodes and tiles, and the heads of
// nodes that are left to the sweep. See bvh/gpu/binned_sah_stages.py.

#import bvh.gpu.binned_sah_records
#import "bvh/gpu/shaders/lane_runs.wgsl"

@group(0) @binding(0) var<uniform> parameters: SahParameters;
@group(0) @binding(1) var<storage, read> nodes: array<SahNode>;
@group(0) @binding(2) var<storage, read_write> splits: array<SahSplit>;
@group(0) @binding(3) var<storage, read_write> tiles: array<SahTile>;
@group(0) @binding(4) var<storage, read_write> next_nodes: array<SahNode>;
@group(0) @binding(5) var<storage, read_write> next_tiles: array<SahTile>;
@group(0) @binding(6) var<storage, read_write> heads: array<SahHead>;

fn tiles_of(count: u32) -> u32 {
    return select(0u, (count + SAH_TILE - 1u) / SAH_TILE, count > SWEEP);
}

// The next slot and the next tile, after the child was listed there.
fn list_child(child: SahNode, at: vec2u, slot: ptr<function, u32>) -> vec2u {
    if (child.count > SWEEP) {
        *slot = at.x;
        next_nodes[at.x + 1u] = SahNode(child.first, child.count, child.id, at.y);
        let tile_count = tiles_of(child.count);
        for (var t = 0u; t < tile_count; t += 1u) { next_tiles[at.y + t].node = at.x; }
        return vec2u(at.x + 1u, at.y + tile_count);
    }
    if (child.count > 1u) {
        heads[child.first] = SahHead(child.count, parameters.level + 2u, child.id);
    }
    return at;
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    let node_count = nodes[0].first;
    let tile_count = nodes[0].count;
    if (node_count == 0u) {
        if (lane == 0u) { next_nodes[0] = SahNode(0u, 0u, 0u, 0u); }
        return;
    }
    // Every lane takes a run of nodes and a run of tiles.
    let own_nodes = lane_run(lane, node_count);
    let own_tiles = lane_run(lane, tile_count);
    var mine = vec4u(0u); // listed children, their tiles, lefts
    for (var i = own_nodes.x; i < own_nodes.y; i += 1u) {
        let left = splits[i].left_count;
        let right = nodes[i + 1u].count - left;
        mine.x += select(0u, 1u, left > SWEEP) + select(0u, 1u, right > SWEEP);
        mine.y += tiles_of(left) + tiles_of(right);
    }
    for (var t = own_tiles.x; t < own_tiles.y; t += 1u) { mine.z += tiles[t].lefts; }
    var at = scan_lanes(lane, mine);
    let total = partial[255];
    if (lane == 0u) { next_nodes[0] = SahNode(total.x, total.y, 0u, 0u); }
    for (var i = own_nodes.x; i < own_nodes.y; i += 1u) {
        let node = nodes[i + 1u];
        let left = splits[i].left_count;
        var slot = NO_SLOT;
        var next = list_child(SahNode(node.first, left, node.id + 1u, 0u), at.xy, &slot);
        splits[i].left_slot = slot;
        slot = NO_SLOT;
        let right = SahNode(node.first + left, node.count - left, node.id + left, 0u);
        next = list_child(right, next, &slot);
        splits[i].right_slot = slot;
        at = vec4u(next, at.zw);
    }
    var lefts = at.z;
    for (var t = own_tiles.x; t < own_tiles.y; t += 1u) {
        let taken = tiles[t].lefts;
        tiles[t].lefts = lefts;
        lefts += taken;
    }
}
