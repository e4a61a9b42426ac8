// Vertices displaced by morph targets, for skinning to pose: engine/scene/morphing.py.

#import engine.scene.skin_records
#import engine.scene.morph_records

@group(0) @binding(0) var<uniform> parameters: MorphParameters;
@group(0) @binding(1) var<storage, read> base_vertices: array<MorphVertex>;
@group(0) @binding(2) var<storage, read> meshes: array<MorphMesh>;
@group(0) @binding(3) var<storage, read> displacements: array<Displacement>;
@group(0) @binding(4) var<storage, read> weights: array<f32>;
@group(0) @binding(5) var<storage, read_write> bind_vertices: array<BindVertex>;

// A product rounded by itself: a driver may fuse it with the sum that it goes into.
fn rounded(v: vec3f) -> vec3f {
    return bitcast<vec3f>(bitcast<vec3u>(v) ^ vec3u(parameters.zero));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + lane;
    if (index >= parameters.count) { return; }
    let vertex = base_vertices[index];
    let mesh = meshes[vertex.mesh];
    var position = vec3f(vertex.position[0], vertex.position[1], vertex.position[2]);
    var normal = vec3f(vertex.normal[0], vertex.normal[1], vertex.normal[2]);
    var at = mesh.first_displacement + index - mesh.first_vertex;
    for (var k = 0u; k < mesh.targets; k += 1u) {
        let weight = weights[mesh.first_weight + k];
        if (weight != 0.0) { // else not a bit changes, and nothing is read
            let by = displacements[at];
            position += rounded(weight * vec3f(by.position[0], by.position[1], by.position[2]));
            normal += rounded(weight * vec3f(by.normal[0], by.normal[1], by.normal[2]));
        }
        at += mesh.vertices;
    }
    bind_vertices[vertex.bind_vertex].position = array(position.x, position.y, position.z);
    bind_vertices[vertex.bind_vertex].normal = array(normal.x, normal.y, normal.z);
}
