// One value a tile of 2048 items: see engine/gpu/primitives/reduce.py.

@group(0) @binding(0) var<uniform> parameters: vec4u; // count, operation (0 sum, 1 min, 2 max)
@group(0) @binding(1) var<storage, read> live: array<u32>; // the count that the GPU knows
@group(0) @binding(2) var<storage, read> values: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<u32>;

const LANES = 256u;
const ITEMS = 8u;

var<workgroup> part: array<u32, LANES>;

fn identity() -> u32 {
    return select(0u, 0xffffffffu, parameters.y == 1u);
}

fn join(a: u32, b: u32) -> u32 {
    if (parameters.y == 1u) { return min(a, b); }
    if (parameters.y == 2u) { return max(a, b); }
    return a + b;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * groups.x + group.x;
    let count = min(parameters.x, live[0]);
    var mine = identity();
    for (var i = 0u; i < ITEMS; i += 1u) {
        let index = (tile * ITEMS + i) * LANES + lane;
        if (index < count) { mine = join(mine, values[index]); }
    }
    part[lane] = mine;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if (lane < width) { part[lane] = join(part[lane], part[lane + width]); }
        workgroupBarrier();
    }
    // A dispatch folded into rows may have groups to spare.
    if (lane == 0u && tile < arrayLength(&partials)) { partials[tile] = part[0]; }
}
