// Traversal in which every node goes through `image_bvh_intersect_ray`: the four result words say
// what is visited and in which order, and t, u and v are their quotients. Same interface, slots and
// failures as traverse.wgsl; slow, and exact: a CPU that follows bvh/contract gets the same bits.
//
// The shader around the instruction does what a guest's does: a stack, the nearest hit by
// t_min < t < best, masks, instance transforms, opacity. The extent is the best t so far. Inverse
// directions, quotients and transforms are correctly rounded, one rounding an operation. A node
// that the instruction refuses for its pointer ends the ray and sets FAILED_POINTER; a ray that it
// refuses misses.

#import "bvh/shaders/traversal.wgsl"
#import "bvh/contract/shaders/intersect.wgsl"
#import "bvh/shaders/fan_table.wgsl"
#import $stack
#import $accept
#import $count

override GROWTH: u32 = DEFAULT_GROWTH; // ULPs, 0 to 255

// A container's descriptor: its base, the rest of the buffer as its size, return mode 1.
fn container_descriptor(unit_base: u32) -> vec4u {
    return vec4u(unit_base >> 2u, (GROWTH << 23u) | select(0u, 0x80000000u, SORT),
                 scene_units() - 1u - unit_base, (DESCRIPTOR_TYPE << 28u) | (1u << 24u));
}

// The ray in the object space of an instance, or in world space where `instance_unit` is 0: the
// origin ((m0 x + m1 y) + m2 z) + m3, the direction without the last term, and its inverse.
fn place_ray(origin: vec3u, direction: vec3u, extent: u32, instance_unit: u32) -> NodeRay {
    var ray = NodeRay(extent, origin, direction, vec3u(0u));
    if (instance_unit != 0u) {
        let at = instance_unit << 2u;
        let x = bvh[at + 1u];
        let y = bvh[at + 2u];
        let z = bvh[at + 3u];
        var point: vec4u;
        var vector: vec4u;
        for (var term = 0u; term < 7u; term += 1u) { // three of the direction, four of the origin
            let is_point = term >= 3u;
            let column = select(term, term - 3u, is_point);
            var value = vec4u(x[column], y[column], z[column], 0u);
            if (column < 3u) {
                value = mul4(value, vec4u(select(direction, origin, is_point)[column]));
            }
            if (column > 0u) { value = add4(select(vector, point, is_point), value); }
            if (is_point) { point = value; } else { vector = value; }
        }
        ray.origin = point.xyz;
        ray.direction = vector.xyz;
    }
    for (var axis = 0u; axis < 3u; axis += 1u) {
        ray.inverse_direction[axis] = div(ONE, ray.direction[axis]);
    }
    return ray;
}

// Whether a nearer triangle becomes the hit; `geometry` is its block's geometry word.
fn consider_hit(hit: Hit, front: bool, geometry: u32, instance_unit: u32) -> bool {
    let verdict = judge(front, geometry, bvh[instance_unit << 2u].w);
    if (verdict != ASK) { return verdict == COUNTS; }
    count_any_hit();
    if ((RAY_FLAGS & RAY_REJECT) != 0u) { return false; }
    return accept_candidate(hit.object, hit.primitive, hit.u, hit.v);
}

fn trace(given: Ray, zero: u32) -> TraceResult {
    contract_zero = zero;
    contract_refused = 0u;
    let origin = bitcast<vec3u>(given.origin);
    let direction = bitcast<vec3u>(given.direction);
    let t_min = bitcast<u32>(given.t_min);
    var unit_base = 0u; // of the container that we are in, in 64-byte units
    var instance_unit = 0u; // of the instance node that we are inside, 0 in the TLAS
    if (!TWO_LEVEL) {
        instance_unit = START_INSTANCE_UNIT;
        unit_base = bvh[(instance_unit << 2u) + 4u].y;
        count_enter_instance(instance_unit);
    }
    var descriptor = container_descriptor(unit_base);
    var extent = bitcast<u32>(given.t_max);
    var ray: NodeRay;
    var moved = true; // to another level: the ray has to be placed
    var result = TraceResult(Hit(given.t_max, 0.0, 0.0, MISS, MISS, MISS), 0u);

    var stack: array<u32, STACK_SIZE>;
    stack[0] = FINISHED;
    var top = 1u; // entries in use
    var node = ROOT_POINTER;
    var steps = 0u;
    var finished = false;

    loop {
        if (moved) {
            ray = place_ray(origin, direction, extent, instance_unit);
            moved = false;
        }
        ray.extent = extent;
        // Types 6 and 7, the two stack values among them, come back as all ones unread.
        let words = image_bvh_intersect_ray(node, ray, descriptor);
        let kind = node & 7u;
        if ((contract_refused & ~REFUSED_RAY) != 0u) {
            result.failed |= FAILED_POINTER;
            break;
        }
        var pop = true;
        if (kind <= select(NODE_TRIANGLE_1, NODE_TRIANGLE_3, HAS_FANS)) {
            var quotients: vec3u; // t, u, v
            for (var i = 0u; i < 3u; i += 1u) {
                quotients[i] = div(select(words.x, words[i + 1u], i > 0u), words.y);
            }
            let nearer = less(t_min, quotients.x) && less(quotients.x, extent);
            count_triangle(nearer);
            if (nearer) {
                let ids = block_ids(load_quad(3u), unit_base + (node >> 3u), kind, unit_base);
                let instance = instance_unit << 2u;
                let hit = Hit(bitcast<f32>(quotients.x), bitcast<f32>(quotients.y),
                    bitcast<f32>(quotients.z),
                    (bvh[instance].w & INSTANCE_INDEX_MASK) + (ids.geometry & GEOMETRY_INDEX_MASK),
                    ids.primitive, bvh[instance + 4u].x);
                if (consider_hit(hit, less(0u, words.y), ids.geometry, instance_unit)) {
                    extent = quotients.x;
                    result.hit = hit;
                    if (ANY_HIT) {
                        finished = true;
                        break;
                    }
                }
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
            if (unit + 1u >= scene_units()) {
                result.failed |= FAILED_POINTER;
                break;
            }
            if (((bvh[unit << 2u].z >> INSTANCE_MASK_SHIFT) & RAY_MASK) != 0u) {
                if (top >= STACK_SIZE) {
                    result.failed |= FAILED_STACK;
                    break;
                }
                instance_unit = unit;
                unit_base = bvh[(unit << 2u) + 4u].y;
                moved = true;
                descriptor = container_descriptor(unit_base);
                if (unit_base >= scene_units() || (unit_base & 3u) != 0u) {
                    result.failed |= FAILED_POINTER;
                    break;
                }
                count_enter_instance(unit);
                stack[top] = LEAVE_INSTANCE;
                top += 1u;
                node = ROOT_POINTER;
                pop = false;
            }
        } else if (TWO_LEVEL && node == LEAVE_INSTANCE) {
            moved = true;
            unit_base = 0u;
            instance_unit = 0u;
            descriptor = container_descriptor(0u);
            count_leave_instance();
        } else {
            if (node != FINISHED) { result.failed |= FAILED_NODE; }
            finished = true;
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
    // A driver may end a loop on its own (llvmpipe does after 65,535 rounds): that is a failure too.
    if (!finished && result.failed == 0u) { result.failed = FAILED_STEPS; }
    count_leave_instance();
    return result;
}
