// Inner nodes sorted by depth, stably: see bvh/gpu/tree_order.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records

@group(0) @binding(0) var<uniform> parameters: vec4u; // nodes at most, 0, 0, tiles
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> paths: array<vec2u>;
@group(0) @binding(3) var<storage, read> offsets: array<u32>;
@group(0) @binding(4) var<storage, read_write> level_nodes: array<u32>;
@group(0) @binding(5) var<storage, read_write> level_starts: array<u32>;

const WORDS = 8u; // of 32 lanes each

var<workgroup> holders: array<atomic<u32>, WORDS * LEVELS>; // [word][level]: lanes of that level

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    let node = tile * 256u + lane;
    let inside = node < min(parameters.x, max(state[0].kept, 2u) - 1u);
    let word = lane / 32u;
    let bit = 1u << (lane % 32u);
    atomicStore(&holders[lane], 0u);
    atomicStore(&holders[256u + lane], 0u);
    workgroupBarrier();
    var depth = 0u;
    if (inside) {
        depth = paths[node].y >> DEPTH_SHIFT;
        atomicOr(&holders[word * LEVELS + depth], bit);
    }
    workgroupBarrier();
    if (inside) {
        var place = offsets[tile * LEVELS + depth];
        for (var w = 0u; w < word; w += 1u) {
            place += countOneBits(atomicLoad(&holders[w * LEVELS + depth]));
        }
        place += countOneBits(atomicLoad(&holders[word * LEVELS + depth]) & (bit - 1u));
        level_nodes[place] = node;
    }
    if (tile == 0u && lane < LEVELS) { level_starts[lane] = offsets[lane]; }
}
