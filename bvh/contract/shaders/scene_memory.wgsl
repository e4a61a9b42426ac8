// Fills intersect.wgsl's $memory slot over a whole scene: guest address 0 is the first byte of the
// buffer `bvh`, and what lies behind its end is not there.

var<private> node_quad: u32; // of the node's word 0 in `bvh`

fn scene_units() -> u32 {
    return arrayLength(&bvh) >> 2u;
}

fn open_node(address: vec2u, blocks: u32) -> bool {
    node_quad = address.x << 2u;
    let units = scene_units();
    return address.y == 0u && address.x < units && blocks <= units - address.x;
}

fn load_quad(index: u32) -> vec4u {
    return bvh[node_quad + index];
}
