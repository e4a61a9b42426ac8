// Units of every wide node, which is to choose its format: see bvh/gpu/encode.py.

#import bvh.gpu.build_records
#import bvh.gpu.encode_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/half_bounds.wgsl"

@group(0) @binding(0) var<uniform> parameters: EncodeParameters;
@group(0) @binding(1) var<storage, read> wide_summary: array<u32>;
@group(0) @binding(2) var<storage, read> wide_children: array<vec4i>;
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(5) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(6) var<storage, read_write> node_units: array<u32>;
@group(0) @binding(7) var<storage, read_write> node_count: array<u32>;

fn child_box(child: i32) -> Box {
    if (child < 0) {
        let at = 3u * u32(~child);
        return make_box(boxes[at], boxes[at + 1u], boxes[at + 2u]);
    }
    let at = 3u * places[child];
    return make_box(bounds[at], bounds[at + 1u], bounds[at + 2u]);
}

fn rounded(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ parameters.zero);
}

fn area(low: vec3f, high: vec3f) -> f32 {
    let side = high - low;
    let two = rounded(side.x * side.y) + rounded(side.y * side.z);
    return two + rounded(side.z * side.x);
}

fn may_be_half(children: vec4i) -> bool {
    if (parameters.node_format == FORMAT_FP32) { return false; }
    var in_range = true;
    var exact = 0.0;
    var stored = 0.0;
    for (var slot = 0u; slot < 4u; slot += 1u) {
        if (children[slot] == EMPTY_CHILD) { continue; }
        let box = child_box(children[slot]);
        var low: vec3f;
        var high: vec3f;
        for (var axis = 0u; axis < 3u; axis += 1u) {
            let down = half_down(box.low[axis]);
            let up = half_up(box.high[axis]);
            in_range = in_range && half_in_range(down) && half_in_range(up);
            low[axis] = half_value(down);
            high[axis] = half_value(up);
        }
        exact += area(box.low, box.high);
        stored += area(low, high);
    }
    // 1 + AUTO_INFLATION
    return in_range && (parameters.node_format == FORMAT_FP16 || stored <= rounded(exact * 1.25));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = flat_index(group, groups, lane);
    let count = wide_summary[0];
    if (first == 0u) { node_count[0] = count; }
    for (var node = first; node < count; node += groups.x * groups.y * 256u) {
        node_units[node] = select(2u, 1u, node > 0u && may_be_half(wide_children[node]));
    }
}
