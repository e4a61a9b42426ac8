// Wide nodes in depth-first order: see bvh/gpu/collapse.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> children: array<vec2i>;
@group(0) @binding(2) var<storage, read> marks: array<vec2u>;
@group(0) @binding(3) var<storage, read> order: array<u32>;
@group(0) @binding(4) var<storage, read_write> places: array<u32>;
@group(0) @binding(5) var<storage, read_write> wide_children: array<vec4i>;
@group(0) @binding(6) var<storage, read_write> wide_summary: array<atomic<u32>>;

var<workgroup> most: array<atomic<u32>, 3>;

// The slots of a wide node that opens `mask`.
fn slots_of(node: u32, mask: u32) -> vec4i {
    var slots = vec4i(children[node], EMPTY_CHILD, EMPTY_CHILD);
    var codes = vec4u(2u, 3u, 8u, 8u);
    for (var round = 0u; round < 2u; round += 1u) {
        for (var place = 0u; place < 3u; place += 1u) {
            if ((mask >> (codes[place] - 2u) & 1u) == 0u) { continue; }
            let pair = children[slots[place]];
            let code = vec2u(2u * codes[place], 2u * codes[place] + 1u);
            if (place == 0u) {
                slots = vec4i(pair, slots.yz);
                codes = vec4u(code, codes.yz);
            } else if (place == 1u) {
                slots = vec4i(slots.x, pair, slots.z);
                codes = vec4u(codes.x, code, codes.z);
            } else {
                slots = vec4i(slots.xy, pair);
                codes = vec4u(codes.xy, code);
            }
            break;
        }
    }
    return slots;
}

fn rank(child: i32) -> i32 {
    if (child < 0) { return child; }
    return i32(order[marks[child].y]);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (lane < 3u) { atomicStore(&most[lane], 0u); }
    workgroupBarrier();
    if (node < max(state[0].kept, 2u) - 1u) {
        let mark = marks[node];
        if (mark.x != 0u) {
            let slots = slots_of(node, mark.x >> MARK_MASK_SHIFT & ((1u << MASK_BITS) - 1u));
            let at = order[mark.y];
            places[at] = node;
            wide_children[at] = vec4i(rank(slots.x), rank(slots.y), rank(slots.z), rank(slots.w));
            let used = select(vec4u(1u), vec4u(0u), slots == vec4i(EMPTY_CHILD));
            atomicMax(&most[0], at + 1u);
            atomicMax(&most[1], mark.x >> MARK_LEVEL_SHIFT);
            atomicMax(&most[2], (mark.x >> MARK_WAITING_SHIFT & 255u) + dot(used, vec4u(1u)));
        }
    }
    workgroupBarrier();
    if (lane < 3u) {
        let mine = atomicLoad(&most[lane]);
        if (mine > 0u) { atomicMax(&wide_summary[lane], mine); }
    }
}
