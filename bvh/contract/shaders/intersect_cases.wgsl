// One instruction a lane: case i gives four words. The record is that of bvh/contract/gpu.py.
#import "bvh/contract/shaders/intersect.wgsl"

struct Parameters {
    count: u32,
    zero: u32,
}

const CASE_QUADS: u32 = 13u;

@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read> cases: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> words: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> refused: array<atomic<u32>, 3>; // by reason

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 64u + lane;
    if (index >= parameters.count) { return; }
    contract_zero = parameters.zero;
    let at = index * CASE_QUADS;
    case_quad = at;
    let descriptor = cases[at + 8u];
    let a = cases[at + 9u]; // pointer low and high, backed blocks, extent
    let b = cases[at + 10u]; // origin, direction.x
    let c = cases[at + 11u]; // direction.yz, inverse.xy
    let d = cases[at + 12u]; // inverse.z
    backed_blocks = a.z;
    let ray = NodeRay(a.w, b.xyz, vec3u(b.w, c.xy), vec3u(c.zw, d.x));
    contract_refused = 0u;
    words[index] = image_bvh64_intersect_ray(a.xy, ray, descriptor);
    for (var reason = 0u; reason < 3u; reason += 1u) {
        if ((contract_refused >> reason & 1u) != 0u) { atomicAdd(&refused[reason], 1u); }
    }
}
