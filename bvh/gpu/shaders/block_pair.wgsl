// Fills the $block slot: blocks of one or two triangles (bvh/gpu/pairing.py).
alias Block = vec2u;

fn block_kind(block: Block) -> u32 {
    return select(NODE_TRIANGLE_1, NODE_TRIANGLE_0, block.y == NONE);
}
