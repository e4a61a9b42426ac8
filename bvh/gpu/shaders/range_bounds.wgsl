// The box of every inner node, from the pyramid over its leaves: see bvh/gpu/range_bounds.py.

#import bvh.gpu.build_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> ranges: array<vec2u>;
@group(0) @binding(3) var<storage, read> pyramid: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> bounds: array<vec2f>;

fn block(at: u32) -> Box {
    return make_box(pyramid[3u * at], pyramid[3u * at + 1u], pyramid[3u * at + 2u]);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = flat_index(group, groups, lane);
    if (node >= max(state[0].kept, 2u) - 1u) { return; }
    var left = ranges[node].x;
    var right = ranges[node].y + 1u;
    var level = vec2u(0u, parameters.count);
    var box = empty_box();
    while (left < right) {
        if ((left & 1u) == 1u) {
            box = unite(box, block(level.x + left));
            left += 1u;
        }
        // Where `left` has just met `right`, `right` is even.
        if ((right & 1u) == 1u) {
            right -= 1u;
            box = unite(box, block(level.x + right));
        }
        left /= 2u;
        right /= 2u;
        level = vec2u(level.x + level.y, (level.y + 1u) / 2u);
    }
    bounds[3u * node] = box.low.xy;
    bounds[3u * node + 1u] = vec2f(box.low.z, box.high.x);
    bounds[3u * node + 2u] = box.high.yz;
}
