// Ray against one triangle of a block: contract ledger sections 2 and 8, both rule sets. All
// numbers are bits. A vector's lanes are the three vertices (or edges) and one lane unused.

struct Triangle {
    a: vec3u,
    b: vec3u,
    c: vec3u,
    flags: u32, // the block's flag word
}

struct TriangleWords {
    numerator: u32,
    denominator: u32,
    weights: vec4u, // what the sources 0 to 3 of a flag byte select
    hit: bool,
}

// Types 0 to 3 are V0 V1 V2, V1 V3 V2, V2 V3 V4, V2 V4 V0 of the block's five vertices.
fn load_triangle(node_type: u32) -> Triangle {
    let q0 = load_quad(0u);
    let q1 = load_quad(1u);
    let q2 = load_quad(2u);
    let q3 = load_quad(3u);
    let v0 = q0.xyz;
    let v1 = vec3u(q0.w, q1.xy);
    let v2 = vec3u(q1.zw, q2.x);
    let v3 = q2.yzw;
    let v4 = q3.xyz;
    switch node_type {
        case 0u: { return Triangle(v0, v1, v2, q3.w); }
        case 1u: { return Triangle(v1, v3, v2, q3.w); }
        case 2u: { return Triangle(v2, v3, v4, q3.w); }
        default: { return Triangle(v2, v4, v0, q3.w); }
    }
}

// The reported I and J: weights of the slots that the flag byte names.
fn source_weight(weights: vec4u, source: u32) -> u32 {
    let low = select(weights.x, weights.y, source == 1u);
    return select(low, select(weights.z, weights.w, source == 3u), source >= 2u);
}

fn from_point(point: vec3u, origin: vec3u) -> vec4u {
    return sub4(vec4u(point, 0u), vec4u(origin, 0u));
}

fn intersect_triangle_chapter(triangle: Triangle, ray: NodeRay) -> TriangleWords {
    // The dominant axis goes last, by rotation, ties to x, then y.
    let size = ray.direction & vec3u(MAGNITUDE);
    var x = 1u;
    var y = 2u;
    var z = 0u;
    if (size.x < size.y) {
        x = 2u;
        y = 0u;
        z = 1u;
    }
    if (max(size.x, size.y) < size.z) {
        x = 0u;
        y = 1u;
        z = 2u;
    }
    let dx = vec4u(ray.direction[x]);
    let dy = vec4u(ray.direction[y]);
    let dz = vec4u(ray.direction[z]);
    let a = from_point(triangle.a, ray.origin);
    let b = from_point(triangle.b, ray.origin);
    let c = from_point(triangle.c, ray.origin);
    let rx = vec4u(a[x], b[x], c[x], 0u);
    let ry = vec4u(a[y], b[y], c[y], 0u);
    let rz = vec4u(a[z], b[z], c[z], 0u);
    // Projected along the ray and scaled by dz, which saves the division.
    let px = sub4(mul4(rx, dz), mul4(dx, rz));
    let py = sub4(mul4(ry, dz), mul4(dy, rz));
    // Edge i runs from vertex i + 1 ("first") to vertex i + 2 ("second").
    let edges = sub4(mul4(px.zxyw, py.yzxw), mul4(py.zxyw, px.yzxw));
    let weights = mul4(edges, dz);
    let terms = mul4(edges, rz);
    let partial = add4(vec4u(terms.x, weights.x, 0u, 0u), vec4u(terms.y, weights.y, 0u, 0u));
    let sums = add4(partial, vec4u(terms.z, weights.z, 0u, 0u));
    let numerator = sums.x;
    let denominator = sums.y;

    let front = less(0u, denominator);
    let negative = less4(edges, vec4u(0u)).xyz;
    let positive = less4(vec4u(0u), edges).xyz;
    var hit = !(any(negative) && any(positive));
    hit = hit && (denominator & MAGNITUDE) != 0u && !is_nan(numerator);
    hit = hit && !select(less(0u, numerator), less(numerator, 0u), front);
    // An edge that is exactly zero belongs to one of its two triangles.
    let first = py.yzxw;
    let second = py.zxyw;
    let zero = vec4u(0u);
    let first_zero = (first & vec4u(MAGNITUDE)) == zero;
    let flat = first_zero & ((second & vec4u(MAGNITUDE)) == zero);
    let below = less4(first, zero) | (first_zero & less4(zero, second));
    let excluded = select(below != vec4<bool>(front), less4(zero, py), flat);
    hit = hit && !any(((edges & vec4u(MAGNITUDE)) == zero).xyz & excluded.xyz);
    // Source 3 names no vertex; the emitter answers with the first one's weight.
    return TriangleWords(numerator, denominator, weights.xyzx, hit);
}

fn cross4(a: vec4u, b: vec4u) -> vec4u {
    return sub4(mul4(a.yzxw, b.zxyw), mul4(a.zxyw, b.yzxw));
}

fn intersect_triangle_gpurt(triangle: Triangle, ray: NodeRay) -> TriangleWords {
    let e1 = from_point(triangle.b, triangle.a);
    let e2 = from_point(triangle.c, triangle.a);
    let e3 = from_point(ray.origin, triangle.a);
    let d = vec4u(ray.direction, 0u);
    let s1 = cross4(d, e2);
    let s2 = cross4(e3, e1);
    // Four dot products at once: t_num = e2.s2, t_denom = s1.e1, I = e3.s1, J = d.s2.
    let xs = mul4(vec4u(e2.x, s1.x, e3.x, d.x), vec4u(s2.x, e1.x, s1.x, s2.x));
    let ys = mul4(vec4u(e2.y, s1.y, e3.y, d.y), vec4u(s2.y, e1.y, s1.y, s2.y));
    let zs = mul4(vec4u(e2.z, s1.z, e3.z, d.z), vec4u(s2.z, e1.z, s1.z, s2.z));
    let dots = add4(add4(xs, ys), zs);
    let t = div(dots.x, dots.y);
    let u = div(dots.z, dots.y);
    let v = div(dots.w, dots.y);
    let sum = add4(vec4u(u), vec4u(v)).x;
    let hit = !(less(u, 0u) || less(ONE, u) || less(v, 0u) || less(ONE, sum) || less(t, 0u));
    // On a miss the weight of slot 0 is taken from the overwritten denominator.
    let numerator = select(INFINITY, dots.x, hit);
    let denominator = select(ONE, dots.y, hit);
    let rest = sub4(sub4(vec4u(denominator), vec4u(dots.z)), vec4u(dots.w)).x;
    // Source 3 reads past the emulation's array: 0 (ours).
    return TriangleWords(numerator, denominator, vec4u(rest, dots.z, dots.w, 0u), hit);
}
