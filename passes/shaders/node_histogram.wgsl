// How many rays visited how many box nodes, so that percentiles are known without reading every
// ray's count back. A slot without nodes sent no ray. Neighbours visit about as many nodes, so a
// workgroup adds them up before it goes to memory.
#import passes.frame_uniforms
#import passes.node_histogram

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> slot_counts: array<u32>; // nodes come first
@group(0) @binding(2) var<storage, read_write> histogram: array<atomic<u32>>;

override SLOTS_PER_PIXEL: u32 = 1u;

const NEAR_BINS: u32 = 512u;
var<workgroup> near: array<atomic<u32>, NEAR_BINS>;

@compute @workgroup_size(HISTOGRAM_LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    for (var bin = lane; bin < NEAR_BINS; bin += HISTOGRAM_LANES) { atomicStore(&near[bin], 0u); }
    workgroupBarrier();
    let first = (group.y * groups.x + group.x) * HISTOGRAM_SLOTS;
    let slots = frame.width * frame.height * SLOTS_PER_PIXEL;
    let end = min(first + HISTOGRAM_SLOTS, slots);
    for (var slot = first + lane; slot < end; slot += HISTOGRAM_LANES) {
        let nodes = slot_counts[slot];
        if (nodes == 0u) { continue; }
        if (nodes < NEAR_BINS) {
            atomicAdd(&near[nodes], 1u);
        } else {
            atomicAdd(&histogram[min(nodes, arrayLength(&histogram) - 1u)], 1u);
        }
    }
    workgroupBarrier();
    for (var bin = lane; bin < NEAR_BINS; bin += HISTOGRAM_LANES) {
        let rays = atomicLoad(&near[bin]);
        if (rays > 0u) { atomicAdd(&histogram[min(bin, arrayLength(&histogram) - 1u)], rays); }
    }
}
