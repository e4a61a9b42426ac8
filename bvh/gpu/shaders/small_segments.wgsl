// Which blocks are a mesh's, and how many triangles they hold: see bvh/gpu/small_blas_stages.py.

#import bvh.layout
#import bvh.gpu.build_records
#import bvh.gpu.small_blas_records
#import bvh.gpu.cluster_records

@group(0) @binding(0) var<uniform> parameters: SmallParameters;
@group(0) @binding(1) var<storage, read> meshes: array<SmallMesh>;
@group(0) @binding(2) var<storage, read> starts: array<u32>; // scanned by now
@group(0) @binding(3) var<storage, read> state: array<BuildState>;
@group(0) @binding(4) var<storage, read> leaves: array<u32>;
@group(0) @binding(5) var<storage, read_write> segments: array<ClusterSegment>;
@group(0) @binding(6) var<storage, read_write> trees: array<ClusterTree>;

var<workgroup> pairs: atomic<u32>;

fn blocks_before(triangle: u32) -> u32 {
    if (triangle >= parameters.triangles) { return state[0].kept; }
    return starts[triangle];
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group.y * groups.x + group.x;
    if (index >= parameters.meshes) { return; }
    let mesh = meshes[index];
    let first = blocks_before(mesh.first);
    let count = blocks_before(mesh.first + mesh.count) - first;
    if (lane == 0u) { atomicStore(&pairs, 0u); }
    workgroupBarrier();
    for (var i = lane; i < count; i += 64u) {
        let second = leaves[UNIT_WORDS * (first + i) + TRIANGLE_PRIMITIVE_1_WORD];
        if (second != INVALID_POINTER) { atomicAdd(&pairs, 1u); }
    }
    workgroupBarrier();
    if (lane != 0u) { return; }
    segments[index].first = first;
    segments[index].count = count;
    trees[index].primitives = count + atomicLoad(&pairs);
    trees[index].geometries = mesh.geometries;
    trees[index].first_geometry = mesh.first_geometry;
    trees[index].limit_unit = parameters.limit_unit;
}
