// Counts nodes with a wrong sum and clears the arrivals: see bvh/gpu/litmus.py.

#import bvh.gpu.litmus

@group(0) @binding(0) var<uniform> parameters: LitmusParameters;
@group(0) @binding(1) var<storage, read> sums: array<u32>;
@group(0) @binding(2) var<storage, read_write> arrivals: array<u32>;
@group(0) @binding(3) var<storage, read_write> wrong: array<atomic<u32>>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let node = (group.y * groups.x + group.x) * 256u + lane;
    if (node == 0u || node >= 2u * parameters.leaves) { return; }
    let leaves_below = countTrailingZeros(parameters.leaves) - (31u - countLeadingZeros(node));
    var differs = false;
    for (var k = 0u; k < WORDS; k += 1u) {
        differs = differs || sums[node * WORDS + k] != (parameters.seed + k) << leaves_below;
    }
    if (node < parameters.leaves) {
        differs = differs || arrivals[node] != 2u;
        arrivals[node] = 0u;
    }
    if (differs) { atomicAdd(&wrong[0], 1u); }
}
