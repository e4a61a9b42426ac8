// Summed area of 2048 inner nodes a workgroup: see bvh/gpu/reinsertion_refit.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> progress: array<Progress>;
@group(0) @binding(3) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> partials: array<f32>;

const ITEMS = 8u;

var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    if (progress[0].done != 0u) { return; }
    let tile = group.y * groups.x + group.x;
    let nodes = max(state[0].kept, 2u) - 1u;
    var mine = 0.0;
    for (var i = 0u; i < ITEMS; i += 1u) {
        let node = (tile * ITEMS + i) * 256u + lane;
        if (node < nodes) {
            let box = make_box(bounds[3u * node], bounds[3u * node + 1u], bounds[3u * node + 2u]);
            mine = rounded(mine + scaled_area(box, progress[0].scale, parameters.zero), parameters.zero);
        }
    }
    sums[lane] = mine;
    workgroupBarrier();
    for (var width = 128u; width > 0u; width /= 2u) {
        if (lane < width) { sums[lane] += sums[lane + width]; }
        workgroupBarrier();
    }
    if (lane == 0u && tile < arrayLength(&partials)) { partials[tile] = sums[0]; }
}
