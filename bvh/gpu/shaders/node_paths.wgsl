// Depth and turns of every inner node, by a walk to the root: see bvh/gpu/tree_order.py.

#import bvh.gpu.build_records
#import bvh.gpu.tree_order_records

@group(0) @binding(0) var<uniform> parameters: vec4u; // nodes at most, 0, 0, tiles
@group(0) @binding(1) var<storage, read> state: array<BuildState>;
@group(0) @binding(2) var<storage, read> parents: array<u32>;
@group(0) @binding(3) var<storage, read_write> paths: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;
@group(0) @binding(5) var<storage, read_write> totals: array<atomic<u32>>;

var<workgroup> found: array<atomic<u32>, LEVELS>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    let node = tile * 256u + lane;
    if (lane < LEVELS) { atomicStore(&found[lane], 0u); }
    workgroupBarrier();
    if (node < min(parameters.x, max(state[0].kept, 2u) - 1u)) {
        var depth = 0u;
        var turns = vec2u(0u); // a bit a step, 1 for right; the root's is the lowest
        var link = parents[node];
        while (link != NO_PARENT && depth < MAX_DEPTH) {
            turns = vec2u(turns.x << 1u | link >> 31u, turns.y << 1u | turns.x >> 31u);
            depth += 1u;
            link = parents[link & ~RIGHT_CHILD];
        }
        paths[node] = vec2u(turns.x, turns.y & 0xffffu | depth << DEPTH_SHIFT);
        atomicAdd(&found[depth], 1u);
    }
    workgroupBarrier();
    if (lane >= LEVELS || tile >= parameters.w) { return; }
    let mine = atomicLoad(&found[lane]);
    counts[tile * LEVELS + lane] = mine;
    if (mine > 0u) { atomicAdd(&totals[lane], mine); }
}
