// Direct light on visible surfaces: keeps what each pixel receives if the light is seen, and sends
// a shadow ray where that is not black.
#import passes.frame_uniforms
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/light.wgsl"
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
    clear_votes(lane);
    let pixel = tile_pixel(group, lane);
    let inside = pixel.x < frame.width && pixel.y < frame.height;
    let index = pixel.y * frame.width + pixel.x;
    var wanted = false;
    var ray: ShadowRay;
    if (inside) {
        let seen = textureLoad(visibility, pixel, 0);
        var radiance = vec3f(0.0);
        if (seen.x != NOTHING) {
            let s = unpack_surface(textureLoad(surface, pixel, 0));
            let view = normalize(-camera_direction(pixel));
            let point = surface_point(seen.x, seen.y, bitcast<f32>(seen.z), bitcast<f32>(seen.w));
            let light_uv = sample_light(index, PRIMARY_LIGHT_DIMENSION);
            let light = light_from(light_uv, point.position, s.geometric_normal, s.shading_normal, view,
                s.base_color, s.metalness, s.roughness);
            radiance = light.radiance;
            wanted = !is_black(radiance);
            if (wanted) {
                let origin = ray_origin(point, light.to_light);
                ray = ShadowRay(array<f32, 3>(origin.x, origin.y, origin.z), light_uv, shadow_slot(index, 0u, 0u));
                vote(lane);
            }
        }
        direct[direct_place(index, 0u)] = pack_radiance(radiance, 0.0);
    }
    push(lane, wanted, ray);
}
