// One workgroup sorts SEGMENT keys: see bvh/gpu/tlas_sort.py.

#import bvh.gpu.build_records
#import bvh.gpu.cluster_records
#import $lanes

@group(0) @binding(0) var<storage, read> state: array<BuildState>;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> tile_keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> tile_items: array<u32>;

var<workgroup> shared_keys: array<u32, 512>;
var<workgroup> items: array<u32, 512>;

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = SEGMENT * group.x;
    let kept = state[0].kept;
    for (var i = lane; i < SEGMENT; i += LANES) {
        var key = 0xffffffffu;
        if (first + i < kept) { key = keys[first + i]; }
        shared_keys[i] = key;
        items[i] = i;
    }
    workgroupBarrier();
    // Bitonic, by key and then by place.
    for (var span = 2u; span <= SEGMENT; span *= 2u) {
        for (var stride = span / 2u; stride > 0u; stride /= 2u) {
            for (var k = lane; k < SEGMENT / 2u; k += LANES) {
                let i = 2u * k - (k & (stride - 1u));
                let j = i + stride;
                let a = vec2u(shared_keys[i], items[i]);
                let b = vec2u(shared_keys[j], items[j]);
                let above = a.x > b.x || (a.x == b.x && a.y > b.y);
                if (above == ((i & span) == 0u)) {
                    shared_keys[i] = b.x;
                    shared_keys[j] = a.x;
                    items[i] = b.y;
                    items[j] = a.y;
                }
            }
            workgroupBarrier();
        }
    }
    for (var i = lane; i < SEGMENT; i += LANES) {
        tile_keys[first + i] = shared_keys[i];
        tile_items[first + i] = first + items[i];
    }
}
