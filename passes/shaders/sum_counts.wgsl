// Adds a ray type's counts to those of the types before it, pixel by pixel, in planes of one slot a
// pixel; of stack_max it keeps the largest.
#import passes.frame_uniforms
#import passes.slot_counts
#import "passes/shaders/gbuffer.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> slot_counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> summed: array<u32>;

override FIRST: bool = true; // what lies in `summed` is older
override SLOTS_PER_PIXEL: u32 = 1u;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let pixels = frame.width * frame.height;
    let index = pixel.y * frame.width + pixel.x;
    for (var field = 0u; field < SLOT_FIELDS; field += 1u) {
        let place = field * pixels + index;
        var total = select(summed[place], 0u, FIRST);
        for (var kind = 0u; kind < SLOTS_PER_PIXEL; kind += 1u) {
            let count = slot_counts[place * SLOTS_PER_PIXEL + kind];
            total = select(total + count, max(total, count), field == SLOT_STACK_MAX);
        }
        summed[place] = total;
    }
}
