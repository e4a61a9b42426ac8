// Traces a plain set of rays and counts what that takes: ray i gives hit i.
#import $traverse

struct Parameters {
    ray_count: u32,
    zero: u32, // see ray_triangle.wgsl
}

@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read> bvh: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> rays: array<Ray>;
@group(0) @binding(3) var<storage, read_write> hits: array<Hit>;
@group(0) @binding(4) var<storage, read_write> failed: atomic<u32>;
@group(0) @binding(5) var<storage, read_write> counters: array<atomic<u32>>;
@group(0) @binding(6) var<storage, read_write> ray_nodes: array<u32>;

override STORE_CANDIDATES: bool = false; // true: the number of candidates replaces the instance

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 64u + lane;
    if (index < parameters.ray_count) {
        var result = trace(rays[index], parameters.zero);
        if (STORE_CANDIDATES) { result.hit.instance = candidate_count(); }
        hits[index] = result.hit;
        if (result.failed != 0u) { atomicOr(&failed, result.failed); }
        count_ray(result.hit.object != MISS, result.hit.instance, result.failed);
        ray_nodes[index] = counted[COUNT_NODES];
    }
    add_counters(lane);
}
