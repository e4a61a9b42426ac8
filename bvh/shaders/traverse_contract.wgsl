// Traversal in which every node goes through `image_bvh_intersect_ray`: the four result words say
// what is visited and in which order, and t, u and v are their quotients. Same interface, slots and
// failures as traverse.wgsl; slow, and exact: a CPU that follows bvh/contract gets the same bits.
//
// The shader around the instruction does what a guest's does: a stack, the nearest hit by
// t_min < t < best, masks, instance transforms, opacity. The extent is the best t so far. Inverse
// directions, quotients and transforms are correctly rounded, one rounding an operation. A node
// that the instruction refuses ends the ray and sets FAILED_NODE.

#import "bvh/shaders/traversal.wgsl"
#import "bvh/contract/shaders/intersect.wgsl"
#import $stack
#import $accept
#import $count

override GROWTH: u32 = DEFAULT_GROWTH; // ULPs, 0 to 255

// A container's descriptor: its base, the rest of the buffer as its size, return mode 1.
fn container_descriptor(unit_base: u32) -> vec4u {
    return vec4u(unit_base >> 2u, (GROWTH << 23u) | select(0u, 0x80000000u, SORT),
                 scene_units() - 1u - unit_base, (DESCRIPTOR_TYPE << 28u) | (1u << 24u));
}

fn node_ray(origin: vec3u, direction: vec3u, extent: u32) -> NodeRay {
    let inverse = vec3u(div(ONE, direction.x), div(ONE, direction.y), div(ONE, direction.z));
    return NodeRay(extent, origin, direction, inverse);
}

// ((m0 x + m1 y) + m2 z) + m3 for the origin, without the last term for the direction.
fn object_ray(origin: vec3u, direction: vec3u, extent: u32, instance_unit: u32) -> NodeRay {
    let at = instance_unit << 2u;
    let x = bvh[at + 1u];
    let y = bvh[at + 2u];
    let z = bvh[at + 3u];
    let m0 = vec4u(x.x, y.x, z.x, 0u);
    let m1 = vec4u(x.y, y.y, z.y, 0u);
    let m2 = vec4u(x.z, y.z, z.z, 0u);
    let m3 = vec4u(x.w, y.w, z.w, 0u);
    var point = add4(mul4(m0, vec4u(origin.x)), mul4(m1, vec4u(origin.y)));
    point = add4(add4(point, mul4(m2, vec4u(origin.z))), m3);
    var vector = add4(mul4(m0, vec4u(direction.x)), mul4(m1, vec4u(direction.y)));
    vector = add4(vector, mul4(m2, vec4u(direction.z)));
    return node_ray(point.xyz, vector.xyz, extent);
}

// Whether triangle `node & 7` of the block that was opened last becomes the hit.
fn consider_words(words: vec4u, t: u32, node: u32, instance_unit: u32) -> bool {
    let tail = load_quad(3u);
    let flags = bvh[instance_unit << 2u].w;
    let verdict = judge(less(0u, words.y), tail.x, flags);
    if (verdict != ASK) { return verdict == COUNTS; }
    count_any_hit();
    let object = (flags & INSTANCE_INDEX_MASK) + (tail.x & GEOMETRY_INDEX_MASK);
    let primitive = select(tail.y, tail.z, (node & 7u) == NODE_TRIANGLE_1);
    return accept_candidate(object, primitive, bitcast<f32>(div(words.z, words.y)),
                            bitcast<f32>(div(words.w, words.y)));
}

