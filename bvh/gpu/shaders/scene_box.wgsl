// The box around the centroids of 2048 boxes: see bvh/gpu/scene_box.py.

#import bvh.gpu.build_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: BuildParameters;
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> partials: array<ScenePartial>;

const ITEMS = 8u;

var<workgroup> shared_partials: array<ScenePartial, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let kept = min(state[0].kept, parameters.count);
    let tile = group.y * groups.x + group.x;
    var mine = ScenePartial(vec3f(LARGEST), 0u, vec3f(-LARGEST), 0u);
    for (var i = 0u; i < ITEMS; i += 1u) {
        let index = (tile * ITEMS + i) * 256u + lane;
        if (index >= kept) { break; }
        let box = make_box(boxes[3u * index], boxes[3u * index + 1u], boxes[3u * index + 2u]);
        let centre = box.low * 0.125 + box.high * 0.125;
        mine.low = min(mine.low, centre);
        mine.high = max(mine.high, centre);
    }
    shared_partials[lane] = mine;
    workgroupBarrier();
    for (var width = 128u; width > 0u; width /= 2u) {
        if (lane < width) {
            let other = shared_partials[lane + width];
            mine.low = min(mine.low, other.low);
            mine.high = max(mine.high, other.high);
            shared_partials[lane] = mine;
        }
        workgroupBarrier();
    }
    if (lane == 0u && tile < arrayLength(&partials)) { partials[tile] = mine; }
}
