// A hit's material by the frame's grouping of hit records. Needs what material.wgsl needs, and
// `hit_records`, read by a fine hit table alone.
#import "passes/shaders/material.wgsl"
#import passes.hit_records

override FINE_TABLE: bool = false; // every object has a record of its own (passes/hit_records.py)

fn hit_material(object: u32, point: SurfacePoint, cone_width: f32, cosine: f32) -> SurfaceMaterial {
    if (!FINE_TABLE) { return material_at(point, cone_width, cosine); }
    let at = vec2u(object % HIT_RECORDS_A_ROW * MATERIAL_VEC4S, object / HIT_RECORDS_A_ROW);
    return material_of(textureLoad(hit_records, at, 0), textureLoad(hit_records, at + vec2u(1u, 0u), 0),
        textureLoad(hit_records, at + vec2u(2u, 0u), 0), point, cone_width, cosine);
}
