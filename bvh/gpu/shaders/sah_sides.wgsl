// Which side of its node's cut a primitive is on.

// `bins` is its packed bins, `offset` its place in the node.
fn goes_left(split: SahSplit, bins: u32, offset: u32) -> bool {
    if (split.axis == HALVED) { return offset < split.left_count; }
    return (bins >> (5u * split.axis) & 31u) <= split.last_bin;
}
