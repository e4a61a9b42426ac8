// Direct light on visible surfaces: keeps what each pixel receives if the light is seen, and sends
// a shadow ray where that is not black.
#import passes.frame_uniforms
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/light.wgsl"
#import "passes/shaders/sample_light.wgsl"
#import "passes/shaders/shadow_slot.wgsl"
#import "passes/shaders/tone_map.wgsl"
#import $push
#import passes.rays.shadow

alias PushRecord = ShadowRay;

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var visibility: texture_2d<u32>;
@group(0) @binding(4) var surface: texture_2d<u32>;
@group(0) @binding(5) var<storage, read_write> direct: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> push_queue: PushQueue;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    let inside = pixel.x < frame.width && pixel.y < frame.height;
    let index = pixel.y * frame.width + pixel.x;
    var seen = vec4u(NOTHING);
    var s: GBufferSurface;
    var view: vec3f;
    var point: SurfacePoint;
    if (inside) {
        seen = textureLoad(visibility, pixel, 0);
        if (seen.x != NOTHING) {
            s = unpack_surface(textureLoad(surface, pixel, 0));
            view = normalize(-camera_direction(pixel));
            point = surface_point(seen.x, seen.y, bitcast<f32>(seen.z), bitcast<f32>(seen.w));
        }
    }
    for (var number = 0u; number < SHADOW_RAYS; number += 1u) {
        if (number > 0u) { workgroupBarrier(); } // the last push is done with its votes
        clear_votes(lane);
        var wanted = false;
        var ray: ShadowRay;
        if (inside) {
            var radiance = vec3f(0.0);
            if (seen.x != NOTHING) {
                let light = light_sample(index, 0u, number, point.position, s.geometric_normal, s.shading_normal,
                    view, s.base_color, s.metalness, sampled_roughness(s.roughness, s.roughness <= frame.roughness_cutoff));
                radiance = light.radiance;
                wanted = !is_black(radiance);
                if (wanted) {
                    let origin = ray_origin(point, light.to_light);
                    ray = ShadowRay(array<f32, 3>(origin.x, origin.y, origin.z), light.light_uv, shadow_slot(index, 0u, number));
                    vote(lane);
                }
            }
            direct[direct_place(index, number)] = pack_radiance(radiance, 0.0);
        }
        push(lane, wanted, ray);
    }
}
