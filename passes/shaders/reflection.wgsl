// Sends one reflection ray from each pixel that is smooth enough, or from those of a block of pixels
// that send in this frame (reflection_block.wgsl), a lane a block, in rounds of one ray each. What a rough lobe
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

var<workgroup> most_senders: atomic<u32>;
var<workgroup> round_count: u32;

// In uniform control flow: rounds that the workgroup's block with the most senders needs.
fn count_senders(lane: u32, senders: u32) -> u32 {
    if (!NARROW_OWN) { return 1u; }
    if (lane == 0u) { atomicStore(&most_senders, 1u); }
    workgroupBarrier();
    atomicMax(&most_senders, senders);
    workgroupBarrier();
    if (lane == 0u) { round_count = atomicLoad(&most_senders); }
    return workgroupUniformLoad(&round_count);
}

// The ray of a pixel that sends one; a sample that the lobe loses brings nothing, and is none.
struct PixelRay {
    ray: ReflectionRay,
    sent: bool,
}

fn pixel_ray(pixel: vec2u) -> PixelRay {
    let index = pixel.y * frame.width + pixel.x;
    let sent = sent_reflection(pixel, index);
    let direction = sent.ray.direction;
    if (sent.ray.raised) { atomicAdd(&push_queue.header.replaced, 1u); }
    if (sent.ray.lost) {
        atomicAdd(&push_queue.header.lost, 1u);
        let place = reflected_place(index);
        reflected[place] = pack_radiance(vec3f(0.0), MISS_DISTANCE);
        for (var i = 1u; i <= REFLECTION_BOUNCES * SHADOW_RAYS; i += 1u) { reflected[place + i] = vec2u(0u); }
    }
    let origin = ray_origin(sent.point, direction);
    let pixel_spread = ray_footprint(pixel, sent.s.roughness) * frame.pixel_spread;
    let width = pixel_spread * length(sent.point.position - frame.camera_origin.xyz);
    // A rough lobe spreads the cone by about its own angular width.
    let spread = pixel_spread + sent.s.roughness * sent.s.roughness;
    let ray = ReflectionRay(array<f32, 3>(origin.x, origin.y, origin.z), index,
        array<f32, 3>(direction.x, direction.y, direction.z), pack2x16float(vec2f(min(width, 6.0e4), spread)));
    return PixelRay(ray, !sent.ray.lost);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let block = tile_pixel(group, lane);
    var sending = 0u;
    if (in_picture(REFLECTION_BLOCK * block)) { sending = sending_turns(block); }
    let rounds = count_senders(lane, countOneBits(sending));
    var found: PixelRay;
    for (var round = 0u; round < rounds; round += 1u) {
        clear_votes(lane);
        found.sent = false;
        if (sending != 0u) {
            found = pixel_ray(pixel_in_turn(block, firstTrailingBit(sending)));
            sending &= sending - 1u;
            if (found.sent) { vote(lane); }
        }
        push(lane, found.sent, found.ray);
        if (NARROW_OWN) { workgroupBarrier(); } // before votes are cleared
    }
}