fn trace(given: Ray, zero: u32) -> TraceResult {
    contract_zero = zero;
    contract_refused = 0u;
    let origin = bitcast<vec3u>(given.origin);
    let direction = bitcast<vec3u>(given.direction);
    let t_min = bitcast<u32>(given.t_min);
    var unit_base = 0u; // of the container that we are in, in 64-byte units
    var instance_unit = 0u; // of the instance node that we are inside, 0 in the TLAS
    var ray: NodeRay;
    if (TWO_LEVEL) {
        ray = node_ray(origin, direction, bitcast<u32>(given.t_max));
    } else {
        instance_unit = START_INSTANCE_UNIT;
        ray = object_ray(origin, direction, bitcast<u32>(given.t_max), instance_unit);
        unit_base = bvh[(instance_unit << 2u) + 4u].y;
        count_enter_instance(instance_unit);
    }
    var descriptor = container_descriptor(unit_base);
    var result = TraceResult(Hit(given.t_max, 0.0, 0.0, MISS, MISS, MISS), 0u);

    var stack: array<u32, STACK_SIZE>;
    stack[0] = FINISHED;
    var top = 1u; // entries in use
    var node = ROOT_POINTER;
    var steps = 0u;

    loop {
        // Types 6 and 7, the two stack values among them, come back as all ones unread.
        let words = image_bvh_intersect_ray(node, ray, descriptor);
        let kind = node & 7u;
        if (contract_refused != 0u) {
            result.failed |= FAILED_NODE;
            break;
        }
        var pop = true;
        if (kind <= NODE_TRIANGLE_1) {
            let t = div(words.x, words.y);
            let nearer = less(t_min, t) && less(t, ray.extent);
            count_triangle(nearer);
            if (nearer && consider_words(words, t, node, instance_unit)) {
                let tail = load_quad(3u);
                let instance = instance_unit << 2u;
                ray.extent = t;
                result.hit = Hit(bitcast<f32>(t), bitcast<f32>(div(words.z, words.y)),
                    bitcast<f32>(div(words.w, words.y)),
                    (bvh[instance].w & INSTANCE_INDEX_MASK) + (tail.x & GEOMETRY_INDEX_MASK),
                    select(tail.y, tail.z, kind == NODE_TRIANGLE_1), bvh[instance + 4u].x);
                if (ANY_HIT) { break; }
            }
            if (kind > 0u) { // a pointer of type k visits k to 0
                node -= 1u;
                pop = false;
            }
        } else if (kind == NODE_BOX_FP16 || kind == NODE_BOX_FP32) {
            steps += 1u;
            count_box_node(load_quad(0u), words != vec4u(INVALID_POINTER));
            if (top + 3u > STACK_SIZE) {
                result.failed |= FAILED_STACK;
                break;
            }
            // The first child is next, the others wait in order. Unsorted words may have holes.
            var next = INVALID_POINTER;
            for (var slot = 4u; slot > 0u; slot -= 1u) {
                let child = words[slot - 1u];
                if (child == INVALID_POINTER) { continue; }
                if (next != INVALID_POINTER) {
                    stack[top] = next;
                    top += 1u;
                }
                next = child;
            }
            count_stack(top - 1u);
            if (next != INVALID_POINTER) {
                node = next;
                pop = false;
            }
        } else if (TWO_LEVEL && kind == NODE_INSTANCE && instance_unit == 0u) {
            let unit = node >> 3u; // instances live in the TLAS, whose base is 0
            if (unit >= scene_units() - 1u) {
                result.failed |= FAILED_NODE;
                break;
            }
            if (((bvh[unit << 2u].z >> INSTANCE_MASK_SHIFT) & RAY_MASK) != 0u) {
                if (top >= STACK_SIZE) {
                    result.failed |= FAILED_STACK;
                    break;
                }
                instance_unit = unit;
                unit_base = bvh[(unit << 2u) + 4u].y;
                ray = object_ray(origin, direction, ray.extent, unit);
                descriptor = container_descriptor(unit_base);
                count_enter_instance(unit);
                stack[top] = LEAVE_INSTANCE;
                top += 1u;
                node = ROOT_POINTER;
                pop = false;
            }
        } else if (TWO_LEVEL && node == LEAVE_INSTANCE) {
            ray = node_ray(origin, direction, ray.extent);
            unit_base = 0u;
            instance_unit = 0u;
            descriptor = container_descriptor(0u);
            count_leave_instance();
        } else {
            if (node != FINISHED) { result.failed |= FAILED_NODE; }
            break;
        }
        if (pop) {
            top -= 1u;
            node = stack[top];
        }
        if (steps > MAX_STEPS) {
            result.failed |= FAILED_STEPS;
            break;
        }
    }
    count_leave_instance();
    return result;
}
