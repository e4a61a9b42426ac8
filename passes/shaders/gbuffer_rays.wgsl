// Primary rays: visibility from the BVH instead of the rasteriser, same camera, same pixels.
#import passes.frame_uniforms
#import $traverse
#import "passes/shaders/gbuffer.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> bvh: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> alpha: array<u32>;
@group(0) @binding(3) var<storage, read> texels: array<u32>;
@group(0) @binding(4) var ids_out: texture_storage_2d<rg32uint, write>;
@group(0) @binding(5) var<storage, read_write> primary_failed: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let ray = Ray(frame.camera_origin.xyz, 0.0, camera_direction(pixel), INFINITE_T);
    let result = trace(ray, frame.zero);
    if (result.failed != 0u) { atomicOr(&primary_failed, result.failed); }
    var primitive = result.hit.primitive;
    if (leaves_sphere) { primitive |= 0x80000000u; } // SPHERE_LEFT of pixel_hit.wgsl
    textureStore(ids_out, pixel, vec4u(result.hit.object, primitive, 0u, 0u));
}
