// The best place for every candidate: see bvh/gpu/reinsertion_search.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/box.wgsl"
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> progress: array<Progress>;
@group(0) @binding(2) var<storage, read> tally: array<u32>;
@group(0) @binding(3) var<storage, read> candidates: array<i32>;
@group(0) @binding(4) var<storage, read> children: array<vec2i>;
@group(0) @binding(5) var<storage, read> parents: array<i32>;
@group(0) @binding(6) var<storage, read> bounds: array<vec2f>;
@group(0) @binding(7) var<storage, read> boxes: array<vec2f>;
@group(0) @binding(8) var<storage, read_write> moves: array<vec2u>; // target, gain

var<private> stack_node: array<i32, STACK>;
var<private> stack_budget: array<f32, STACK>;

fn box_of(node: i32) -> Box {
    if (node >= 0) {
        let at = 3u * u32(node);
        return make_box(bounds[at], bounds[at + 1u], bounds[at + 2u]);
    }
    let at = 3u * u32(~node);
    return make_box(boxes[at], boxes[at + 1u], boxes[at + 2u]);
}

fn area(box: Box) -> f32 {
    return scaled_area(box, progress[0].scale, parameters.zero);
}

fn minus(a: f32, b: f32) -> f32 {
    return rounded(a - b, parameters.zero);
}

fn search(node: i32) -> vec2u {
    let mine = box_of(node);
    let mine_area = area(mine);
    let own = parents[place(node, parameters.nodes)];
    var best = progress[0].least_gain;
    var target_node = EMPTY_CHILD;
    // The path of pivots: `below` is the ancestor under the pivot, `rest` its box without the
    // candidate, `freed` the area that taking the candidate out saves below the pivot.
    var below = node;
    var pivot = own;
    var rest = empty_box();
    var freed = area(box_of(own));
    var top = 0u;
    for (var step = 0u; step < parameters.steps; step += 1u) {
        if (top == 0u) {
            if (pivot < 0) { break; }
            let sibling = sibling_of(children[pivot], below);
            let box = box_of(sibling);
            let joined = area(unite(box, mine));
            let gain = minus(freed, joined);
            if (gain > best) {
                best = gain;
                target_node = sibling;
            }
            let budget = minus(freed, minus(joined, area(box)));
            if (sibling >= 0 && minus(budget, mine_area) > best) {
                stack_node[0] = sibling;
                stack_budget[0] = budget;
                top = 1u;
            }
            rest = unite(rest, box);
            below = pivot;
            pivot = parents[pivot];
            if (below != own) { // the own parent goes away: its area is in `freed` already
                let whole = area(box_of(below));
                let shrunk = area(rest);
                let above = minus(freed, shrunk); // gain as the sibling of this ancestor
                if (below != 0 && above > best) {
                    best = above;
                    target_node = below;
                }
                freed = rounded(freed + minus(whole, shrunk), parameters.zero);
                // No ancestor further up shrinks either, so `freed` is final.
                if (whole == shrunk && minus(freed, mine_area) <= best) { pivot = -1; }
            }
            continue;
        }
        top -= 1u;
        let budget = stack_budget[top];
        if (minus(budget, mine_area) <= best) { continue; }
        let pair = children[stack_node[top]];
        let left = box_of(pair.x);
        let right = box_of(pair.y);
        let left_joined = area(unite(left, mine));
        let right_joined = area(unite(right, mine));
        let left_gain = minus(budget, left_joined);
        let right_gain = minus(budget, right_joined);
        if (left_gain > best) {
            best = left_gain;
            target_node = pair.x;
        }
        if (right_gain > best) {
            best = right_gain;
            target_node = pair.y;
        }
        // What lies below costs at least the growth of its parent and the candidate's own area.
        let left_budget = minus(budget, minus(left_joined, area(left)));
        let right_budget = minus(budget, minus(right_joined, area(right)));
        let go_left = pair.x >= 0 && minus(left_budget, mine_area) > best;
        let go_right = pair.y >= 0 && minus(right_budget, mine_area) > best;
        let left_first = left_budget >= right_budget;
        // The one with more to gain lies on top.
        if (left_first && go_right && top < STACK) {
            stack_node[top] = pair.y;
            stack_budget[top] = right_budget;
            top += 1u;
        }
        if (go_left && top < STACK) {
            stack_node[top] = pair.x;
            stack_budget[top] = left_budget;
            top += 1u;
        }
        if (!left_first && go_right && top < STACK) {
            stack_node[top] = pair.y;
            stack_budget[top] = right_budget;
            top += 1u;
        }
    }
    return vec2u(bitcast<u32>(target_node), select(0u, bitcast<u32>(best), target_node != EMPTY_CHILD));
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let count = tally[CANDIDATES];
    for (var slot = group.x * 64u + lane; slot < count; slot += groups.x * 64u) {
        moves[slot] = search(candidates[slot]);
    }
}
