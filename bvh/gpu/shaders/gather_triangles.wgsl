// The corners of triangles from vertex records, as a builder takes them: bvh/gpu/gather_triangles.py.

#import bvh.gpu.gather_triangles

@group(0) @binding(0) var<uniform> parameters: GatherParameters;
@group(0) @binding(1) var<storage, read> corner_vertices: array<u32>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read_write> triangles: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let corner = (group.y * groups.x + group.x) * 256u + lane;
    if (corner >= parameters.corners) { return; }
    let at = parameters.vertex_first + parameters.vertex_words * corner_vertices[corner];
    for (var axis = 0u; axis < 3u; axis += 1u) {
        triangles[3u * corner + axis] = positions[at + axis];
    }
}
