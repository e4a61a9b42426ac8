// Where the parts of a fan table are: see bvh/fan_blocks.py.

// The first row's number, which is its place in vec4s from the table's start.
fn fan_rows_start(leaves: u32) -> u32 {
    let groups = (leaves + FAN_GROUP_LEAVES - 1u) / FAN_GROUP_LEAVES;
    return (groups * FAN_GROUP_WORDS + FAN_ROW_WORDS - 1u) / FAN_ROW_WORDS;
}

// 64-byte units of the table.
fn fan_table_units(leaves: u32, fans: u32) -> u32 {
    return select((fan_rows_start(leaves) + fans + 3u) / 4u, 0u, fans == 0u);
}
