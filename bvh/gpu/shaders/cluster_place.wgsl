// Where the wide nodes and leaves of a finished tree go: see bvh/gpu/cluster_encode.py. Needs what
// cluster_encode.wgsl binds.

// Everything about a container that its parts need.
struct Container {
    base: u32, // unit in the scene buffer
    root: u32,
    leaf_unit: u32, // from the base
    size: u32, // units
}

struct Place {
    wide: bool,
    unit: u32, // from the base
    leaf: u32, // rank of the first leaf below
}

const ROOT_UNIT = HEADER_BYTES / UNIT_BYTES;

fn node_size(node: u32, root: u32) -> u32 {
    return select(2u, 1u, (nodes[node].shares & HALF) != 0u && node != root);
}

fn container(tree: u32, root: u32) -> Container {
    let first = nodes[root].units.x + 2u - select(2u, 1u, (nodes[root].shares & HALF) != 0u);
    let leaf_unit = ROOT_UNIT + first;
    let size = leaf_unit + parameters.leaf_units * nodes[root].leaves;
    return Container(trees[tree].base_unit, root, leaf_unit, size);
}

// To the root by parents, noting the turns, and back down: what lies below a left child begins
// behind its parent's own bytes, what lies below a right one ends where its parent's does. So one
// record is read a step.
fn place_of(node: u32, c: Container) -> Place {
    var turns = vec2u(0u);
    var steps = 0u;
    var at = node;
    var above = nodes[node].parent;
    while (at != c.root && steps < 64u) {
        if (nodes[above].right == i32(at)) { turns[steps / 32u] |= 1u << (steps & 31u); }
        at = above;
        above = nodes[at].parent;
        steps += 1u;
    }
    var begin = ROOT_UNIT;
    var end = c.leaf_unit;
    var last_leaf = nodes[at].leaves;
    var first_leaf = 0u;
    var width = 1u;
    var shares = nodes[at].shares;
    var children = vec2i(nodes[at].left, nodes[at].right);
    for (var step = steps; step > 0u; step -= 1u) {
        var left_width = share_of(shares, 4u);
        var right_width = 4u - left_width;
        if (width > 1u && share_of(shares, width) > 0u) {
            left_width = share_of(shares, width);
            right_width = width - left_width;
        } else {
            begin += select(2u, 1u, (shares & HALF) != 0u && at != c.root);
            if ((shares & NARROW) != 0u) {
                left_width = 1u;
                right_width = 1u;
            }
        }
        let turn = step - 1u;
        let to_right = (turns[turn / 32u] >> (turn & 31u) & 1u) == 1u;
        at = u32(select(children.x, children.y, to_right));
        width = select(left_width, right_width, to_right);
        let units = nodes[at].units[width - 1u];
        let found = nodes[at].leaves;
        shares = nodes[at].shares;
        children = vec2i(nodes[at].left, nodes[at].right);
        if (to_right) {
            begin = end - units;
            first_leaf = last_leaf - found;
        } else {
            end = begin + units;
            last_leaf = first_leaf + found;
        }
    }
    return Place(width == 1u || share_of(shares, width) == 0u, begin, first_leaf);
}

fn leaf_rank(leaf: u32, root: u32) -> u32 {
    var rank = 0u;
    var child = ~i32(leaf);
    var below = 1u; // leaves of `child`
    var at = leaf_parents[leaf];
    for (var step = 0u; step < 64u; step += 1u) {
        let found = nodes[at].leaves;
        let above = nodes[at].parent;
        if (nodes[at].right == child) { rank += found - below; }
        if (at == root) { break; }
        child = i32(at);
        below = found;
        at = above;
    }
    return rank;
}
