// Where every mesh's container goes, and its entry for the TLAS: see bvh/gpu/small_blas_stages.py.

#import bvh.gpu.small_blas_records
#import bvh.gpu.cluster_records
#import bvh.gpu.tlas_records

@group(0) @binding(0) var<uniform> parameters: SmallParameters;
@group(0) @binding(1) var<storage, read> segments: array<ClusterSegment>;
@group(0) @binding(2) var<storage, read> nodes: array<ClusterNode>;
@group(0) @binding(3) var<storage, read> sizes: array<u32>;
@group(0) @binding(4) var<storage, read> size_sums: array<u32>; // of 256 meshes
@group(0) @binding(5) var<storage, read_write> trees: array<ClusterTree>;
@group(0) @binding(6) var<storage, read_write> blases: array<BlasRecord>;
@group(0) @binding(7) var<storage, read_write> total_units: array<u32>;

var<workgroup> sums: array<atomic<u32>, 2>; // of groups before this one, of all
var<workgroup> scanned: array<u32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group.y * groups.x + group.x;
    let index = number * 256u + lane;
    let inside = index < parameters.meshes;
    if (lane < 2u) { atomicStore(&sums[lane], 0u); }
    var size = 0u;
    if (inside) { size = sizes[index]; }
    scanned[lane] = size;
    workgroupBarrier();
    var part = vec2u(0u);
    for (var other = lane; 256u * other < parameters.meshes; other += 256u) {
        part += vec2u(select(0u, size_sums[other], other < number), size_sums[other]);
    }
    if (part.y > 0u) {
        atomicAdd(&sums[0], part.x);
        atomicAdd(&sums[1], part.y);
    }
    for (var reach = 1u; reach < 256u; reach *= 2u) {
        var before = 0u;
        if (lane >= reach) { before = scanned[lane - reach]; }
        workgroupBarrier();
        scanned[lane] += before;
        workgroupBarrier();
    }
    if (index == 0u) { total_units[0] = atomicLoad(&sums[1]); }
    if (!inside) { return; }
    let root = segments[index].root;
    let base = parameters.base_unit + atomicLoad(&sums[0]) + scanned[lane] - size;
    trees[index].base_unit = base;
    let used = nodes[root].leaves > 0u;
    let low = select(vec3f(1.0), nodes[root].low, used);
    let high = select(vec3f(-1.0), nodes[root].high, used);
    blases[index] = BlasRecord(low, base, high, trees[index].geometries);
}
