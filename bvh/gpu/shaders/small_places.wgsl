// Where every mesh's container goes, and its entry for the TLAS: see bvh/gpu/small_blas_stages.py.

#import bvh.gpu.small_blas_records
#import bvh.gpu.cluster_records
#import bvh.gpu.tlas_records

@group(0) @binding(0) var<uniform> parameters: SmallParameters;
@group(0) @binding(1) var<storage, read> segments: array<ClusterSegment>;
@group(0) @binding(2) var<storage, read> nodes: array<ClusterNode>;
@group(0) @binding(3) var<storage, read> sizes: array<u32>; // scanned by now
@group(0) @binding(4) var<storage, read_write> trees: array<ClusterTree>;
@group(0) @binding(5) var<storage, read_write> blases: array<BlasRecord>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + lane;
    if (index >= parameters.meshes) { return; }
    let root = segments[index].root;
    let base = parameters.base_unit + sizes[index];
    trees[index].base_unit = base;
    let used = nodes[root].leaves > 0u;
    let low = select(vec3f(1.0), nodes[root].low, used);
    let high = select(vec3f(-1.0), nodes[root].high, used);
    blases[index] = BlasRecord(low, base, high, trees[index].geometries);
}
