// Posed positions and normals of skinned vertices, into their records: engine/scene/skinning.py.

#import engine.scene.skin_records

@group(0) @binding(0) var<uniform> parameters: SkinParameters;
@group(0) @binding(1) var<storage, read> bind_vertices: array<BindVertex>;
@group(0) @binding(2) var<storage, read> influences: array<vec2u>; // matrix, weight bits
@group(0) @binding(3) var<storage, read> matrices: array<vec4f>; // three rows each
@group(0) @binding(4) var<storage, read_write> vertices: array<u32>;

// A product rounded by itself: a driver may fuse it with the sum that it goes into.
fn rounded(v: vec4f) -> vec4f {
    return bitcast<vec4f>(bitcast<vec4u>(v) ^ vec4u(parameters.zero));
}

fn dot3(row: vec3f, v: vec3f) -> f32 {
    let p = rounded(vec4f(row * v, 0.0));
    return (p.x + p.y) + p.z;
}

fn cross_rows(a: vec3f, b: vec3f) -> vec3f {
    return rounded(vec4f(a.yzx * b.zxy, 0.0)).xyz - rounded(vec4f(a.zxy * b.yzx, 0.0)).xyz;
}

// Octahedral code of a direction of any length; see engine/scene/upload.py.
fn octahedral(n: vec3f) -> u32 {
    let length = (abs(n.x) + abs(n.y)) + abs(n.z);
    if (!(length > 0.0 && length < 3e38)) { return NO_STORED_NORMAL; }
    let u = n / length;
    var pair = u.xy;
    if (u.z < 0.0) {
        pair = (1.0 - abs(u.yx)) * select(vec2f(-1.0), vec2f(1.0), u.xy >= vec2f(0.0));
    }
    let code = vec2i(round(clamp(pair, vec2f(-1.0), vec2f(1.0)) * 32767.0));
    return (u32(code.x) & 0xffffu) | u32(code.y) << 16u;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + lane;
    if (index >= parameters.count) { return; }
    let vertex = bind_vertices[index];
    var x = vec4f(0.0);
    var y = vec4f(0.0);
    var z = vec4f(0.0);
    for (var k = 0u; k < parameters.influences; k += 1u) {
        let influence = influences[index * parameters.influences + k];
        let weight = bitcast<f32>(influence.y);
        let at = 3u * influence.x;
        x += rounded(weight * matrices[at]);
        y += rounded(weight * matrices[at + 1u]);
        z += rounded(weight * matrices[at + 2u]);
    }
    let p = vec3f(vertex.position[0], vertex.position[1], vertex.position[2]);
    let posed = vec3f(dot3(x.xyz, p) + x.w, dot3(y.xyz, p) + y.w, dot3(z.xyz, p) + z.w);
    let at = parameters.vertex_first + VERTEX_WORDS * vertex.target_vertex;
    vertices[at] = bitcast<u32>(posed.x);
    vertices[at + 1u] = bitcast<u32>(posed.y);
    vertices[at + 2u] = bitcast<u32>(posed.z);
    // Through the cofactors: the inverse transpose up to a factor, whose sign is put right.
    let n = vec3f(vertex.normal[0], vertex.normal[1], vertex.normal[2]);
    let yz = cross_rows(y.xyz, z.xyz);
    let turned = vec3f(dot3(yz, n), dot3(cross_rows(z.xyz, x.xyz), n),
        dot3(cross_rows(x.xyz, y.xyz), n));
    vertices[at + 3u] = octahedral(select(turned, -turned, dot3(x.xyz, yz) < 0.0));
}
