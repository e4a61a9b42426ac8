// Sends one ray from each pixel that sees a surface, cosine-weighted about the shading normal. A
// direction below the geometric horizon would start inside the surface: it is mirrored up again and
// counted in `replaced`.
#import passes.frame_uniforms
#import "passes/shaders/surface.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/sample_number.wgsl"
#import $push
#import passes.rays.occlusion

alias PushRecord = OcclusionRay;

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> geometry: array<u32>;
@group(0) @binding(3) var visibility: texture_2d<u32>;
@group(0) @binding(4) var surface: texture_2d<u32>;
@group(0) @binding(5) var<storage, read_write> push_queue: PushQueue;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    clear_votes(lane);
    let pixel = tile_pixel(group, lane);
    let inside = pixel.x < frame.width && pixel.y < frame.height;
    let index = pixel.y * frame.width + pixel.x;
    var wanted = false;
    var ray: OcclusionRay;
    if (inside) {
        let seen = textureLoad(visibility, pixel, 0);
        if (seen.x != NOTHING) {
            wanted = true;
            let s = unpack_surface(textureLoad(surface, pixel, 0));
            let point = surface_point(seen.x, seen.y, bitcast<f32>(seen.z), bitcast<f32>(seen.w));
            let local = sample_cosine(
                sample_number(index, OCCLUSION_DIMENSION),
                sample_number(index, OCCLUSION_DIMENSION + 1u));
            let b = basis(s.shading_normal);
            var direction = local.x * b.tangent + local.y * b.bitangent + local.z * s.shading_normal;
            let height = dot(direction, s.geometric_normal);
            if (height <= LEAST_HEIGHT) {
                direction += (2.0 * LEAST_HEIGHT - 2.0 * height) * s.geometric_normal;
                atomicAdd(&push_queue.header.replaced, 1u);
            }
            let origin = ray_origin(point, direction);
            ray = OcclusionRay(array<f32, 3>(origin.x, origin.y, origin.z), encode_normal(direction), index);
            vote(lane);
        }
    }
    push(lane, wanted, ray);
}
