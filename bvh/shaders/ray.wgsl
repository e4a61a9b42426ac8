// Rays and hits as every kernel passes them around.

// t is in units of `direction`, which is never renormalised. t_min < t < t_max is open.
struct Ray {
    origin: vec3f,
    t_min: f32,
    direction: vec3f,
    t_max: f32,
}

// A miss has object == MISS. u and v belong to vertices 1 and 2 of the original triangle; of a
// sphere they are the place on it (bvh/shaders/sphere.wgsl).
struct Hit {
    t: f32,
    u: f32,
    v: f32,
    object: u32,
    primitive: u32,
    instance: u32,
}

// What a triangle test found: weights of the block's slots 1 and 2.
struct TriangleHit {
    t: f32,
    w1: f32, // weight of slot 1
    w2: f32, // weight of slot 2
    front: bool,
    hit: bool,
}

const MISS: u32 = 0xffffffffu;
const INFINITE_T: f32 = 3.4028235e38;

// Components below the smallest normal float32 count as zero: drivers differ on whether arithmetic
// keeps, flushes or half-flushes them.
fn flush_denormals(v: vec3f) -> vec3f {
    let bits = bitcast<vec3u>(v);
    return bitcast<vec3f>(select(bits, vec3u(0u), (bits & vec3u(0x7f800000u)) == vec3u(0u)));
}
