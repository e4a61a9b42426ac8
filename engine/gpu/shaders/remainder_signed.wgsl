// remainder.wgsl as it is first written, for drivers whose `%` keeps the sign of a negative i32; in
// its place where the workaround of "signed-remainder" (engine/gpu/faults.py) is turned off.
fn positive_remainder(v: i32, n: u32) -> u32 {
    let m = i32(n);
    return u32(((v % m) + m) % m);
}
