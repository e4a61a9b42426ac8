// The corners of a triangle block under a refit: see bvh/gpu/refit.py. The stage binds `parameters`,
// `words: array<vec4i>` and `counts`.

// V0 to V4; e repeats c where the block has no V4.
struct Corners {
    a: vec3i,
    b: vec3i,
    c: vec3i,
    d: vec3i,
    e: vec3i,
}

fn finite(v: vec3i) -> bool {
    return all((v & vec3i(0x7f800000)) != vec3i(0x7f800000));
}

// First vec4 of a block.
fn block_place(block: u32) -> u32 {
    return 4u * (parameters.base_unit + parameters.leaf_unit + block);
}

fn all_finite(v: Corners) -> bool {
    return finite(v.a) && finite(v.b) && finite(v.c) && finite(v.d) && finite(v.e);
}

// Every triangle of a block has V2: with it in the place of another corner, a triangle has no area,
// and no ray hits it. Without V2 there is no triangle left, and the block shrinks to where V2 was.
fn mend(block: u32, v: Corners) -> Corners {
    atomicAdd(&counts[PENDING_NONFINITE], 1u);
    if (!finite(v.c)) {
        let at = block_place(block);
        let c = vec3i(words[at + 1u].zw, words[at + 2u].x);
        return Corners(c, c, c, c, c);
    }
    return Corners(select(v.c, v.a, finite(v.a)), select(v.c, v.b, finite(v.b)), v.c,
        select(v.c, v.d, finite(v.d)), select(v.c, v.e, finite(v.e)));
}

fn corners_box(v: Corners) -> OrderedBox {
    let a = ordered(v.a);
    let b = ordered(v.b);
    let c = ordered(v.c);
    let d = ordered(v.d);
    let e = ordered(v.e);
    return OrderedBox(min(min(min(a, b), min(c, d)), e), max(max(max(a, b), max(c, d)), e));
}
