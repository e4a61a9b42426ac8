// A triangle's box, or an inverted one that says why it is left out: see bvh/gpu/triangle_setup.py.

#import bvh.gpu.build_records
#import bvh.gpu.pair_records
#import "bvh/gpu/shaders/box.wgsl"

@group(0) @binding(0) var<uniform> parameters: PairParameters;
@group(0) @binding(1) var<storage, read> triangles: array<f32>;
@group(0) @binding(2) var<storage, read_write> triangle_boxes: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> state: array<BuildState>;

fn corner(triangle: u32, vertex: u32) -> vec3f {
    let at = 9u * triangle + 3u * vertex;
    return vec3f(triangles[at], triangles[at + 1u], triangles[at + 2u]);
}

fn exponents(v: vec3f) -> vec3u {
    return bitcast<vec3u>(v) >> vec3u(23u) & vec3u(0xffu);
}

// Zeros get a positive sign, which a minimum or maximum need not keep.
fn unsigned_zero(v: vec3f) -> vec3f {
    let bits = bitcast<vec3u>(v);
    return bitcast<vec3f>(select(bits, vec3u(0u), bits == vec3u(0x80000000u)));
}

// A product rounded by itself: a driver may fuse it with what follows otherwise.
fn rounded(a: vec3f, b: vec3f) -> vec3f {
    return bitcast<vec3f>(bitcast<vec3u>(a * b) ^ vec3u(parameters.zero));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = flat_index(group, groups, lane);
    // The counts start anew; later dispatches fill them.
    if (index == 0u) { state[0] = BuildState(); }
    if (index >= parameters.count) { return; }
    let a = corner(index, 0u);
    let b = corner(index, 1u);
    let c = corner(index, 2u);
    let widest = max(max(exponents(a), exponents(b)), exponents(c));
    let largest = max(max(widest.x, widest.y), widest.z);
    var low = unsigned_zero(min(min(a, b), c));
    var high = unsigned_zero(max(max(a, b), c));
    if (largest == 0xffu) {
        low = vec3f(1.0);
        high = vec3f(-REMOVED_NONFINITE);
    } else {
        let factor = bitcast<f32>((254u - clamp(largest, 1u, 253u)) << 23u);
        let e = b * factor - a * factor;
        let f = c * factor - a * factor;
        if (all(rounded(e.yzx, f.zxy) == rounded(e.zxy, f.yzx))) {
            low = vec3f(1.0);
            high = vec3f(-REMOVED_DEGENERATE);
        }
    }
    triangle_boxes[3u * index] = low.xy;
    triangle_boxes[3u * index + 1u] = vec2f(low.z, high.x);
    triangle_boxes[3u * index + 2u] = high.yz;
}
