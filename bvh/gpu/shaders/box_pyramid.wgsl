// A level of the box pyramid and up to eight above it: see bvh/gpu/range_bounds.py.

#import bvh.gpu.build_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(3) var<storage, read> payload: array<u32>;
@group(0) @binding(4) var<storage, read_write> pyramid: array<vec2f>;

var<workgroup> lows: array<vec3f, 256>;
var<workgroup> highs: array<vec3f, 256>;

fn store(at: u32, box: Box) {
    pyramid[3u * at] = box.low.xy;
    pyramid[3u * at + 1u] = vec2f(box.low.z, box.high.x);
    pyramid[3u * at + 2u] = box.high.yz;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    let index = tile * 256u + lane;
    var level = pyramid_level(parameters.count, parameters.level);
    var mine = empty_box();
    if (parameters.level == 0u) {
        if (index < state[0].kept) {
            let at = 3u * payload[index];
            mine = make_box(boxes[at], boxes[at + 1u], boxes[at + 2u]);
        }
        if (index < parameters.count) { store(index, mine); }
    } else if (index < level.y) {
        let at = 3u * (level.x + index);
        mine = make_box(pyramid[at], pyramid[at + 1u], pyramid[at + 2u]);
    }
    for (var width = 128u; width > 0u; width /= 2u) {
        lows[lane] = mine.low;
        highs[lane] = mine.high;
        workgroupBarrier();
        let top = level.y <= 1u; // further levels would be the same box again
        level = vec2u(level.x + level.y, (level.y + 1u) / 2u);
        if (lane < width) {
            let pair = 2u * lane;
            mine = Box(min(lows[pair], lows[pair + 1u]), max(highs[pair], highs[pair + 1u]));
            let block = tile * width + lane;
            if (!top && block < level.y) { store(level.x + block, mine); }
        }
        workgroupBarrier();
    }
}
