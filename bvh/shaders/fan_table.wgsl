// Where a fan's geometry and primitive ids are (bvh/layout.py): the first in its flag word, the
// second in a table behind the leaves of its container.

override HAS_FANS: bool = false; // false: types 2 and 3 are unknown nodes

// The geometry word of other blocks, from a fan's flag word.
fn fan_geometry(flags: u32) -> u32 {
    return ((flags >> 4u) & 0xfu) | ((flags >> 8u) & 0xf0u) | ((flags >> 12u) & 0xf00u)
        | ((flags >> 16u) & 0x7000u) | select(0u, GEOMETRY_OPAQUE, (flags & FAN_OPAQUE) != 0u);
}

// The row of a block's ids as an index of `bvh`, 0 for a block that is no fan. `block` and `base`,
// where its container starts, are in 64-byte units.
fn fan_row(block: u32, base: u32) -> u32 {
    let header = base << 2u;
    let fan_unit = bvh[header + 4u].z;
    if (fan_unit == 0u) { return 0u; }
    let leaf = block - base - bvh[header + 1u].y;
    let table = (base + fan_unit) << 2u;
    let group = leaf / FAN_GROUP_LEAVES; // two groups a vec4
    let pair = bvh[table + (group >> 1u)];
    let entry = select(pair.xy, pair.zw, (group & 1u) != 0u);
    let bit = 1u << (leaf % FAN_GROUP_LEAVES);
    if ((entry.x & bit) == 0u) { return 0u; }
    return table + entry.y + countOneBits(entry.x & (bit - 1u));
}

struct BlockIds {
    geometry: u32, // index and flags, as TRIANGLE_GEOMETRY_WORD has them
    primitive: u32,
}

// Of triangle `triangle` of the block; `tail` are the block's last four words.
fn block_ids(tail: vec4<u32>, block: u32, triangle: u32, base: u32) -> BlockIds {
    if (HAS_FANS) {
        let row = fan_row(block, base);
        if (row != 0u) { return BlockIds(fan_geometry(tail.w), bvh[row][triangle]); }
    }
    return BlockIds(tail.x, select(tail.y, tail.z, triangle == 1u));
}
