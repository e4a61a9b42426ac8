// Flag bits of a triangle whose original vertex 0 is in that slot, counted on from 2 to 0.
fn rotation(slot: u32) -> u32 {
    return ROTATIONS >> (4u * (slot % 3u)) & 15u;
}
