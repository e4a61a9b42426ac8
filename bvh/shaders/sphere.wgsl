// Ray/sphere test, and where on a sphere a point lies: see bvh/ray_sphere.py, which is the same.
// Haines, Guenther, Akenine-Moeller, "Precision Improvements for Ray/Sphere Intersection",
// Ray Tracing Gems, chapter 7, 2019.

override HAS_SPHERES: bool = false; // false: type 7 is an unknown node, and no surface is a sphere

// Where the whole line of a ray enters and leaves a sphere, and the outward unit normals there.
struct SphereHit {
    enter: f32,
    leave: f32,
    enter_normal: vec3f,
    leave_normal: vec3f,
    hit: bool,
}

fn test_sphere(origin: vec3f, direction: vec3f, center: vec3f, radius: f32) -> SphereHit {
    let size = abs(direction);
    let exponent = min(bitcast<u32>(max(size.x, max(size.y, size.z))) >> 23u, 253u);
    let scale = bitcast<f32>((254u - exponent) << 23u); // a power of two: nothing is rounded
    let d = direction * scale;
    let f = origin - center;
    let a = dot(d, d);
    let b = -dot(f, d);
    let nearest = f + (b / a) * d; // of the line, from the centre
    let discriminant = radius * radius - dot(nearest, nearest);
    var found: SphereHit;
    if (!(discriminant >= 0.0)) { // where it passes
        found.enter_normal = unit_vector(nearest);
        found.leave_normal = found.enter_normal;
        return found;
    }
    let root = sqrt(discriminant / a);
    let q = b + select(a * root, -a * root, b < 0.0);
    var t0 = 0.0;
    if (q != 0.0) { t0 = (dot(f, f) - radius * radius) / q; }
    let t1 = q / a;
    found.enter = min(t0, t1) * scale;
    found.leave = max(t0, t1) * scale;
    found.enter_normal = unit_vector(nearest - root * d);
    found.leave_normal = unit_vector(nearest + root * d);
    found.hit = true;
    return found;
}

fn unit_vector(v: vec3f) -> vec3f {
    return v / max(sqrt(dot(v, v)), 1.0e-37);
}

// u: longitude about +Y; v: angle from +Y. Both 0 to 1.
fn encode_place(normal: vec3f) -> vec2f {
    return vec2f(0.5 + 0.5 * half_turns(normal.z, normal.x),
        half_turns(sqrt(normal.x * normal.x + normal.z * normal.z), normal.y));
}

fn decode_place(u_in: f32, v_in: f32) -> vec3f {
    let u = clamp(u_in, 0.0, 1.0);
    let v = clamp(v_in, 0.0, 1.0);
    let around = 2.0 * u - 1.0;
    let size = abs(around);
    let ring = sine_of_pi(min(v, 1.0 - v));
    let along = sine_of_pi(min(size, 1.0 - size));
    return unit_vector(vec3f(ring * sine_of_pi(0.5 - size), sine_of_pi(0.5 - v),
        ring * select(along, -along, around < 0.0)));
}

// The angle of (x, y) over pi. WGSL's own atan2 may be off by 4,096 ULPs, its sin by 2^-11.
fn half_turns(y: f32, x: f32) -> f32 {
    let wide = abs(x);
    let tall = abs(y);
    let slope = min(wide, tall) / max(max(wide, tall), 1.0e-37);
    let s = slope * slope;
    var angle = slope * (0.31830985 + s * (-0.10609892 + s * (0.06356405 + s * (-0.04461618
        + s * (0.03153209 + s * (-0.01889714 + s * (0.00769234 + s * -0.00148612)))))));
    if (tall > wide) { angle = 0.5 - angle; }
    if (x < 0.0) { angle = 1.0 - angle; }
    return select(angle, -angle, y < 0.0);
}

// sin(pi x) for |x| <= 1/2.
fn sine_of_pi(x: f32) -> f32 {
    let s = x * x;
    return x * (3.14159264 + s * (-5.16771008 + s * (2.55007752 + s * (-0.59829129
        + s * 0.07765766))));
}
