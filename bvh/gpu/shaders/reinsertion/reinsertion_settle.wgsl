// Keeps what an accepted round changed and takes back what a rejected one did: see bvh/gpu/reinsertion_refit.py.

#import bvh.gpu.build_records
#import bvh.gpu.reinsertion_records
#import "bvh/gpu/shaders/reinsertion/nodes.wgsl"

@group(0) @binding(0) var<uniform> parameters: ReinsertionParameters;
@group(0) @binding(1) var<storage, read> progress: array<Progress>;
@group(0) @binding(2) var<storage, read> changed: array<u32>;
@group(0) @binding(3) var<storage, read_write> children: array<vec2i>;
@group(0) @binding(4) var<storage, read_write> bounds: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> heights: array<u32>;
@group(0) @binding(6) var<storage, read_write> parents: array<i32>;
@group(0) @binding(7) var<storage, read_write> kept_links: array<vec4i>; // children, height
@group(0) @binding(8) var<storage, read_write> kept_bounds: array<vec2f>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let verdict = progress[0].verdict;
    if (verdict == NO_VERDICT) { return; }
    let count = progress[0].changed;
    for (var slot = group.x * 256u + lane; slot < count; slot += groups.x * 256u) {
        let node = changed[slot];
        if (verdict == ACCEPTED) {
            kept_links[node] = vec4i(children[node], i32(heights[node]), 0);
            for (var k = 3u * node; k < 3u * node + 3u; k += 1u) { kept_bounds[k] = bounds[k]; }
            continue;
        }
        let links = kept_links[node];
        children[node] = links.xy;
        heights[node] = u32(links.z);
        for (var k = 3u * node; k < 3u * node + 3u; k += 1u) { bounds[k] = kept_bounds[k]; }
        // Whatever has another parent now has a changed one, before and after.
        parents[place(links.x, parameters.nodes)] = i32(node);
        parents[place(links.y, parameters.nodes)] = i32(node);
    }
}
