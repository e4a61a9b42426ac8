// Fans and their boxes, one after the other, and what was kept: see bvh/gpu/fan_near.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read> triangle_boxes: array<vec2f>;
@group(0) @binding(2) var<storage, read> members: array<vec4u>;
@group(0) @binding(3) var<storage, read> starts: array<u32>; // scanned by now
@group(0) @binding(4) var<storage, read> block_total: array<u32>;
@group(0) @binding(5) var<storage, read_write> blocks: array<vec4u>;
@group(0) @binding(6) var<storage, read_write> boxes: array<vec2f>;
@group(0) @binding(7) var<storage, read_write> state: array<atomic<u32>>; // BUILD_STATE's words

const TRIANGLE_MASK = (1u << CORNER_SHIFT) - 1u;

var<workgroup> counts: array<atomic<u32>, 3>; // usable, degenerate, non-finite

fn box_of(triangle: u32) -> Box {
    let at = 3u * triangle;
    return make_box(triangle_boxes[at], triangle_boxes[at + 1u], triangle_boxes[at + 2u]);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let triangle = flat_index(group, groups, lane);
    if (lane < 3u) { atomicStore(&counts[lane], 0u); }
    workgroupBarrier();
    if (triangle < parameters.count) {
        let block = members[triangle];
        let removed = block.x == REMOVED;
        let degenerate = box_of(triangle).high.x == -REMOVED_DEGENERATE;
        atomicAdd(&counts[select(0u, select(2u, 1u, degenerate), removed)], 1u);
        if (block.x < REMOVED) {
            let at = starts[triangle];
            var box = box_of(block.x & TRIANGLE_MASK);
            for (var k = 1u; k < 4u; k += 1u) {
                if (block[k] != NONE) { box = unite(box, box_of(block[k] & TRIANGLE_MASK)); }
            }
            blocks[at] = block;
            boxes[3u * at] = box.low.xy;
            boxes[3u * at + 1u] = vec2f(box.low.z, box.high.x);
            boxes[3u * at + 2u] = box.high.yz;
        }
    }
    workgroupBarrier();
    if (lane < 3u) { atomicAdd(&state[1u + lane], atomicLoad(&counts[lane])); }
    if (triangle == 0u) { atomicStore(&state[0], block_total[0]); }
}
