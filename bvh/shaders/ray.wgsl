// Rays and hits as every kernel passes them around.

// t is in units of `direction`, which is never renormalised. t_min < t < t_max is open.
struct Ray {
    origin: vec3f,
    t_min: f32,
    direction: vec3f,
    t_max: f32,
}

// A miss has object == MISS. u and v belong to vertices 1 and 2 of the original triangle.
struct Hit {
    t: f32,
    u: f32,
    v: f32,
    object: u32,
    primitive: u32,
    instance: u32,
}

const MISS: u32 = 0xffffffffu;
const INFINITE_T: f32 = 3.4028235e38;
