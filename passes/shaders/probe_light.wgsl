// Lights what a probe sees, a texel of its octahedral square a lane: emission, ambient light, and
// the area lights from their centres as far as the shadow maps let them. `frame` is the view of one of the
// probe's faces, so that the eye is the probe's point.
#import passes.frame_uniforms
#import "passes/shaders/material.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/specular_albedo.wgsl"
#import "passes/shaders/pixel_hit.wgsl"
#import "passes/shaders/light.wgsl"
#import "passes/shaders/environment.wgsl"
#import "passes/shaders/shadow_map.wgsl"
#import "passes/shaders/probe_layout.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var<storage, read> texels: array<u32>;
@group(0) @binding(4) var probe_ids: texture_2d_array<u32>;
@group(0) @binding(5) var shadow_map: texture_depth_2d_array;
@group(0) @binding(6) var<storage, read_write> probe_light: array<vec4f>;
@group(0) @binding(7) var lobe_table: texture_2d<u32>;

struct CubePlace {
    face: u32, // of passes/raster_views.py's CUBE
    pixel: vec2u,
}

fn cube_place(d: vec3f, size: f32) -> CubePlace {
    let a = abs(d);
    var face = select(1u, 0u, d.x >= 0.0);
    var tangent = vec2f(select(d.z, -d.z, d.x >= 0.0), d.y) / a.x;
    if (a.y > a.x && a.y >= a.z) {
        face = select(3u, 2u, d.y >= 0.0);
        tangent = vec2f(d.x, select(d.z, -d.z, d.y >= 0.0)) / a.y;
    } else if (a.z > a.x) {
        face = select(5u, 4u, d.z >= 0.0);
        tangent = vec2f(select(-d.x, d.x, d.z >= 0.0), d.y) / a.z;
    }
    let place = vec2f(0.5 + 0.5 * tangent.x, 0.5 - 0.5 * tangent.y) * size;
    return CubePlace(face, vec2u(clamp(place, vec2f(0.0), vec2f(size - 1.0))));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = (frame.first_group + group.x) * 64u + lane;
    if (index >= PROBE_SIZE * PROBE_SIZE) { return; }
    let place = (vec2f(vec2u(index % PROBE_SIZE, index / PROBE_SIZE)) + 0.5) / f32(PROBE_SIZE);
    let direction = octahedral_direction(place);
    let seen_at = cube_place(direction, f32(textureDimensions(probe_ids).x));
    let seen = textureLoad(probe_ids, seen_at.pixel, seen_at.face, 0);
    if (seen.x == NOTHING) {
        probe_light[index] = vec4f(0.0);
        return;
    }
    let view = -direction;
    let uv = pixel_hit(seen.x, seen.y, direction);
    let point = face_viewer(surface_point(seen.x, pixel_primitive(seen.y), uv.x, uv.y), view);
    let width = frame.pixel_spread * length(point.position - frame.camera_origin.xyz);
    let material = material_at(point, width, abs(dot(point.geometric_normal, view)));
    let n_v = max(dot(point.shading_normal, view), 1.0e-4);
    let specular = specular_albedo(
        reflectance_at_normal(material.base_color, material.metalness), material.roughness, n_v);
    var radiance = material.emissive
        + diffuse_albedo(material.base_color, material.metalness, specular)
            * ambient_radiance(point.shading_normal)
        + specular * environment(reflect(direction, point.shading_normal));
    let centre = vec2f(0.5);
    for (var i = 0u; i < max(frame.light_count, 1u); i += 1u) {
        let light = light_from(pack_light(centre, i), point.position, point.geometric_normal,
            point.shading_normal, view, material.base_color, material.metalness, material.roughness);
        if (!is_black(light.radiance)) {
            radiance += light.radiance * map_visibility(i, point.position, point.geometric_normal, centre);
        }
    }
    probe_light[index] = vec4f(min(radiance, vec3f(6.0e4)), 1.0);
}
