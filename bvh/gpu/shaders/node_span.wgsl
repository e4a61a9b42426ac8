// Where wide nodes stand. Who imports this declares `encode_summary` and `node_units` (scanned).

const HEADER_UNITS = HEADER_BYTES / UNIT_BYTES;

// A node's first unit from the container's start, and how many it has.
fn node_span(node: u32) -> vec2u {
    let unit = HEADER_UNITS + node_units[node];
    var end = encode_summary[0].leaf_unit;
    if (node + 1u < encode_summary[0].nodes) { end = HEADER_UNITS + node_units[node + 1u]; }
    return vec2u(unit, end - unit);
}
