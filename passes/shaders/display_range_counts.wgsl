// The range of a heat map: how many pixels have which count (of differences: how large), and the
// largest. A workgroup takes 4,096 pixels.
#import passes.frame_uniforms
#import passes.display_records
#import passes.slot_counts
#import "passes/shaders/display_count.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<uniform> display: DisplayUniforms;
@group(0) @binding(2) var<storage, read_write> display_range: AtomicDisplayRange;
@group(0) @binding(3) var<storage, read> slot_counts: array<u32>;
@group(0) @binding(4) var<storage, read> baseline: array<u32>;

const LANES: u32 = 256u;
const PIXELS_PER_LANE: u32 = 16u;

var<workgroup> histogram: array<atomic<u32>, BINS>;
var<workgroup> most: atomic<u32>;

// The leading bit says which octave, the next BIN_BITS which bin of it.
fn bin_of(value: u32) -> u32 {
    if (value < (1u << BIN_BITS)) { return value; }
    let octave = firstLeadingBit(value) - BIN_BITS;
    return ((octave + 1u) << BIN_BITS) + ((value >> octave) & ((1u << BIN_BITS) - 1u));
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var bin = lane; bin < BINS; bin += LANES) { atomicStore(&histogram[bin], 0u); }
    if (lane == 0u) { atomicStore(&most, 0u); }
    workgroupBarrier();
    var largest = 0u;
    for (var i = 0u; i < PIXELS_PER_LANE; i += 1u) {
        let index = (group.x * PIXELS_PER_LANE + i) * LANES + lane;
        if (index < frame.width * frame.height) {
            let count = pixel_count(index);
            if (count.sent) {
                let value = u32(abs(count.value));
                atomicAdd(&histogram[bin_of(value)], 1u);
                largest = max(largest, value);
            }
        }
    }
    atomicMax(&most, largest);
    workgroupBarrier();
    for (var bin = lane; bin < BINS; bin += LANES) {
        let pixels = atomicLoad(&histogram[bin]);
        if (pixels > 0u) {
            atomicAdd(&display_range.histogram[bin], pixels);
            atomicAdd(&display_range.values, pixels);
        }
    }
    if (lane == 0u) { atomicMax(&display_range.most, atomicLoad(&most)); }
}
