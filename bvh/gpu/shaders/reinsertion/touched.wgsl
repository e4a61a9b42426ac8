// The nodes that a move touches. Who imports this declares `parameters`, `children` and `parents`.

#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

struct Touched {
    nodes: array<u32, 6>, // places of the nodes whose links a move changes
}

fn touched(node: i32, target_node: i32) -> Touched {
    let nodes = parameters.nodes;
    let above = parents[place(node, nodes)];
    let sibling = sibling_of(children[above], node);
    return Touched(array<u32, 6>(
        place(node, nodes),
        u32(above),
        u32(parents[above]),
        place(sibling, nodes),
        place(target_node, nodes),
        u32(parents[place(target_node, nodes)]),
    ));
}
