// Guest bytes of all meshes' blocks: see bvh/gpu/small_blas_stages.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.small_blas_records
#import bvh.gpu.pair_records

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> blocks: array<vec2u>;
@group(0) @binding(2) var<storage, read> triangles: array<u32>;
@group(0) @binding(3) var<storage, read> triangle_ids: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> leaves: array<vec4u>;

const TRIANGLE_MASK = (1u << CORNER_SHIFT) - 1u;

fn vertex(triangle: u32, corner: u32) -> vec3u {
    let at = 9u * triangle + 3u * (corner % 3u);
    return vec3u(triangles[at], triangles[at + 1u], triangles[at + 2u]);
}

// Flag bits of a triangle whose original vertex 0 is in that slot.
fn rotation(slot: u32) -> u32 {
    return ROTATIONS >> (4u * (slot % 3u)) & 15u;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + lane;
    if (index >= state[0].kept) { return; }
    let block = blocks[index];
    let one = block.x & TRIANGLE_MASK;
    let corner = block.x >> CORNER_SHIFT;
    let ids = triangle_ids[one];
    let v1 = vertex(one, corner + 1u);
    let v2 = vertex(one, corner + 2u);
    var v3 = v2;
    var second_id = INVALID_POINTER;
    // Corner k in slot 0 puts original vertex 0 in slot -k mod 3.
    var flags = rotation(3u - corner);
    if (block.y != NONE) {
        let two = block.y & TRIANGLE_MASK;
        let apex = block.y >> CORNER_SHIFT;
        v3 = vertex(two, apex);
        second_id = triangle_ids[two].y;
        // Type 1 is V1, V3, V2: corner k in slot 1 puts original vertex 0 in slot 1 - k mod 3.
        flags |= rotation(4u - apex) << 8u;
    }
    leaves[4u * index] = vec4u(vertex(one, corner), v1.x);
    leaves[4u * index + 1u] = vec4u(v1.yz, v2.xy);
    leaves[4u * index + 2u] = vec4u(v2.z, v3);
    leaves[4u * index + 3u] = vec4u(ids.x, ids.y, second_id, flags);
}
