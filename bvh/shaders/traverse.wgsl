// Traversal of guest-layout BVH bytes, closest-hit and any-hit: one ray a lane, one loop for both
// levels. Every node's bytes are read as the guest layout says; the arithmetic is our own (fast
// mode, see ARCHITECTURE.md).
//
// The stage that imports this declares `bvh: array<vec4<u32>>` and fills these slots:
//   $stack     STACK_SIZE, the entries of a lane's stack
//   $accept    accept_candidate(object, primitive, u, v) -> bool, for non-opaque triangles
//   $count     count_* functions: empty in timed pipelines; note_* functions: empty but in step logs
//   $vote      any_lane(x) -> bool: whether x holds in a lane of the subgroup, or in this one
// An overrun stack, a node type that this kernel does not know and too many steps end the ray and
// set bits of `failed`: the frame is then invalid, never silently wrong.

#import "bvh/shaders/traversal.wgsl"
#import "bvh/shaders/child_boxes.wgsl"
#import "bvh/shaders/ray_box.wgsl"
#import "bvh/shaders/ray_triangle.wgsl"
#import "bvh/shaders/candidate.wgsl"
#import "bvh/shaders/fan_table.wgsl"
#import "bvh/shaders/sphere.wgsl"
#import $stack
#import $accept
#import $count
#import $vote

fn load_f(at: u32) -> vec4f {
    return bitcast<vec4f>(bvh[at]);
}

// Whether `count` vec4s from `at` leave the buffer. No sum here can wrap: a node pointer counts
// 29 bits of 64-byte units, and a container's base is checked on its own before it is added.
fn is_outside(at: u32, count: u32) -> bool {
    return CHECK_POINTERS && (at >= arrayLength(&bvh) || arrayLength(&bvh) - at < count);
}

// Whether pointers of this type lead to triangle blocks.
fn is_block(kind: u32) -> bool {
    if (HAS_FANS) { return kind <= NODE_TRIANGLE_3; }
    return kind <= NODE_TRIANGLE_1;
}

// The ray in an instance's object space: the origin as a point, the direction as a vector that is
// not renormalised, so that t means the same.
fn enter_instance(ray: Ray, unit: u32) -> Ray {
    let at = unit << 2u;
    let x = load_f(at + 1u);
    let y = load_f(at + 2u);
    let z = load_f(at + 3u);
    let o = vec4f(ray.origin, 1.0);
    let d = ray.direction;
    return Ray(vec3f(dot(x, o), dot(y, o), dot(z, o)), ray.t_min,
               vec3f(dot(x.xyz, d), dot(y.xyz, d), dot(z.xyz, d)), ray.t_max);
}

