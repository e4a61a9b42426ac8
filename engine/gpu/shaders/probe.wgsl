// What this adapter's float32 arithmetic does with given operands: see engine/gpu/probe.py.

struct Parameters {
    zero: u32, // 0, unknown to the compiler
    count: u32,
}

struct Answers {
    plain: f32, // a * b + c written in one expression
    named: f32, // with the product in a `let`
    barrier: f32, // with the product's bits through an exclusive or
    fused: f32, // the built-in fma
    factor: f32, // a * b + c * b, which may come back as (a + c) * b
    sum: f32,
    product: f32,
    quotient: f32,
    flags: u32, // bit 0: a != a; bit 1: a == 0; bit 2: a < b
}

@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read> operands: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> answers: array<Answers>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= parameters.count) { return; }
    let a = operands[id.x].x;
    let b = operands[id.x].y;
    let c = operands[id.x].z;
    let product = a * b;
    let kept = bitcast<f32>(bitcast<u32>(a * b) ^ parameters.zero);
    answers[id.x] = Answers(a * b + c, product + c, kept + c, fma(a, b, c), a * b + c * b, a + b, a * b, a / b,
        select(0u, 1u, a != a) | select(0u, 2u, a == 0.0) | select(0u, 4u, a < b));
}
