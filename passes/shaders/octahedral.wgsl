// Unit vectors in two 16-bit snorms (Meyer et al. 2010; survey by Cigolle et al., JCGT 2014).

fn octahedral_fold(p: vec2f) -> vec2f {
    let s = select(vec2f(-1.0), vec2f(1.0), p >= vec2f(0.0));
    return (vec2f(1.0) - abs(p.yx)) * s;
}

fn encode_normal(n: vec3f) -> u32 {
    let p = n.xy / (abs(n.x) + abs(n.y) + abs(n.z));
    return pack2x16snorm(select(octahedral_fold(p), p, n.z >= 0.0));
}

fn decode_normal(code: u32) -> vec3f {
    let p = unpack2x16snorm(code);
    let z = 1.0 - abs(p.x) - abs(p.y);
    return normalize(vec3f(select(octahedral_fold(p), p, z >= 0.0), z));
}
