// Watertight ray/triangle test: vertices are projected along the ray, the signs of three edge
// functions decide (Woop, Benthin, Wald, "Watertight Ray/Triangle Intersection", JCGT 2013).
// An edge function that rounds to zero is evaluated again exactly; one that is zero indeed goes to
// one of the two triangles by a rule that shifts the ray by two infinitesimals (simulation of
// simplicity; equal to the emulator helper's rule in contract ledger section 8, step 7, observed).
//
// A shared edge is evaluated with its ends exchanged. Both products must be rounded before they
// are subtracted, or a driver's fused multiply-add makes the two results differ in more than
// sign and rays leak: `rounded` keeps them apart (measured on drivers that fuse everything else).

#import "bvh/shaders/ray.wgsl"

// Edges are evaluated again without rounding where t would lose more than about 2e-5 of itself:
// on slivers, whose area is hardly larger than the edges' error, and on hits much nearer than the
// triangle is long.
const DOUBT: f32 = 0.0078125; // 2^-7; three roundings of 2^-24 over it

struct TriangleRay {
    origin: vec3f,
    u: vec3f, // a point's first projected coordinate is dot(u, point - origin)
    v: vec3f,
    w: vec3f, // dot(w, point - origin) is t of the plane through the point across the main axis
    zero: u32, // 0, from a buffer, so that no compiler can fold it away
}

fn prepare_triangle_ray(origin: vec3f, given_direction: vec3f, zero: u32) -> TriangleRay {
    let direction = flush_denormals(given_direction);
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

// What rounding took from the product a * b (Dekker 1971). The halves have 12 bits, so that each
// partial product is exact and no contraction can change it.
fn product_error(a: f32, b: f32, product: f32) -> f32 {
    let ah = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let bh = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    let al = a - ah;
    let bl = b - bh;
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl;
}

// edge(q, p), without the rounding of its products.
fn exact_edge(p: vec3f, q: vec3f, zero: u32) -> f32 {
    let left = rounded(q.x * p.y, zero);
    let right = rounded(q.y * p.x, zero);
    return (left - right) + (product_error(q.x, p.y, left) - product_error(q.y, p.x, right));
}

// The sign of an edge function from `first` to `second` whose rounded value is zero: true for
// positive.
fn zero_edge_is_positive(ray: TriangleRay, first: vec3f, second: vec3f) -> bool {
    let value = exact_edge(first, second, ray.zero);
    if (value != 0.0) { return value > 0.0; }
    if (first.y == second.y) { return second.x > first.x; }
    return (second.y > first.y) != (ray.w.x + ray.w.y + ray.w.z < 0.0);
}

fn largest_of(p: vec3f) -> f32 {
    return max(abs(p.x), abs(p.y));
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
        if (lowest == 0.0 || highest == 0.0) {
            let positive = determinant > 0.0;
            if (e0 == 0.0 && zero_edge_is_positive(ray, b, c) != positive) { return result; }
            if (e1 == 0.0 && zero_edge_is_positive(ray, c, a) != positive) { return result; }
            if (e2 == 0.0 && zero_edge_is_positive(ray, a, b) != positive) { return result; }
        }
        let reach = max(max(largest_of(a), largest_of(b)), largest_of(c));
        let depth = max(max(abs(a.z), abs(b.z)), abs(c.z));
        var x0 = e0;
        var x1 = e1;
        var x2 = e2;
        var numerator = e0 * a.z + e1 * b.z + e2 * c.z;
        if (abs(numerator) < DOUBT * reach * reach * depth) {
            x0 = exact_edge(b, c, ray.zero);
            x1 = exact_edge(c, a, ray.zero);
            x2 = exact_edge(a, b, ray.zero);
            numerator = x0 * a.z + x1 * b.z + x2 * c.z;
        }
        let scale = 1.0 / (x0 + x1 + x2);
        result.w1 = x1 * scale;
        result.w2 = x2 * scale;
        result.t = numerator * scale;
        result.hit = result.t > t_min && result.t < t_max;
    }
    return result;
}
