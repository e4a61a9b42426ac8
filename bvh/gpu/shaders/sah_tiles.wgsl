// Primitives of one node that a workgroup takes at a time.

// First and last place in its node, [x, y), of a tile.
fn tile_places(tile: u32, node: SahNode) -> vec2u {
    let begin = (tile - node.first_tile) * SAH_TILE;
    return vec2u(begin, min(begin + SAH_TILE, node.count));
}
