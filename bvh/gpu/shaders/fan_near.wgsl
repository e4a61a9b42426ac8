// Fans among the 256 triangles of a tile: see bvh/gpu/fan_near.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/rank_pair.wgsl"
#import "bvh/gpu/shaders/edge_slots.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read> triangles: array<u32>;
@group(0) @binding(2) var<storage, read> triangle_ids: array<vec2u>;
@group(0) @binding(3) var<storage, read> triangle_boxes: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> members: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> starts: array<u32>;

const FAN_ROUNDS = 5u;
const OPEN = 1u; // a triangle in no block yet
const OPEN_TO_FANS = 3u; // and one that a fan can name

// A corner or half-edge of the tile is 3 * lane + corner.
var<workgroup> mates: array<u32, 768>;
// Once the mates are known, `edge_keys` holds of each triangle whether it is open and how many
// neighbours are, and `lowest` the lowest key of the candidates that it is in.
const SIDES = 256u;

fn next_corner(corner: u32) -> u32 {
    return corner - corner % 3u + (corner + 1u) % 3u;
}

// The apex's corner in the next triangle about it.
fn turned(corner: u32) -> u32 {
    let across = mates[next_corner(corner)];
    if (across == NONE) { return NONE; }
    return next_corner(across);
}

// Apex corners of the fan of `size` different triangles that starts at `corner`; NONE first where
// there is none.
fn find_fan(corner: u32, size: u32) -> vec4u {
    var fan = vec4u(corner, NONE, NONE, NONE);
    for (var k = 1u; k < size; k += 1u) {
        let following = turned(fan[k - 1u]);
        if (following == NONE) { return vec4u(NONE); }
        for (var j = 0u; j < k; j += 1u) {
            if (fan[j] / 3u == following / 3u) { return vec4u(NONE); }
        }
        fan[k] = following;
    }
    // Five vertices: four triangles have to be closed.
    if (size == 4u && turned(fan.w) != corner) { return vec4u(NONE); }
    return fan;
}

// As `waste` of pairs, in steps of 1/16.
fn fan_waste(fan: vec4u, first: u32, size: u32) -> u32 {
    var joint_box = box_of(first + fan.x / 3u);
    for (var k = 1u; k < size; k += 1u) {
        joint_box = unite(joint_box, box_of(first + fan[k] / 3u));
    }
    let factor = area_factor(joint_box);
    var total = 0.0;
    for (var k = 0u; k < size; k += 1u) {
        total += scaled_area(box_of(first + fan[k] / 3u), factor, parameters.zero);
    }
    let joint = scaled_area(joint_box, factor, parameters.zero);
    return waste_steps(joint, total, 0x1p-4, 16u, parameters.zero);
}

fn is_open(corner: u32, size: u32) -> bool {
    return atomicLoad(&edge_keys[corner / 3u]) >= select(OPEN, OPEN_TO_FANS, size > 2u);
}

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
    workgroupBarrier();
    var own: array<u32, 3>;
    if (usable) { own = enter_edges(triangle); }
    workgroupBarrier();
    for (var c = 0u; c < 3u; c += 1u) {
        var mate = NONE;
        if (usable) {
            let mine = 3u * triangle + c;
            let other = atomicLoad(&lowest[own[c] ^ 1u]);
            if (other != NONE && atomicLoad(&lowest[own[c]]) == mine && are_mates(mine, other)) {
                mate = other - 3u * first;
            }
        }
        mates[3u * lane + c] = mate;
    }
    workgroupBarrier();
    var open = 0u;
    if (usable) {
        let ids = triangle_ids[triangle];
        let sayable = (ids.x & GEOMETRY_INDEX_MASK) < FAN_GEOMETRY_LIMIT && ids.y != INVALID_POINTER;
        open = select(OPEN, OPEN_TO_FANS, sayable);
    }
    atomicStore(&edge_keys[lane], open);
    workgroupBarrier();

    var block = vec4u(NONE);
    for (var size = 4u; size > 1u; size -= 1u) {
        var fans: array<vec4u, 3>;
        var fixed: array<u32, 3>; // the part of a key that stays
        for (var c = 0u; c < 3u; c += 1u) {
            let corner = 3u * lane + c;
            fans[c] = find_fan(corner, size);
            if (fans[c].x != NONE) {
                let steps = fan_waste(fans[c], first, size);
                // 421 is odd: another number for each corner.
                fixed[c] = steps << 10u | (corner * 421u & 1023u);
                if (steps == NONE) { fans[c] = vec4u(NONE); }
            }
        }
        for (var round = 0u; round < FAN_ROUNDS; round += 1u) {
            var sides = 0u;
            for (var c = 0u; c < 3u; c += 1u) {
                let mate = mates[3u * lane + c];
                if (mate != NONE && is_open(mate, 2u)) { sides += 1u; }
            }
            atomicStore(&edge_keys[SIDES + lane], sides);
            atomicStore(&lowest[lane], NONE);
            workgroupBarrier();
            var keys = array<u32, 3>(NONE, NONE, NONE);
            for (var c = 0u; c < 3u; c += 1u) {
                if (fans[c].x == NONE) { continue; }
                var sum = 0u;
                var good = true;
                for (var k = 0u; k < size; k += 1u) {
                    good = good && is_open(fans[c][k], size);
                    sum += atomicLoad(&edge_keys[SIDES + fans[c][k] / 3u]);
                }
                if (!good) {
                    fans[c] = vec4u(NONE);
                    continue;
                }
                keys[c] = sum << 15u | fixed[c];
                for (var k = 0u; k < size; k += 1u) {
                    atomicMin(&lowest[fans[c][k] / 3u], keys[c]);
                }
            }
            workgroupBarrier();
            for (var c = 0u; c < 3u; c += 1u) {
                if (keys[c] == NONE) { continue; }
                var won = true;
                for (var k = 0u; k < size; k += 1u) {
                    won = won && atomicLoad(&lowest[fans[c][k] / 3u]) == keys[c];
                }
                if (won) {
                    block = fans[c];
                    for (var k = 0u; k < size; k += 1u) {
                        atomicStore(&edge_keys[fans[c][k] / 3u], 0u);
                    }
                }
            }
            workgroupBarrier();
        }
    }
    if (!given) { return; }
    // A single triangle's last vertex is V2, so that V0 is its first.
    if (atomicLoad(&edge_keys[lane]) != 0u) { block.x = 3u * lane + 2u; }
    starts[triangle] = select(1u, 0u, block.x == NONE);
    for (var k = 0u; k < 4u; k += 1u) {
        if (block[k] != NONE) {
            block[k] = (block[k] % 3u) << CORNER_SHIFT | (first + block[k] / 3u);
        }
    }
    if (!usable) { block.x = REMOVED; }
    members[triangle] = block;
}
