// What the stages of the reinsertion share: see bvh/gpu/reinsertion_records.py.

#import "bvh/gpu/shaders/box.wgsl"

// Where a node's word lies in buffers that have one for every node.
fn place(node: i32, nodes: u32) -> u32 {
    return select(nodes + u32(~node), u32(max(node, 0)), node >= 0);
}

fn sibling_of(pair: vec2i, node: i32) -> i32 {
    return select(pair.x, pair.y, pair.x == node);
}

fn replaced(pair: vec2i, old: i32, fresh: i32) -> vec2i {
    return select(vec2i(fresh, pair.y), vec2i(pair.x, fresh), pair.y == old);
}

// Keeps a rounded value as it is: drivers fuse and rearrange what they can see through.
fn rounded(value: f32, zero: u32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ zero);
}

// Half the surface area in units of the scaled root.
fn scaled_area(box: Box, scale: f32, zero: u32) -> f32 {
    let side = min(box.high - box.low, vec3f(LARGEST)) * scale;
    let two = rounded(rounded(side.x * side.y, zero) + rounded(side.y * side.z, zero), zero);
    return rounded(two + rounded(side.z * side.x, zero), zero);
}
