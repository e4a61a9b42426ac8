// Boxes and blocks of all references, the finished first: see bvh/gpu/spatial_stages.py.

#import bvh.gpu.binned_sah_records
#import bvh.gpu.spatial_records
#import "bvh/gpu/shaders/sah_boxes.wgsl"

@group(0) @binding(0) var<uniform> parameters: SplitParameters;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read> split_state: array<SplitState>;
@group(0) @binding(3) var<storage, read> blocks: array<vec2u>;
@group(0) @binding(4) var<storage, read> work: array<vec4u>;
@group(0) @binding(5) var<storage, read> done: array<vec4u>;
@group(0) @binding(6) var<storage, read_write> split_boxes: array<u32>;
@group(0) @binding(7) var<storage, read_write> split_blocks: array<vec2u>;
@group(0) @binding(8) var<storage, read_write> new_state: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let finished = split_state[0].finished;
    let total = finished + split_state[0].open;
    let first = group.x * 256u + lane;
    if (first < arrayLength(&state)) {
        new_state[first] = select(state[first], total, first == 0u);
    }
    for (var i = first; i < total; i += groups.x * 256u) {
        var a: vec4u;
        var b: vec4u;
        if (i < finished) {
            a = done[2u * i];
            b = done[2u * i + 1u];
        } else {
            a = work[2u * (i - finished)];
            b = work[2u * (i - finished) + 1u];
        }
        let low = bitcast<vec3u>(value_of(a.xyz));
        let high = bitcast<vec3u>(value_of(vec3u(a.w, b.xy)));
        for (var k = 0u; k < 3u; k += 1u) {
            split_boxes[6u * i + k] = low[k];
            split_boxes[6u * i + 3u + k] = high[k];
        }
        split_blocks[i] = blocks[b.z];
    }
}
