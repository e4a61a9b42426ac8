// Blocks and their boxes, one after the other, and what was kept: see bvh/gpu/pairing.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/block_output.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read> triangle_boxes: array<vec2f>;
@group(0) @binding(2) var<storage, read> mates: array<u32>;
@group(0) @binding(3) var<storage, read> starts: array<u32>; // scanned by now
@group(0) @binding(4) var<storage, read> block_total: array<u32>;
@group(0) @binding(5) var<storage, read_write> blocks: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> boxes: array<vec2f>;
@group(0) @binding(7) var<storage, read_write> state: array<atomic<u32>>; // BUILD_STATE's words

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let triangle = flat_index(group, groups, lane);
    clear_counts(lane);
    workgroupBarrier();
    if (triangle < parameters.count) {
        let mate = mates[triangle];
        var box = box_of(triangle);
        count_triangle(box, mate == REMOVED);
        var block = vec2u(triangle, NONE);
        if (mate < REMOVED) {
            let other = mate & TRIANGLE_MASK;
            let their = mates[other];
            block = vec2u((mate & ~TRIANGLE_MASK) | triangle, (their & ~TRIANGLE_MASK) | other);
            box = unite(box, box_of(other));
        }
        if (mate == NONE || (mate < REMOVED && (mate & TRIANGLE_MASK) > triangle)) {
            let at = starts[triangle];
            blocks[at] = block;
            write_box(at, box);
        }
    }
    workgroupBarrier();
    write_counts(lane, triangle);
}
