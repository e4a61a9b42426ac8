// IMAGE_BVH_INTERSECT_RAY and IMAGE_BVH64_INTERSECT_RAY: four result words of one node, bit for bit
// as `bvh.contract` defines them in NumPy (contract ledger sections 1 to 8).
//
// Slots:
//   $arithmetic  arithmetic_exact.wgsl (arithmetic_plain.wgsl only to measure what it prevents)
//   $memory      open_node(address, blocks) -> bool: whether so many 64-byte blocks at `address`
//                (low and high word, in 64-byte units) may be read; load_quad(i) -> vec4u: words
//                4i..4i+3 of the node opened last
// The caller sets `contract_zero` before the first call.
#import bvh.layout
#import $arithmetic

override GPURT_RULES: bool = false; // false: the rule set `chapter`

// Why nodes were refused since the caller last set this to 0.
var<private> contract_refused: u32;
const REFUSED_DESCRIPTOR: u32 = 1u; // its type, or the pointer lies beyond its size or 2^48
const REFUSED_RAY: u32 = 2u; // a NaN, or an infinite origin
const REFUSED_MEMORY: u32 = 4u; // not there

// Float bits, so that no compiler can assume what they are.
struct NodeRay {
    extent: u32,
    origin: vec3u,
    direction: vec3u,
    inverse_direction: vec3u, // an input of the instruction, never recomputed
}

#import $memory
#import "bvh/contract/shaders/box.wgsl"
#import "bvh/contract/shaders/triangle.wgsl"

fn add64(a: vec2u, b: vec2u) -> vec2u {
    let low = a.x + b.x;
    return vec2u(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn less64(a: vec2u, b: vec2u) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn reject_words(node_type: u32, reason: u32) -> vec4u {
    contract_refused |= reason;
    if (node_type <= NODE_TRIANGLE_3) { return vec4u(INFINITY, ONE, 0xffffffffu, 0u); }
    return vec4u(0xffffffffu);
}

fn any_nan(v: vec3u) -> bool {
    return is_nan(v.x) || is_nan(v.y) || is_nan(v.z);
}

// Chapter: the ray may have infinities in its directions and its extent, nowhere else.
fn ray_is_valid(ray: NodeRay) -> bool {
    let infinite = (ray.origin & vec3u(MAGNITUDE)) == vec3u(INFINITY);
    return !(is_nan(ray.extent) || any_nan(ray.origin) || any_nan(ray.direction)
        || any_nan(ray.inverse_direction) || any(infinite));
}

// Chapter: last block within the size field, type 8, last block below 2^48 bytes. `base` and
// `last` count 64-byte units.
fn descriptor_allows(descriptor: vec4u, base: vec2u, last: vec2u) -> bool {
    let limit = vec2u(descriptor.z, descriptor.w & 0x3ffu);
    return (descriptor.w >> 28u) == DESCRIPTOR_TYPE && !less64(limit, last)
        && less64(add64(base, last), vec2u(0u, 1u << 10u));
}

fn image_bvh_intersect_ray(node: u32, ray: NodeRay, descriptor: vec4u) -> vec4u {
    return image_bvh64_intersect_ray(vec2u(node, 0u), ray, descriptor);
}

fn image_bvh64_intersect_ray(node: vec2u, ray: NodeRay, descriptor: vec4u) -> vec4u {
    let node_type = node.x & 7u;
    if (node_type >= NODE_INSTANCE) { return vec4u(0xffffffffu); } // software's own nodes
    let index = vec2u((node.x >> 3u) | (node.y << 29u), node.y >> 3u);
    let blocks = select(1u, 2u, node_type == NODE_BOX_FP32);
    // 40 bits of the base in units of 256 bytes.
    let base_high = descriptor.y & 0xffu;
    let base = vec2u(descriptor.x << 2u, (base_high << 2u) | (descriptor.x >> 30u));
    if (!GPURT_RULES) {
        let last = add64(index, vec2u(blocks - 1u, 0u));
        if (!descriptor_allows(descriptor, base, last)) {
            return reject_words(node_type, REFUSED_DESCRIPTOR);
        }
        if (!ray_is_valid(ray)) { return reject_words(node_type, REFUSED_RAY); }
    }
    if (!open_node(add64(base, index), blocks)) {
        return reject_words(node_type, REFUSED_MEMORY);
    }

    if (node_type >= NODE_BOX_FP16) {
        let boxes = load_box(node_type);
        let growth = (descriptor.y >> 23u) & 0xffu;
        let sort = (descriptor.y >> 31u) != 0u;
        if (GPURT_RULES) { return intersect_box_gpurt(boxes, ray, growth, sort); }
        return intersect_box_chapter(boxes, ray, growth, sort);
    }
    let triangle = load_triangle(node_type);
    var words: TriangleWords;
    if (GPURT_RULES) {
        words = intersect_triangle_gpurt(triangle, ray);
    } else {
        words = intersect_triangle_chapter(triangle, ray);
        words.numerator = select(INFINITY, words.numerator, words.hit);
        words.denominator = select(ONE, words.denominator, words.hit);
    }
    if (((descriptor.w >> 24u) & 1u) == 0u) { // return mode 0
        return vec4u(words.numerator, words.denominator, triangle.flags + node_type,
                     select(0u, 1u, words.hit));
    }
    let sources = triangle.flags >> (8u * node_type);
    return vec4u(words.numerator, words.denominator,
                 source_weight(words.weights, sources & 3u),
                 source_weight(words.weights, (sources >> 2u) & 3u));
}
