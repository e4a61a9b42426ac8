// Turns ids into the rest of the G-buffer: visibility, surface, and depth along the view axis.
#import passes.frame_uniforms
#import "passes/shaders/material.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/pixel_hit.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var<storage, read> texels: array<u32>;
@group(0) @binding(4) var ids: texture_2d<u32>;
@group(0) @binding(5) var visibility_out: texture_storage_2d<rgba32uint, write>;
@group(0) @binding(6) var surface_out: texture_storage_2d<rgba32uint, write>;
@group(0) @binding(7) var depth_out: texture_storage_2d<r32float, write>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let seen = textureLoad(ids, pixel, 0);
    if (seen.x == NOTHING) {
        textureStore(visibility_out, pixel, vec4u(NOTHING, NOTHING, 0u, 0u));
        textureStore(surface_out, pixel, vec4u(0u));
        textureStore(depth_out, pixel, vec4f(0.0));
        return;
    }
    let direction = camera_direction(pixel);
    let view = normalize(-direction);
    let uv = pixel_hit(seen.x, seen.y, direction);
    let primitive = pixel_primitive(seen.y);
    let point = face_viewer(surface_point(seen.x, primitive, uv.x, uv.y), view);
    let away_from_camera = point.position - frame.camera_origin.xyz;
    let cosine = abs(dot(point.geometric_normal, view));
    let material = material_at(point, frame.pixel_spread * length(away_from_camera), cosine);
    textureStore(visibility_out, pixel, vec4u(seen.x, primitive, bitcast<vec2u>(uv)));
    textureStore(surface_out, pixel, pack_surface(GBufferSurface(point.shading_normal,
        point.geometric_normal, material.base_color, point.material, material.roughness, material.metalness)));
    textureStore(depth_out, pixel, vec4f(dot(away_from_camera, frame.camera_forward.xyz)));
}
