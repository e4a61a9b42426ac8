// The range of depths that are seen, as bits: those of positive floats grow as the floats do. A
// workgroup takes 4,096 pixels.
#import passes.frame_uniforms
#import passes.display_records
#import "passes/shaders/gbuffer.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read_write> display_range: AtomicDisplayRange;
@group(0) @binding(2) var visibility: texture_2d<u32>;
@group(0) @binding(3) var depth: texture_2d<f32>;

const LANES: u32 = 256u;
const PIXELS_PER_LANE: u32 = 16u;

var<workgroup> most: atomic<u32>;
var<workgroup> least_inverted: atomic<u32>;
var<workgroup> values: atomic<u32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    if (lane == 0u) {
        atomicStore(&most, 0u);
        atomicStore(&least_inverted, 0u);
        atomicStore(&values, 0u);
    }
    workgroupBarrier();
    var largest = 0u;
    var smallest_inverted = 0u;
    var seen = 0u;
    for (var i = 0u; i < PIXELS_PER_LANE; i += 1u) {
        let index = (group.x * PIXELS_PER_LANE + i) * LANES + lane;
        if (index < frame.width * frame.height) {
            let pixel = vec2u(index % frame.width, index / frame.width);
            if (textureLoad(visibility, pixel, 0).x != NOTHING) {
                let bits = bitcast<u32>(textureLoad(depth, pixel, 0).x);
                largest = max(largest, bits);
                smallest_inverted = max(smallest_inverted, ~bits);
                seen += 1u;
            }
        }
    }
    atomicMax(&most, largest);
    atomicMax(&least_inverted, smallest_inverted);
    atomicAdd(&values, seen);
    workgroupBarrier();
    if (lane == 0u) {
        atomicMax(&display_range.most, atomicLoad(&most));
        atomicMax(&display_range.least_inverted, atomicLoad(&least_inverted));
        atomicAdd(&display_range.values, atomicLoad(&values));
    }
}