fn trace(given: Ray, zero: u32) -> TraceResult {
    var ray = given;
    var unit_base = 0u; // of the container that we are in, in 64-byte units
    var instance_unit = 0u; // of the instance node that we are inside, 0 in the TLAS
    if (!TWO_LEVEL) {
        instance_unit = START_INSTANCE_UNIT;
        ray = enter_instance(given, instance_unit);
        unit_base = bvh[(instance_unit << 2u) + 4u].y;
        count_enter_instance(instance_unit);
    }
    note_start(given, instance_unit);
    var result = TraceResult(Hit(ray.t_max, 0.0, 0.0, MISS, MISS, MISS), 0u);
    let t_min = max(ray.t_min, 0.0); // also what makes entry distances comparable as integers
    // From the rejected candidate on, itself included. Boxes keep the ray's own beginning: what order
    // they are visited in depends on which of a node's are hit.
    var first_t = t_min;
    if (RESUMED && !ANY_HIT) { first_t = bitcast<f32>(bitcast<u32>(resume.t) - 1u); }
    var best = TriangleHit(ray.t_max, 0.0, 0.0, false, false);
    var best_triangle = 0u; // block << 2 | triangle, the block in 64-byte units of the buffer
    var best_instance = 0u;

    var box_ray = prepare_box_ray(ray.origin, ray.direction);
    var triangle_ray = prepare_triangle_ray(ray.origin, ray.direction, zero);
    var triangle_ray_is_stale = false;
    var sphere_direction = ray.direction; // in the space that triangle_ray is in
    leaves_sphere = false;

    var stack: array<u32, STACK_SIZE>;
    stack[0] = FINISHED;
    var top = 1u; // entries in use
    var node = ROOT_POINTER;
    var steps = 0u;
    asked = Asked();

    // The outer loop goes round for alpha tests alone, and only under a mask.
    loop {
        loop {
            loop {
                if (!is_box(node)) { break; }
                steps += 1u;
                let visited = node;
                let at = (unit_base + (node >> 3u)) << 2u;
                if (is_outside(at, select(8u, 4u, (node & 7u) == NODE_BOX_FP16))) {
                    result.failed |= FAILED_POINTER;
                    node = FINISHED;
                    break;
                }
                let children = bvh[at];
                // Both formats meet before the test: a compiler that does not inline a function called
                // twice would pay more for the call than for the test.
                var bounds: ChildBounds;
                if (UNDER_MASK && HAS_FP16) {
                    bounds = load_either_bounds(at, (node & 7u) == NODE_BOX_FP16);
                } else if (HAS_FP16 && (node & 7u) == NODE_BOX_FP16) {
                    bounds = load_fp16_bounds(at);
                } else {
                    bounds = load_fp32_bounds(at);
                }
                // In rounds, in steps of four ULPs as child_key has it: what is pruned then comes behind all
                // that is not, and the order of these is that of any other round.
                var prune_t = best.t;
                if (DEFER || RESUMED) { prune_t = bitcast<f32>(bitcast<u32>(best.t) | 3u); }
                let boxes = test_boxes(box_ray, t_min, prune_t, bounds.min_x, bounds.min_y, bounds.min_z,
                    bounds.max_x, bounds.max_y, bounds.max_z);
                let k0 = child_key(boxes.entry.x, boxes.hit.x, children.x, 0u);
                let k1 = child_key(boxes.entry.y, boxes.hit.y, children.y, 1u);
                let k2 = child_key(boxes.entry.z, boxes.hit.z, children.z, 2u);
                let k3 = child_key(boxes.entry.w, boxes.hit.w, children.w, 3u);
                let nearest = min(min(k0, k1), min(k2, k3));
                count_box_node(children, vec4<u32>(k0, k1, k2, k3) != vec4<u32>(NO_KEY));
                if (nearest == NO_KEY) {
                    top -= 1u;
                    node = stack[top];
                } else if (top + 3u > STACK_SIZE) {
                    result.failed |= FAILED_STACK;
                    node = FINISHED;
                } else {
                    if (k0 != NO_KEY && k0 != nearest) { stack[top] = children.x; top += 1u; }
                    if (k1 != NO_KEY && k1 != nearest) { stack[top] = children.y; top += 1u; }
                    if (k2 != NO_KEY && k2 != nearest) { stack[top] = children.z; top += 1u; }
                    if (k3 != NO_KEY && k3 != nearest) { stack[top] = children.w; top += 1u; }
                    let slot = nearest & 3u;
                    node = select(select(children.x, children.y, slot == 1u),
                                  select(children.z, children.w, slot == 3u), slot >= 2u);
                    count_stack(top - 1u);
                }
                note_box(visited, at, children, boxes.entry, vec4<u32>(k0, k1, k2, k3), best.t, node, top);
                if (!WHILE_WHILE || steps > MAX_STEPS) { break; }
            }

            let kind = node & 7u;
            if (is_block(kind)) {
                if (TWO_LEVEL && triangle_ray_is_stale) {
                    // Triangles beside instances in a TLAS: nobody's builder makes these.
                    result.failed |= FAILED_NODE;
                    break;
                }
                let block = unit_base + (node >> 3u);
                let at = block << 2u;
                if (is_outside(at, 4u)) {
                    result.failed |= FAILED_POINTER;
                    break;
                }
                let w0 = load_f(at);
                let w1 = load_f(at + 1u);
                let w2 = load_f(at + 2u);
                var accepted = false;
                if (HAS_FANS) {
                    // One body for blocks of one to four: about V2, the rim is V0, V1, V3, V4, V0.
                    let w3 = load_f(at + 3u);
                    let apex = project(triangle_ray, vec3f(w1.zw, w2.x));
                    var from_rim = project(triangle_ray, w0.xyz);
                    var side = edge(from_rim, apex, zero);
                    for (var triangle = 0u; triangle <= kind; triangle += 1u) {
                        var point = vec3f(w0.w, w1.xy);
                        if (triangle == 1u) { point = w2.yzw; }
                        if (triangle == 2u) { point = w3.xyz; }
                        if (triangle == 3u) { point = w0.xyz; }
                        let to_rim = project(triangle_ray, point);
                        let next_side = edge(apex, to_rim, zero);
                        let found = test_projected(triangle_ray, first_t, best.t, from_rim, to_rim, apex,
                            next_side, side, edge(to_rim, from_rim, zero));
                        if (!ASKS_APART || triangle >= asked.next) {
                            let taken =
                                consider(found, block, kind, triangle, instance_unit, unit_base, true);
                            if (ASKS_APART && asked.waits) { break; }
                            note_triangle(node, at, triangle, found, best.t, taken);
                            if (taken) {
                                best = found;
                                best_triangle = (block << 2u) | triangle;
                                best_instance = instance_unit;
                                accepted = true;
                                if (ANY_HIT) { break; }
                            }
                        }
                        from_rim = to_rim;
                        side = -next_side;
                    }
                } else {
                    let a = project(triangle_ray, w0.xyz);
                    let b = project(triangle_ray, vec3f(w0.w, w1.xy));
                    let c = project(triangle_ray, vec3f(w1.zw, w2.x));
                    let shared_edge = edge(c, b, zero);
                    let first = test_projected(triangle_ray, first_t, best.t, a, b, c,
                        shared_edge, edge(a, c, zero), edge(b, a, zero));
                    if (!ASKS_APART || asked.next == 0u) {
                        accepted = consider(first, block, kind, 0u, instance_unit, unit_base, true);
                        if (!ASKS_APART || !asked.waits) {
                            note_triangle(node, at, 0u, first, best.t, accepted);
                        }
                    }
                    if (accepted) {
                        best = first;
                        best_triangle = block << 2u;
                        best_instance = instance_unit;
                    }
                    if (kind == NODE_TRIANGLE_1 && !(ASKS_APART && asked.waits)) {
                        let d = project(triangle_ray, w2.yzw);
                        let second = test_projected(triangle_ray, first_t, best.t, b, d, c,
                            edge(c, d, zero), -shared_edge, edge(d, b, zero));
                        let second_accepted =
                            consider(second, block, kind, 1u, instance_unit, unit_base, true);
                        if (!ASKS_APART || !asked.waits) {
                            note_triangle(node, at, 1u, second, best.t, second_accepted);
                        }
                        if (second_accepted) {
                            best = second;
                            best_triangle = (block << 2u) | 1u;
                            best_instance = instance_unit;
                            accepted = true;
                        }
                    }
                }
                if (HAS_SPHERES && accepted) { leaves_sphere = false; }
                // The first of a pair may have been accepted before, by its alpha test.
                if (ANY_HIT && (accepted || (ASKS_APART && best.hit && !asked.waits))) { break; }
                if (!ASKS_APART || !asked.waits) {
                    asked.next = 0u;
                    top -= 1u;
                    node = stack[top];
                }
            } else if (TWO_LEVEL && kind == NODE_INSTANCE) {
                let at = (node >> 3u) << 2u; // instances live in the TLAS, whose base is 0
                if (is_outside(at, 8u)) {
                    result.failed |= FAILED_POINTER;
                    break;
                }
                let head = bvh[at];
                if (((head.z >> INSTANCE_MASK_SHIFT) & RAY_MASK) == 0u) {
                    note_instance(node, false);
                    top -= 1u;
                    node = stack[top];
                } else if (top >= STACK_SIZE) {
                    result.failed |= FAILED_STACK;
                    break;
                } else {
                    let inner = enter_instance(ray, node >> 3u);
                    box_ray = prepare_box_ray(inner.origin, inner.direction);
                    triangle_ray = prepare_triangle_ray(inner.origin, inner.direction, zero);
                    unit_base = bvh[at + 4u].y;
                    if (is_outside(unit_base, 0u)) {
                        result.failed |= FAILED_POINTER;
                        break;
                    }
                    triangle_ray_is_stale = false;
                    if (HAS_SPHERES) { sphere_direction = inner.direction; }
                    instance_unit = node >> 3u;
                    note_instance(node, true);
                    count_enter_instance(instance_unit);
                    stack[top] = LEAVE_INSTANCE;
                    top += 1u;
                    node = ROOT_POINTER;
                }
            } else if (TWO_LEVEL && node == LEAVE_INSTANCE) {
                // Back among boxes and instances: the triangle ray is left as it is.
                box_ray = prepare_box_ray(ray.origin, ray.direction);
                triangle_ray_is_stale = true;
                unit_base = 0u;
                instance_unit = 0u;
                count_leave_instance();
                note_leave();
                top -= 1u;
                node = stack[top];
            } else if (node == FINISHED) {
                break;
            } else if (HAS_SPHERES && kind == NODE_PROCEDURAL) {
                if (TWO_LEVEL && triangle_ray_is_stale) {
                    result.failed |= FAILED_NODE;
                    break;
                }
                let block = unit_base + (node >> 3u);
                let at = block << 2u;
                if (is_outside(at, 4u)) {
                    result.failed |= FAILED_POINTER;
                    break;
                }
                let w1 = load_f(at + 1u);
                let w2 = load_f(at + 2u);
                let sphere = test_sphere(triangle_ray.origin, sphere_direction, vec3f(w1.zw, w2.x), w2.y);
                // Entering reads as triangle 0 of a block, leaving as 1; the place as slots' weights.
                var accepted = false;
                for (var crossing = 0u; crossing < 2u; crossing += 1u) {
                    let t = select(sphere.leave, sphere.enter, crossing == 0u);
                    var found = TriangleHit(t, 0.0, 0.0, crossing == 0u, false);
                    found.hit = sphere.hit && t > first_t && t < best.t;
                    if (found.hit) {
                        let place = encode_place(
                            select(sphere.leave_normal, sphere.enter_normal, vec3<bool>(crossing == 0u)));
                        found.w1 = place.x;
                        found.w2 = place.y;
                    }
                    let taken = consider(found, block, NODE_TRIANGLE_1, crossing, instance_unit,
                        unit_base, false);
                    note_triangle(node, at, crossing, found, best.t, taken);
                    if (taken) {
                        best = found;
                        best_triangle = (block << 2u) | crossing;
                        best_instance = instance_unit;
                        leaves_sphere = crossing == 1u;
                        accepted = true;
                        if (ANY_HIT) { break; }
                    }
                }
                if (ANY_HIT && accepted) { break; }
                top -= 1u;
                node = stack[top];
            } else if (!is_box(node)) {
                result.failed |= FAILED_NODE;
                break;
            }
            if (steps > MAX_STEPS) {
                result.failed |= FAILED_STEPS;
                break;
            }
            if (ASKS_APART && any_lane(asked.waits)) { break; }
        }
        let ended = result.failed != 0u || node == FINISHED || (ANY_HIT && best.hit && !asked.waits);
        if (!ASKS_APART || ended) { break; }
        if (asked.waits) {
            let kind = node & 7u;
            let block = unit_base + (node >> 3u);
            let at = block << 2u;
            let taken = passes_test(asked.hit, bvh[at + 3u], bvh[instance_unit << 2u].w, block,
                asked.triangle, unit_base);
            note_triangle(node, at, asked.triangle, asked.hit, best.t, taken);
            asked.waits = false;
            if (taken) {
                best = asked.hit;
                best_triangle = (block << 2u) | asked.triangle;
                best_instance = instance_unit;
                if (HAS_SPHERES) { leaves_sphere = false; }
            }
            // A pair's second triangle is tested all the same, as without the outer loop: counts are
            // those of every other kernel. Blocks of a scene with fans stop at the first, as above.
            let pair_goes_on = !HAS_FANS && kind == NODE_TRIANGLE_1 && asked.next <= kind;
            if (ANY_HIT && best.hit && !pair_goes_on) { break; }
            if (asked.next > kind) {
                asked.next = 0u;
                top -= 1u;
                node = stack[top];
            }
        }
    }
    // A driver may end a loop on its own (llvmpipe does after 65,535 rounds): a ray that has neither
    // finished nor found what it looked for has failed too.
    if (result.failed == 0u && node != FINISHED && !(ANY_HIT && best.hit)) {
        result.failed = FAILED_STEPS;
    }
    count_leave_instance();
    note_end(node, result.failed, best.t, best.hit);

    tentative.place = best_triangle;
    if (best.hit) {
        let block = best_triangle >> 2u;
        let tail = bvh[(block << 2u) + 3u];
        let weights = original_weights(tail.w, best_triangle & 3u, best.w1, best.w2);
        let at = best_instance << 2u;
        let placed = bvh[at + 4u];
        if (HAS_FANS && is_outside(fan_row(block, placed.y), 1u)) {
            result.failed |= FAILED_POINTER;
        }
        let ids = block_ids(tail, block, best_triangle & 3u, placed.y);
        result.hit = Hit(best.t, weights.u, weights.v,
            (bvh[at].w & INSTANCE_INDEX_MASK) + (ids.geometry & GEOMETRY_INDEX_MASK),
            ids.primitive, placed.x);
    }
    return result;
}
