// Traces a plain set of rays as trace_rays.wgsl does and writes the steps of one of them down.
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
@group(0) @binding(5) var<storage, read_write> ray_log: RayLog;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 64u + lane;
    if (index < parameters.ray_count) {
        note_active = index == ray_log.ray;
        let result = trace(rays[index], parameters.zero);
        hits[index] = result.hit;
        if (result.failed != 0u) { atomicOr(&failed, result.failed); }
    }
}
