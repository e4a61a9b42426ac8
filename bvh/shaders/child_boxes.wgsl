// Box nodes as the traversal reads them: their type, the bounds of four children from both kinds,
// and in which order a ray visits them.

const NO_KEY: u32 = 0xffffffffu;

fn is_box(node: u32) -> bool {
    if (HAS_FP16) { return (node & 6u) == NODE_BOX_FP16; } // types 4 and 5
    return (node & 7u) == NODE_BOX_FP32;
}

// Entry distances are not negative, so their bits order like numbers. The two lowest bits carry
// the slot: the nearest child is one `min` away and needs no pointer swaps.
fn child_key(entry: f32, hit: bool, child: u32, slot: u32) -> u32 {
    let distance = select(0u, bitcast<u32>(entry) & 0xfffffffcu, SORT);
    return select(NO_KEY, distance | slot, hit && child != INVALID_POINTER);
}

// Bounds of the four children of a box node, one coordinate of all four in each vector.
struct ChildBounds {
    min_x: vec4f,
    min_y: vec4f,
    min_z: vec4f,
    max_x: vec4f,
    max_y: vec4f,
    max_z: vec4f,
}

fn load_fp16_bounds(at: u32) -> ChildBounds {
    return fp16_bounds(bvh[at + 1u], bvh[at + 2u], bvh[at + 3u]);
}

// Three words a child: xy of min, then z of min and x of max, then yz of max.
fn fp16_bounds(a: vec4u, b: vec4u, c: vec4u) -> ChildBounds {
    let xy0 = unpack2x16float(a.x);
    let xy1 = unpack2x16float(a.w);
    let xy2 = unpack2x16float(b.z);
    let xy3 = unpack2x16float(c.y);
    let zx0 = unpack2x16float(a.y);
    let zx1 = unpack2x16float(b.x);
    let zx2 = unpack2x16float(b.w);
    let zx3 = unpack2x16float(c.z);
    let yz0 = unpack2x16float(a.z);
    let yz1 = unpack2x16float(b.y);
    let yz2 = unpack2x16float(c.x);
    let yz3 = unpack2x16float(c.w);
    return ChildBounds(
        vec4f(xy0.x, xy1.x, xy2.x, xy3.x), vec4f(xy0.y, xy1.y, xy2.y, xy3.y),
        vec4f(zx0.x, zx1.x, zx2.x, zx3.x), vec4f(zx0.y, zx1.y, zx2.y, zx3.y),
        vec4f(yz0.x, yz1.x, yz2.x, yz3.x), vec4f(yz0.y, yz1.y, yz2.y, yz3.y));
}

fn load_fp32_bounds(at: u32) -> ChildBounds {
    return fp32_bounds(load_f(at + 1u), load_f(at + 2u), load_f(at + 3u), load_f(at + 4u),
        load_f(at + 5u), load_f(at + 6u));
}

// Six words a child: child 0 is a and b.xy, child 1 b.zw and c, child 2 d and e.xy, child 3 the
// rest.
fn fp32_bounds(a: vec4f, b: vec4f, c: vec4f, d: vec4f, e: vec4f, f: vec4f) -> ChildBounds {
    return ChildBounds(
        vec4f(a.x, b.z, d.x, e.z), vec4f(a.y, b.w, d.y, e.w), vec4f(a.z, c.x, d.z, f.x),
        vec4f(a.w, c.y, d.w, f.y), vec4f(b.x, c.z, e.x, f.z), vec4f(b.y, c.w, e.y, f.w));
}

// The same of either format: what both begin with is read once.
fn load_either_bounds(at: u32, is_fp16: bool) -> ChildBounds {
    let a = bvh[at + 1u];
    let b = bvh[at + 2u];
    let c = bvh[at + 3u];
    if (is_fp16) { return fp16_bounds(a, b, c); }
    return fp32_bounds(bitcast<vec4f>(a), bitcast<vec4f>(b), bitcast<vec4f>(c), load_f(at + 4u),
        load_f(at + 5u), load_f(at + 6u));
}
