// Sums up a binary tree with arrival counters and an exchange chain: see bvh/gpu/litmus.py.

#import bvh.gpu.litmus

override CHAIN: bool = true; // false: relaxed atomics, in whose order nothing can be trusted

@group(0) @binding(0) var<uniform> parameters: LitmusParameters;
@group(0) @binding(1) var<storage, read_write> arrivals: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> sums: array<atomic<u32>>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + lane;
    if (index >= parameters.leaves) { return; }
    // Scattered, so that most siblings are in different workgroups.
    var node = parameters.leaves + (index * SCATTER) % parameters.leaves;
    var sum: array<u32, WORDS>;
    for (var k = 0u; k < WORDS; k += 1u) { sum[k] = parameters.seed + k; }
    loop {
        // What the exchanges return goes into the counter's operand: the counter cannot be raised
        // before the words are where every reader finds them.
        var old = 0u;
        for (var k = 0u; k < WORDS; k += 1u) {
            if (CHAIN) {
                old |= atomicExchange(&sums[node * WORDS + k], sum[k]);
            } else {
                atomicStore(&sums[node * WORDS + k], sum[k]);
            }
        }
        if (node == 1u) { return; }
        let first = atomicAdd(&arrivals[node / 2u], 1u + (old & parameters.zero)) == 0u;
        if (first) { return; }
        for (var k = 0u; k < WORDS; k += 1u) {
            sum[k] += atomicLoad(&sums[(node ^ 1u) * WORDS + k]);
        }
        node /= 2u;
    }
}
