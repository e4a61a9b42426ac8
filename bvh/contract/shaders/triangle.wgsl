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

struct Factors {
    a: vec4u,
    b: vec4u,
}

// left.a * left.b - right.a * right.b, each operation rounded: edge functions and cross products.
fn difference_of_products(left: Factors, right: Factors) -> vec4u {
    var products: array<vec4u, 2>;
    for (var side = 0u; side < 2u; side += 1u) {
        let second = side == 1u;
        products[side] = mul4(select(left.a, right.a, second), select(left.b, right.b, second));
    }
    return sub4(products[0], products[1]);
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
    // Loops instead of lines: see arithmetic_exact.wgsl. r: the vertices from the origin, by axis.
    var r: array<vec4u, 3>;
    for (var axis = 0u; axis < 3u; axis += 1u) {
        let vertices = vec4u(triangle.a[axis], triangle.b[axis], triangle.c[axis], 0u);
        r[axis] = sub4(vertices, vec4u(vec3u(ray.origin[axis]), 0u));
    }
    let rx = r[x];
    let ry = r[y];
    let rz = r[z];
    // px = rx dz - dx rz and py = ry dz - dy rz: projected along the ray and scaled by dz, which
    // saves the division. Then the edges, second.x first.y - second.y first.x: edge i runs from
    // vertex i + 1 ("first") to vertex i + 2 ("second").
    var px: vec4u;
    var py: vec4u;
    var edges: vec4u;
    for (var step = 0u; step < 3u; step += 1u) {
        var left = Factors(rx, dz);
        var right = Factors(dx, rz);
        if (step == 1u) {
            left = Factors(ry, dz);
            right = Factors(dy, rz);
        } else if (step == 2u) {
            left = Factors(px.zxyw, py.yzxw);
            right = Factors(py.zxyw, px.yzxw);
        }
        let value = difference_of_products(left, right);
        if (step == 0u) { px = value; } else if (step == 1u) { py = value; } else { edges = value; }
    }
    // The weights are edge_i dz; t_num sums edge_i rz_i and t_denom the weights, from the left.
    var weights: vec4u;
    var sums: vec4u;
    for (var i = 0u; i < 3u; i += 1u) {
        let terms = mul4(vec4u(edges[i], edges[i], 0u, 0u), vec4u(rz[i], dz.x, 0u, 0u));
        weights[i] = terms.y;
        if (i == 0u) { sums = terms; } else { sums = add4(sums, terms); }
    }
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

fn intersect_triangle_gpurt(triangle: Triangle, ray: NodeRay) -> TriangleWords {
    // e1 = b - a, e2 = c - a, e3 = origin - a.
    var e: array<vec4u, 3>;
    for (var i = 0u; i < 3u; i += 1u) {
        let point = select(select(triangle.b, triangle.c, i == 1u), ray.origin, i == 2u);
        e[i] = sub4(vec4u(point, 0u), vec4u(triangle.a, 0u));
    }
    let e1 = e[0];
    let e2 = e[1];
    let e3 = e[2];
    let d = vec4u(ray.direction, 0u);
    // s1 = d x e2, s2 = e3 x e1.
    var s: array<vec4u, 2>;
    for (var i = 0u; i < 2u; i += 1u) {
        let p = select(d, e3, i == 1u);
        let q = select(e2, e1, i == 1u);
        s[i] = difference_of_products(Factors(p.yzxw, q.zxyw), Factors(p.zxyw, q.yzxw));
    }
    let s1 = s[0];
    let s2 = s[1];
    // Four dot products at once: t_num = e2.s2, t_denom = s1.e1, I = e3.s1, J = d.s2.
    var dots: vec4u;
    for (var axis = 0u; axis < 3u; axis += 1u) {
        let terms = mul4(vec4u(e2[axis], s1[axis], e3[axis], d[axis]),
                         vec4u(s2[axis], e1[axis], s1[axis], s2[axis]));
        if (axis == 0u) { dots = terms; } else { dots = add4(dots, terms); }
    }
    // Correctly rounded quotients t, u, v.
    var quotients: vec3u;
    for (var i = 0u; i < 3u; i += 1u) {
        quotients[i] = div(select(dots.x, select(dots.z, dots.w, i == 2u), i > 0u), dots.y);
    }
    let t = quotients.x;
    let u = quotients.y;
    let v = quotients.z;
    let sum = add4(vec4u(u), vec4u(v)).x;
    let hit = !(less(u, 0u) || less(ONE, u) || less(v, 0u) || less(ONE, sum) || less(t, 0u));
    // On a miss the weight of slot 0 is taken from the overwritten denominator.
    let numerator = select(INFINITY, dots.x, hit);
    let denominator = select(ONE, dots.y, hit);
    var rest = vec4u(denominator);
    for (var i = 0u; i < 2u; i += 1u) {
        rest = sub4(rest, vec4u(select(dots.z, dots.w, i == 1u)));
    }
    // Source 3 reads past the emulation's array: 0 (ours).
    return TriangleWords(numerator, denominator, vec4u(rest.x, dots.z, dots.w, 0u), hit);
}
