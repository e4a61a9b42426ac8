// Sums of two float32 that act as one number of about 46 bits, three at a time: see
// bvh/gpu/two_float.py. Needs `parameters.zero`.

struct Two {
    high: vec3f,
    low: vec3f,
}

// Keeps an operation apart from those around it.
fn kept(v: vec3f) -> vec3f {
    return bitcast<vec3f>(bitcast<vec3u>(v) ^ vec3u(parameters.zero));
}

fn two_sum(a: vec3f, b: vec3f) -> Two {
    let sum = kept(a + b);
    let other = kept(sum - a);
    return Two(sum, kept(kept(a - kept(sum - other)) + kept(b - other)));
}

// Where |a| >= |b|.
fn quick_sum(a: vec3f, b: vec3f) -> Two {
    let sum = kept(a + b);
    return Two(sum, kept(b - kept(sum - a)));
}

fn two_product(a: vec3f, b: vec3f) -> Two {
    let product = kept(a * b);
    let wide_a = kept(a * 4097.0);
    let wide_b = kept(b * 4097.0);
    let a_high = kept(wide_a - kept(wide_a - a));
    let b_high = kept(wide_b - kept(wide_b - b));
    let a_low = kept(a - a_high);
    let b_low = kept(b - b_high);
    var rest = kept(kept(a_high * b_high) - product);
    rest = kept(rest + kept(a_high * b_low));
    rest = kept(rest + kept(a_low * b_high));
    return Two(product, kept(rest + kept(a_low * b_low)));
}

fn add(a: Two, b: Two) -> Two {
    let sum = two_sum(a.high, b.high);
    return quick_sum(sum.high, kept(sum.low + kept(a.low + b.low)));
}

fn multiply(a: Two, b: Two) -> Two {
    let product = two_product(a.high, b.high);
    let cross = kept(kept(a.high * b.low) + kept(a.low * b.high));
    return quick_sum(product.high, kept(product.low + cross));
}

fn negated(a: Two) -> Two {
    return Two(-a.high, -a.low);
}

fn two_cross(a: vec3f, b: vec3f) -> Two {
    return add(two_product(a.yzx, b.zxy), negated(two_product(a.zxy, b.yzx)));
}

// x + y + z of `a` in every component.
fn total(a: Two) -> Two {
    let sum = add(Two(a.high.xxx, a.low.xxx), Two(a.high.yyy, a.low.yyy));
    return add(sum, Two(a.high.zzz, a.low.zzz));
}

// 1 / a, without a division: Newton's steps from a guess by integers. `a` is no denormal.
fn reciprocal(a: Two) -> Two {
    let sign = bitcast<vec3u>(a.high) & vec3u(0x80000000u);
    let size = kept(abs(a.high));
    var guess = bitcast<vec3f>(vec3u(0x7ef311c3u) - bitcast<vec3u>(size));
    for (var i = 0u; i < 4u; i += 1u) {
        guess = kept(guess * kept(2.0 - kept(size * guess)));
    }
    guess = bitcast<vec3f>(bitcast<vec3u>(guess) | sign);
    let product = two_product(a.high, guess);
    let rest = kept(kept(kept(1.0 - product.high) - product.low) - kept(a.low * guess));
    return quick_sum(guess, kept(guess * rest));
}
