// Pairs among the 256 triangles of a tile: see bvh/gpu/pairing.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/block_members.wgsl"
#import "bvh/gpu/shaders/rank_pair.wgsl"
#import "bvh/gpu/shaders/edge_slots.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read> triangles: array<u32>;
@group(0) @binding(2) var<storage, read> triangle_ids: array<vec2u>;
@group(0) @binding(3) var<storage, read> triangle_boxes: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> mates: array<u32>;
@group(0) @binding(5) var<storage, read_write> starts: array<u32>;

const ROUNDS = 4u;

var<workgroup> choices: array<u32, 256>; // half-edge that a triangle would pair over
var<workgroup> open: array<u32, 256>; // 1 while it has no partner

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = flat_index(group, groups, 0u);
    let triangle = first + lane;
    clear_edge_slots(lane);
    let given = triangle < parameters.count;
    var usable = false;
    if (given) { usable = triangle_boxes[3u * triangle].x <= triangle_boxes[3u * triangle + 1u].y; }
    let pairing = usable && parameters.leaf > 1u;
    workgroupBarrier();
    var own: array<u32, 3>;
    if (pairing) { own = enter_edges(triangle); }
    workgroupBarrier();
    var partner = array<u32, 3>(NONE, NONE, NONE);
    var rank = array<u32, 3>(NONE, NONE, NONE);
    if (pairing) {
        for (var c = 0u; c < 3u; c += 1u) {
            let mine = 3u * triangle + c;
            let other = atomicLoad(&lowest[own[c] ^ 1u]);
            if (other != NONE && atomicLoad(&lowest[own[c]]) == mine) {
                partner[c] = other;
                rank[c] = rank_pair(mine, other);
            }
        }
    }
    var mate = select(REMOVED, NONE, usable);
    open[lane] = 1u;
    workgroupBarrier();
    for (var round = 0u; round < ROUNDS; round += 1u) {
        var best = NONE;
        var choice = NONE;
        var target_edge = NONE;
        if (mate == NONE) {
            for (var c = 0u; c < 3u; c += 1u) {
                if (rank[c] < best && open[partner[c] / 3u - first] == 1u) {
                    best = rank[c];
                    choice = 3u * triangle + c;
                    target_edge = partner[c];
                }
            }
        }
        choices[lane] = choice;
        workgroupBarrier();
        if (choice != NONE && choices[target_edge / 3u - first] == target_edge) {
            mate = (choice % 3u) << CORNER_SHIFT | target_edge / 3u;
            open[lane] = 0u;
        }
        workgroupBarrier();
    }
    if (given) {
        mates[triangle] = mate;
        // A block stands where its first triangle does.
        let second = mate < REMOVED && (mate & TRIANGLE_MASK) < triangle;
        starts[triangle] = select(1u, 0u, mate == REMOVED || second);
    }
}
