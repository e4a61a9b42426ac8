// Units of every mesh's container, aligned: see bvh/gpu/small_blas_stages.py.

#import bvh.layout
#import bvh.gpu.small_blas_records
#import bvh.gpu.cluster_records

@group(0) @binding(0) var<uniform> parameters: SmallParameters;
@group(0) @binding(1) var<storage, read> segments: array<ClusterSegment>;
@group(0) @binding(2) var<storage, read> nodes: array<ClusterNode>;
@group(0) @binding(3) var<storage, read_write> sizes: array<u32>;
@group(0) @binding(4) var<storage, read_write> size_sums: array<u32>; // of 256 meshes

var<workgroup> sum: atomic<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group.y * groups.x + group.x;
    let index = number * 256u + lane;
    let inside = index < parameters.meshes;
    if (lane == 0u) { atomicStore(&sum, 0u); }
    workgroupBarrier();
    if (inside) {
        let root = segments[index].root;
        // The root is stored as FP32 whatever it would be further down.
        let grown = select(0u, 1u, (nodes[root].shares & HALF) != 0u);
        let size = HEADER_BYTES / UNIT_BYTES + nodes[root].units.x + grown + nodes[root].leaves;
        let aligned = (size + 3u) & ~3u;
        sizes[index] = aligned;
        atomicAdd(&sum, aligned);
    }
    workgroupBarrier();
    if (lane == 0u && inside) { size_sums[number] = atomicLoad(&sum); }
}
