// Boxes into the nodes of one height, or of all heights from one on in a single workgroup: see
// bvh/gpu/refit.py.

#import bvh.layout
#import bvh.gpu.refit_records
#import "bvh/gpu/shaders/refit_box.wgsl"

@group(0) @binding(0) var<uniform> parameters: RefitParameters;
@group(0) @binding(1) var<storage, read> height_starts: array<u32>;
@group(0) @binding(2) var<storage, read> node_units: array<u32>;
@group(0) @binding(3) var<storage, read> node_children: array<vec4u>;
@group(0) @binding(4) var<storage, read_write> words: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> boxes: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> counts: array<atomic<u32>, 4>;

// Boxes of the nodes that this workgroup has done itself, six words each.
var<workgroup> own: array<i32, 6u * TOP_NODES>;

fn child_box(child: u32) -> OrderedBox {
    if (child == NO_CHILD) { return inverted_box(); }
    if (child >= parameters.own_first) {
        let at = 6u * (child - parameters.own_first);
        return OrderedBox(vec3i(own[at], own[at + 1u], own[at + 2u]),
            vec3i(own[at + 3u], own[at + 4u], own[at + 5u]));
    }
    return unpack_float_box(boxes[3u * child], boxes[3u * child + 1u], boxes[3u * child + 2u]);
}

fn half_words(box: OrderedBox) -> vec3u {
    if (is_empty(box)) { return vec3u(EMPTY_BOUND_FP16); }
    let packed = pack_half_box(box);
    if (half_overflows(packed)) { atomicAdd(&counts[PENDING_OVERFLOW], 1u); }
    return packed;
}

fn float_words(box: OrderedBox) -> array<vec2u, 3> {
    if (is_empty(box)) {
        let nothing = vec2u(EMPTY_BOUND_FP32);
        return array<vec2u, 3>(nothing, nothing, nothing);
    }
    return pack_float_box(box);
}

fn refit_node(node: u32) {
    let children = node_children[node];
    let a = child_box(children.x);
    let b = child_box(children.y);
    let c = child_box(children.z);
    let d = child_box(children.w);
    let unit = node_units[node];
    let at = 4u * (parameters.base_unit + (unit & ~HALF_NODE));
    if ((unit & HALF_NODE) != 0u) {
        let x = half_words(a);
        let y = half_words(b);
        let z = half_words(c);
        let w = half_words(d);
        words[at + 1u] = vec4u(x, y.x);
        words[at + 2u] = vec4u(y.yz, z.xy);
        words[at + 3u] = vec4u(z.z, w);
    } else {
        let x = float_words(a);
        let y = float_words(b);
        let z = float_words(c);
        let w = float_words(d);
        words[at + 1u] = vec4u(x[0], x[1]);
        words[at + 2u] = vec4u(x[2], y[0]);
        words[at + 3u] = vec4u(y[1], y[2]);
        words[at + 4u] = vec4u(z[0], z[1]);
        words[at + 5u] = vec4u(z[2], w[0]);
        words[at + 6u] = vec4u(w[1], w[2]);
    }
    let box = join(join(a, b), join(c, d));
    let packed = pack_float_box(box);
    let place = 3u * (parameters.blocks + node);
    boxes[place] = packed[0];
    boxes[place + 1u] = packed[1];
    boxes[place + 2u] = packed[2];
    if (parameters.blocks + node >= parameters.own_first) {
        let slot = 6u * (parameters.blocks + node - parameters.own_first);
        own[slot] = box.low.x;
        own[slot + 1u] = box.low.y;
        own[slot + 2u] = box.low.z;
        own[slot + 3u] = box.high.x;
        own[slot + 4u] = box.high.y;
        own[slot + 5u] = box.high.z;
    }
    if (node + 1u == parameters.nodes && !is_empty(box)) { // the root
        let header = 4u * parameters.base_unit + HEADER_BOUNDS_WORD / 4u;
        words[header] = vec4u(packed[0], packed[1]);
        words[header + 1u] = vec4u(packed[2], words[header + 1u].zw);
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (group.y * groups.x + group.x) * 256u + lane;
    let step = groups.x * groups.y * 256u;
    for (var height = parameters.height_first; height < parameters.height_end; height += 1u) {
        let end = height_starts[height + 1u];
        for (var node = height_starts[height] + first; node < end; node += step) {
            refit_node(node);
        }
        workgroupBarrier();
    }
    // The last dispatch publishes what was counted and leaves zeros for the next refit.
    storageBarrier();
    if (parameters.height_end == parameters.heights && lane == 0u) {
        atomicStore(&counts[FOUND_NONFINITE], atomicExchange(&counts[PENDING_NONFINITE], 0u));
        atomicStore(&counts[FOUND_OVERFLOW], atomicExchange(&counts[PENDING_OVERFLOW], 0u));
    }
}
