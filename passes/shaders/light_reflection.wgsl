// What each pixel is shown of reflections as light of its own, for passes between it and the
// composite: radiance, and the distance of what is reflected, negative where no ray of the pixel's own
// is in it. Where a block of pixels sends one ray,
// with EDGES from the senders nearby whose surfaces are like the pixel's (upsample.wgsl), else as the
// block's ray is. A pixel that none of the four nearest is like takes the likest of the sixteen nearest;
// where none is at all, and where it is too rough, the environment or the probe stands for a ray.
#import passes.frame_uniforms
#import passes.queue
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/surface_albedo.wgsl"
#import "passes/shaders/rough_radiance.wgsl"
#import "passes/shaders/reflection_block.wgsl"
#import "passes/shaders/reflected.wgsl"
#import "passes/shaders/upsample.wgsl"
#import "passes/shaders/sent_weight.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var visibility: texture_2d<u32>;
@group(0) @binding(2) var surface: texture_2d<u32>;
@group(0) @binding(3) var<storage, read> reflected: array<vec2u>;
@group(0) @binding(4) var<storage, read> shadow_results: array<u32>;
@group(0) @binding(5) var<storage, read_write> reflection_light: array<vec2u>;
@group(0) @binding(6) var depth: texture_2d<f32>;
@group(0) @binding(7) var probe: texture_2d<f32>; // read where ROUGH_PROBE
@group(0) @binding(8) var<storage, read_write> reflection_queue: AtomicQueueHeader;
@group(0) @binding(9) var lobe_table: texture_2d<u32>;

override EDGES: bool = false;

// No ray stands for this one: the next one of its own counts for all.
const NO_DISTANCE: f32 = 1.0e-4;

fn without_ray(pixel: vec2u, s: GBufferSurface, view: vec3f, distance: f32) -> vec2u {
    let position = frame.camera_origin.xyz + from_camera(pixel);
    return pack_radiance(surface_albedo(s, view) * rough_radiance(s, view, position), distance);
}

// A distance as it is kept: negative where the pixel sent no ray of its own (borrowed.wgsl).
fn told_distance(distance: f32, own: bool) -> f32 {
    return select(-distance, distance, own);
}

// Packed light of a pixel that is smooth enough for a ray. One that sent a ray is shown that alone: so
// the mean over frames of what is its own is the whole picture's.
fn shown(pixel: vec2u, s: GBufferSurface, view: vec3f) -> vec2u {
    let sender = sender_for(pixel).pixel;
    let own = all(sender == pixel);
    if (own || !EDGES) {
        let index = sender.y * frame.width + sender.x;
        var radiance = reflected_radiance(index);
        if (EDGES) { radiance *= shown_weight(s, view); }
        return pack_radiance(radiance, told_distance(reflected_distance(index), own));
    }
    let r = receiver(pixel, s);
    let corner = nearest_blocks(pixel);
    var found = gather(r, corner, 2, false);
    if (found.weight <= 0.0) {
        found = gather(r, corner - vec2i(1), 4, true);
        if (found.weight <= 0.0) {
            atomicAdd(&reflection_queue.unlike, 1u);
            return without_ray(pixel, s, view, told_distance(NO_DISTANCE, false));
        }
        atomicAdd(&reflection_queue.widened, 1u);
    }
    let light = shown_weight(s, view) * (found.radiance / found.weight);
    return pack_radiance(light, told_distance(found.distance, false));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    var light = pack_radiance(vec3f(0.0), MISS_DISTANCE);
    if (textureLoad(visibility, pixel, 0).x != NOTHING) {
        let s = unpack_surface(textureLoad(surface, pixel, 0));
        let view = normalize(-camera_direction(pixel));
        if (s.roughness <= frame.roughness_cutoff) {
            light = shown(pixel, s, view);
        } else {
            light = without_ray(pixel, s, view, MISS_DISTANCE);
        }
    }
    reflection_light[pixel.y * frame.width + pixel.x] = light;
}
