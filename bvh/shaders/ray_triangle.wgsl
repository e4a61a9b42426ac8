// Watertight ray/triangle test: vertices are projected along the ray, the signs of three edge
// functions decide (Woop, Benthin, Wald, "Watertight Ray/Triangle Intersection", JCGT 2013).
// An edge function that is exactly zero is given to one of the two triangles that share the edge
// by the rule of the emulator helper (contract ledger section 8, step 7; observed).
//
// A shared edge is evaluated with its ends exchanged. Both products must be rounded before they
// are subtracted, or a driver's fused multiply-add makes the two results differ in more than
// sign and rays leak: `rounded` keeps them apart (measured on drivers that fuse everything else).

struct TriangleRay {
    origin: vec3f,
    u: vec3f, // a point's first projected coordinate is dot(u, point - origin)
    v: vec3f,
    w: vec3f, // dot(w, point - origin) is t of the plane through the point across the main axis
    zero: u32, // 0, from a buffer, so that no compiler can fold it away
}

struct TriangleHit {
    t: f32,
    w1: f32, // weight of slot 1
    w2: f32, // weight of slot 2
    front: bool,
    hit: bool,
}

fn prepare_triangle_ray(origin: vec3f, direction: vec3f, zero: u32) -> TriangleRay {
    let size = abs(direction);
    var ray: TriangleRay;
    ray.origin = origin;
    ray.zero = zero;
    // Ties prefer x, then y. The sign of the main component keeps the winding.
    if (size.z > max(size.x, size.y)) {
        let r = 1.0 / direction.z;
        let s = select(1.0, -1.0, direction.z < 0.0);
        ray.u = vec3f(s, 0.0, -s * direction.x * r);
        ray.v = vec3f(0.0, s, -s * direction.y * r);
        ray.w = vec3f(0.0, 0.0, r);
    } else if (size.y > size.x) {
        let r = 1.0 / direction.y;
        let s = select(1.0, -1.0, direction.y < 0.0);
        ray.u = vec3f(0.0, -s * direction.z * r, s);
        ray.v = vec3f(s, -s * direction.x * r, 0.0);
        ray.w = vec3f(0.0, r, 0.0);
    } else {
        let r = 1.0 / direction.x;
        let s = select(1.0, -1.0, direction.x < 0.0);
        ray.u = vec3f(-s * direction.y * r, s, 0.0);
        ray.v = vec3f(-s * direction.z * r, 0.0, s);
        ray.w = vec3f(r, 0.0, 0.0);
    }
    return ray;
}

fn rounded(product: f32, zero: u32) -> f32 {
    return bitcast<f32>(bitcast<u32>(product) ^ zero);
}

fn project(ray: TriangleRay, point: vec3f) -> vec3f {
    let p = point - ray.origin;
    return vec3f(dot(ray.u, p), dot(ray.v, p), dot(ray.w, p));
}

fn edge(p: vec3f, q: vec3f, zero: u32) -> f32 {
    return rounded(p.x * q.y, zero) - rounded(p.y * q.x, zero);
}

// Whether the triangle on this side of an edge through the ray loses it to its neighbour.
fn edge_belongs_elsewhere(first: vec3f, second: vec3f, opposite: vec3f, front: bool) -> bool {
    if (first.y == 0.0 && second.y == 0.0) {
        return opposite.y > 0.0;
    }
    let below = first.y < 0.0 || (first.y == 0.0 && second.y > 0.0);
    return below != front;
}

// a, b, c: projected slots 0, 1, 2. e0 = edge(c, b), e1 = edge(a, c), e2 = edge(b, a).
fn test_projected(
    ray: TriangleRay, t_min: f32, t_max: f32,
    a: vec3f, b: vec3f, c: vec3f, e0: f32, e1: f32, e2: f32,
) -> TriangleHit {
    let lowest = min(e0, min(e1, e2));
    let highest = max(e0, max(e1, e2));
    let determinant = e0 + e1 + e2;
    var result = TriangleHit(0.0, 0.0, 0.0, false, false);
    if ((lowest >= 0.0 || highest <= 0.0) && determinant != 0.0) {
        result.front = (determinant > 0.0) == (ray.w.x + ray.w.y + ray.w.z > 0.0);
        if (e0 == 0.0 && edge_belongs_elsewhere(b, c, a, result.front)) { return result; }
        if (e1 == 0.0 && edge_belongs_elsewhere(c, a, b, result.front)) { return result; }
        if (e2 == 0.0 && edge_belongs_elsewhere(a, b, c, result.front)) { return result; }
        let scale = 1.0 / determinant;
        result.w1 = e1 * scale;
        result.w2 = e2 * scale;
        result.t = (e0 * a.z + e1 * b.z + e2 * c.z) * scale;
        result.hit = result.t > t_min && result.t < t_max;
    }
    return result;
}
