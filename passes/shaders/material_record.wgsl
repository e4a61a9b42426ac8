// Materials in `tables`. Needs `frame` and `tables`.

const MATERIAL_VEC4S: u32 = 4u;

// What a material sends out by itself.
fn material_emissive(material: u32) -> vec3f {
    return bitcast<vec4f>(tables[frame.material_base + material * MATERIAL_VEC4S + 1u]).xyz;
}
