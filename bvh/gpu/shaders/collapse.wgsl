// One level of the collapse to four wide: see bvh/gpu/collapse.py.

#import bvh.gpu.build_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> deepest: array<u32>;
@group(0) @binding(3) var<storage, read> children: array<vec2i>;
@group(0) @binding(4) var<storage, read> paths: array<vec2u>;
@group(0) @binding(5) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(6) var<storage, read_write> marks: array<u32>;
@group(0) @binding(7) var<storage, read_write> slots: array<vec4i>;

const LONGEST_SIDE = 1e18;

fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.zero);
}

// Half the surface area of an inner node; -1 for a leaf or an empty slot.
fn area(child: i32) -> f32 {
    if (child < 0) { return -1.0; }
    let at = 3u * u32(child);
    let box = make_box(bounds[at], bounds[at + 1u], bounds[at + 2u]);
    let side = min(box.high - box.low, vec3f(LONGEST_SIDE));
    let two = rounded(rounded(side.x * side.y) + rounded(side.y * side.z));
    return two + rounded(side.z * side.x);
}

fn steps(node: u32) -> u32 {
    return paths[node].y & (LEFT_TURN - 1u);
}

// Levels that may follow below a child, itself included.
fn follow(child: i32, level_count: u32) -> u32 {
    if (child < 0) { return 0u; }
    return level_count - steps(u32(child));
}

// The slots with the inner child of largest area, the first of equals, opened in its place.
fn open_largest(slot: vec4i) -> vec4i {
    let size = vec4f(area(slot.x), area(slot.y), area(slot.z), -1.0);
    let most = max(max(size.x, size.y), size.z);
    if (most < 0.0) { return slot; }
    if (size.x == most) {
        let opened = children[slot.x];
        return vec4i(opened, slot.y, slot.z);
    }
    if (size.y == most) {
        let opened = children[slot.y];
        return vec4i(slot.x, opened, slot.z);
    }
    return vec4i(slot.xy, children[slot.z]);
}

fn used(slot: vec4i) -> u32 {
    let one = select(vec4u(1u), vec4u(0u), slot == vec4i(EMPTY_CHILD));
    return one.x + one.y + one.z + one.w;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (node >= max(state[0].kept, 2u) - 1u) { return; }
    if (parameters.level == 0u) {
        marks[node] = select(0u, 1u, node == 0u);
        return;
    }
    let last_step = select(deepest[1], deepest[0], deepest[0] < parameters.max_depth);
    // Dispatches past the last level there is cost next to nothing.
    if (parameters.level > last_step + 1u || steps(node) != parameters.level - 1u) { return; }
    let mark = marks[node];
    if (mark == 0u) { return; }
    let unopened = vec4i(children[node], EMPTY_CHILD, EMPTY_CHILD);
    var slot = open_largest(open_largest(unopened));
    let below = max(max(follow(slot.x, last_step + 1u), follow(slot.y, last_step + 1u)),
        max(follow(slot.z, last_step + 1u), follow(slot.w, last_step + 1u)));
    if (mark - 1u + used(slot) + below > STACK_LIMIT) { slot = unopened; }
    slots[node] = slot;
    // No two wide nodes have a child in common, and a child is a level further down.
    let left = mark - 1u + used(slot);
    if (slot.x >= 0) { marks[slot.x] = left; }
    if (slot.y >= 0) { marks[slot.y] = left; }
    if (slot.z >= 0) { marks[slot.z] = left; }
    if (slot.w >= 0) { marks[slot.w] = left; }
}
