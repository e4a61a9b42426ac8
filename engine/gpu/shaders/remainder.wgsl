// v modulo n, never negative, for every v and n > 0. Of unsigned numbers: what `%` of a negative i32
// comes to is left to the driver ("signed-remainder" in engine/gpu/faults.py).
fn positive_remainder(v: i32, n: u32) -> u32 {
    // -1, -2, ... count down from n - 1 as ~v = 0, 1, ... counts up.
    let rest = u32(select(v, ~v, v < 0)) % n;
    return select(rest, n - 1u - rest, v < 0);
}
