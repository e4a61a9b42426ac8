// Fills the $block slot: blocks of one to four triangles (bvh/gpu/fan_near.py).
alias Block = vec4u;

fn block_kind(block: Block) -> u32 {
    return dot(select(vec4u(1u), vec4u(0u), block == vec4u(NONE)), vec4u(1u)) - 1u;
}
