// Material parameters at a surface point, textures included.
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/textures.wgsl"

fn texture_at(index: u32) -> Texture {
    let at = frame.texture_base + index * TEXTURE_VEC4S;
    let a = tables[at];
    return Texture(a.x, a.y, a.z, a.w, tables[at + 1u].x, array<u32, 3>());
}

// `cone_width` is the ray cone's width in world units where it meets the surface at `cosine` to
// its normal (Akenine-Moeller et al., "Texture Level of Detail Strategies for Real-Time Ray
// Tracing", Ray Tracing Gems, 2019).
fn mip_level(record: Texture, point: SurfacePoint, cone_width: f32, cosine: f32) -> f32 {
    let texels_across = point.uv_density * sqrt(f32(record.width * record.height));
    return log2(max(texels_across * cone_width / max(cosine, 0.05), 1.0e-6));
}

fn material_at(point: SurfacePoint, cone_width: f32, cosine: f32) -> SurfaceMaterial {
    let at = frame.material_base + point.material * MATERIAL_VEC4S;
    return material_of(tables[at], tables[at + 1u], tables[at + 2u], point, cone_width, cosine);
}

// From the first three vec4s of a material's record, wherever it lies.
fn material_of(
    first: vec4<u32>, second: vec4<u32>, third: vec4<u32>, point: SurfacePoint, cone_width: f32,
    cosine: f32,
) -> SurfaceMaterial {
    let base_color = bitcast<vec4f>(first);
    let emissive_metallic = bitcast<vec4f>(second);
    // third: roughness, alpha cutoff, two texture indices
    var material: SurfaceMaterial;
    var color = base_color.xyz * point.color.xyz;
    material.metalness = emissive_metallic.w;
    material.roughness = bitcast<f32>(third.x);
    material.emissive = emissive_metallic.xyz;
    if (bitcast<i32>(third.z) >= 0) {
        let record = texture_at(third.z);
        color *= sample_texture(record, point.uv, mip_level(record, point, cone_width, cosine)).xyz;
        material.fetches += 1u;
    }
    if (bitcast<i32>(third.w) >= 0) {
        let record = texture_at(third.w);
        let texel = sample_texture(record, point.uv, mip_level(record, point, cone_width, cosine));
        material.roughness *= texel.y;
        material.metalness *= texel.z;
        material.fetches += 1u;
    }
    material.base_color = color;
    return material;
}
