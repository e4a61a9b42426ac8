// The range of depths that are seen, as bits: those of positive floats grow as the floats do.
#import passes.frame_uniforms
#import passes.display_records
#import "passes/shaders/gbuffer.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read_write> display_range: AtomicDisplayRange;
@group(0) @binding(2) var visibility: texture_2d<u32>;
@group(0) @binding(3) var depth: texture_2d<f32>;

var<workgroup> most: atomic<u32>;
var<workgroup> least_inverted: atomic<u32>;
var<workgroup> values: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    if (lane == 0u) {
        atomicStore(&most, 0u);
        atomicStore(&least_inverted, 0u);
        atomicStore(&values, 0u);
    }
    workgroupBarrier();
    let pixel = tile_pixel(group, lane);
    if (pixel.x < frame.width && pixel.y < frame.height && textureLoad(visibility, pixel, 0).x != NOTHING) {
        let bits = bitcast<u32>(textureLoad(depth, pixel, 0).x);
        atomicMax(&most, bits);
        atomicMax(&least_inverted, ~bits);
        atomicAdd(&values, 1u);
    }
    workgroupBarrier();
    if (lane == 0u) {
        atomicMax(&display_range.most, atomicLoad(&most));
        atomicMax(&display_range.least_inverted, atomicLoad(&least_inverted));
        atomicAdd(&display_range.values, atomicLoad(&values));
    }
}
