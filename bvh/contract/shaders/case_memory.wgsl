// Fills intersect.wgsl's $memory slot for batches: each instruction has its own node, of which
// `backed_blocks` blocks exist, wherever its pointer says that it lies.

var<private> case_quad: u32; // of the node's word 0 in `cases`
var<private> backed_blocks: u32;

fn open_node(address: vec2u, blocks: u32) -> bool {
    return blocks <= backed_blocks;
}

fn load_quad(index: u32) -> vec4u {
    return cases[case_quad + index];
}
