// Sends one reflection ray from each pixel that is smooth enough, or from those whose turn it is in
// their block of pixels (reflection_block.wgsl), a lane a block (sent_reflection.wgsl). What a rough lobe
// sends below the surface that it belongs to, it loses (Heitz 2018, section 5): no ray, no light.
// Directions that had to be raised above the geometric horizon are counted in `replaced`, samples
// that go below the surface in `lost`.
#import passes.frame_uniforms
#import "passes/shaders/reflection_block.wgsl"
#import "passes/shaders/sent_reflection.wgsl"
#import "passes/shaders/shadow_slot.wgsl"
#import "passes/shaders/tone_map.wgsl"
#import $push
#import passes.rays.reflection

alias PushRecord = ReflectionRay;

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var visibility: texture_2d<u32>;
@group(0) @binding(4) var surface: texture_2d<u32>;
@group(0) @binding(5) var<storage, read_write> reflected: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> push_queue: PushQueue;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    clear_votes(lane);
    let block = tile_pixel(group, lane);
    let first = REFLECTION_BLOCK * block;
    let inside = first.x < frame.width && first.y < frame.height;
    var wanted = false;
    var ray: ReflectionRay;
    if (inside) {
        let sender = reflection_sender(block);
        if (sender.sends) {
            let pixel = sender.pixel;
            let index = pixel.y * frame.width + pixel.x;
            let sent = sent_reflection(pixel, index);
            let point = sent.point;
            wanted = !sent.ray.lost;
            let direction = sent.ray.direction;
            if (sent.ray.raised) { atomicAdd(&push_queue.header.replaced, 1u); }
            let origin = ray_origin(point, direction);
            let pixel_spread = f32(REFLECTION_BLOCK) * frame.pixel_spread;
            let width = pixel_spread * length(point.position - frame.camera_origin.xyz);
            // A rough lobe spreads the cone by about its own angular width.
            let spread = pixel_spread + sent.s.roughness * sent.s.roughness;
            ray = ReflectionRay(array<f32, 3>(origin.x, origin.y, origin.z), index,
                array<f32, 3>(direction.x, direction.y, direction.z), pack2x16float(vec2f(min(width, 6.0e4), spread)));
            if (wanted) {
                vote(lane);
            } else {
                atomicAdd(&push_queue.header.lost, 1u);
                let place = reflected_place(index);
                reflected[place] = pack_radiance(vec3f(0.0), MISS_DISTANCE);
                for (var i = 1u; i <= REFLECTION_BOUNCES * SHADOW_RAYS; i += 1u) { reflected[place + i] = vec2u(0u); }
            }
        }
    }
    push(lane, wanted, ray);
}
