// Whether a tested triangle becomes a ray's hit: by its flags, by its material's holes, and by where
// a ray goes on that was rejected before.

override DEFER: bool = false; // candidates wait for their test in a queue
override RESUMED: bool = false; // rays go on behind a candidate that was rejected

// Where a ray goes on: behind this triangle, in the order of visits. Nothing before it is asked again.
struct Resume {
    t: f32,
    place: u32, // block << 2 | triangle
    instance: u32,
    passed: bool,
}

var<private> resume: Resume;
// What the ray hits is a candidate whose test is outstanding, and where it is.
struct Tentative {
    waits: bool,
    place: u32,
}
var<private> tentative: Tentative;

// A candidate whose test stands behind the loop that found it (UNDER_MASK): the triangle of the block
// that the lane is at. `next` is the first of that block that has not been considered.
struct Asked {
    waits: bool,
    next: u32,
    triangle: u32,
    hit: TriangleHit,
}
var<private> asked: Asked;

// Whether there are any.
override ASKS_APART: bool = UNDER_MASK && HAS_ALPHA && !DEFER;

struct Weights {
    u: f32,
    v: f32,
}

// Slot weights -> weights of the original triangle's vertices 1 and 2, by the block's flag byte.
fn original_weights(flags: u32, triangle: u32, w1: f32, w2: f32) -> Weights {
    let sources = flags >> (8u * triangle);
    var i = sources & 3u;
    var j = (sources >> 2u) & 3u;
    if (HAS_FANS && triangle >= 2u) { // slots apex, rim, rim; tested as rim, rim, apex
        i = (i + 2u) % 3u;
        j = (j + 2u) % 3u;
    }
    let w0 = 1.0 - w1 - w2;
    return Weights(select(select(w0, w1, i == 1u), w2, i == 2u),
                   select(select(w0, w1, j == 1u), w2, j == 2u));
}

// Whether a tested triangle of a block becomes the hit; `kind` is the type of the pointer to it,
// `base` the unit where its container starts. Not yet where it is `asked` for its alpha test, which
// it `may_wait` for.
fn consider(
    hit: TriangleHit, block: u32, kind: u32, triangle: u32, instance_unit: u32, base: u32,
    may_wait: bool,
) -> bool {
    count_triangle(hit.hit);
    if (!hit.hit) { return false; }
    if (!HAS_ALPHA && (RAY_FLAGS & RAY_CULLS) == 0u) { return true; }
    let flags = bvh[instance_unit << 2u].w;
    let tail = bvh[(block << 2u) + 3u];
    var geometry = tail.x;
    if (HAS_FANS && kind >= NODE_TRIANGLE_2) { geometry = fan_geometry(tail.w); }
    let verdict = judge(hit.front, geometry, flags);
    if (verdict != ASK) {
        if (DEFER && verdict == COUNTS) { tentative.waits = false; }
        return verdict == COUNTS;
    }
    // An any-hit ray waits for one candidate; the next of its block comes when that is rejected.
    if (DEFER && ANY_HIT && tentative.waits) { return false; }
    if (RESUMED && !resume.passed && (ANY_HIT || hit.t == resume.t)) {
        resume.passed = resume.place == ((block << 2u) | triangle)
            && resume.instance == bvh[(instance_unit << 2u) + 4u].x;
        return false;
    }
    if (DEFER) {
        tentative.waits = true;
        return true;
    }
    if (ASKS_APART && may_wait) {
        asked = Asked(true, triangle + 1u, triangle, hit);
        return false;
    }
    return passes_test(hit, tail, flags, block, triangle, base);
}

// The alpha test of a triangle; `tail` and `flags` are its block's last words and its instance's.
fn passes_test(
    hit: TriangleHit, tail: vec4u, flags: u32, block: u32, triangle: u32, base: u32,
) -> bool {
    count_any_hit();
    if ((RAY_FLAGS & RAY_REJECT) != 0u) { return false; }
    let weights = original_weights(tail.w, triangle, hit.w1, hit.w2);
    let ids = block_ids(tail, block, triangle, base);
    let object = (flags & INSTANCE_INDEX_MASK) + (ids.geometry & GEOMETRY_INDEX_MASK);
    return accept_candidate(object, ids.primitive, weights.u, weights.v);
}
