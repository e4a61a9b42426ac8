// Fills traverse.wgsl's $count slot in counted pipelines. The stage declares
// `counters: array<atomic<u32>>` (bvh/counters.py has its layout). A lane counts privately: the
// totals are added once a workgroup, an object's row whenever the ray leaves it.
#import bvh.layout
#import bvh.counters
#import $lanes

var<private> counted: array<u32, COUNTER_FIELDS>;
var<private> inside: array<u32, OBJECT_FIELDS>; // spent since the last change of level
var<private> inside_unit: u32; // of the instance node, 0 for the TLAS
var<workgroup> totals: array<atomic<u32>, COUNTER_FIELDS>;

fn count_box_node(children: vec4<u32>, hits: vec4<bool>) {
    let tests = dot(select(vec4<u32>(1u), vec4<u32>(0u), children == vec4<u32>(INVALID_POINTER)), vec4<u32>(1u));
    let entered = dot(select(vec4<u32>(0u), vec4<u32>(1u), hits), vec4<u32>(1u));
    counted[COUNT_NODES] += 1u;
    inside[OBJECT_NODES] += 1u;
    counted[COUNT_BOX_TESTS] += tests;
    inside[OBJECT_BOX_TESTS] += tests;
    counted[COUNT_BOX_HITS] += entered;
    inside[OBJECT_BOX_HITS] += entered;
}

// Of the step log's functions, which every kernel calls, two tell what is counted here.
fn note_box(
    node: u32, at: u32, children: vec4<u32>, entry: vec4f, keys: vec4<u32>, t_limit: f32,
    next: u32, top: u32,
) {
    counted[COUNT_NODES_FP16] += select(0u, 1u, (node & 7u) == NODE_BOX_FP16);
    count_lanes(at);
}

fn note_triangle(
    node: u32, at: u32, triangle: u32, hit: TriangleHit, t_limit: f32, accepted: bool,
) {
    counted[COUNT_LEAF_BLOCKS] += select(0u, 1u, triangle == 0u); // a visit begins with the first
}

fn note_start(ray: Ray, instance_unit: u32) {}
fn note_instance(node: u32, entered: bool) {}
fn note_leave() {}
fn note_end(node: u32, failed: u32, t: f32, hit: bool) {}

fn count_stack(entries: u32) {
    counted[COUNT_STACK_MAX] = max(counted[COUNT_STACK_MAX], entries);
}

fn count_triangle(hit: bool) {
    counted[COUNT_TRIANGLE_TESTS] += 1u;
    inside[OBJECT_TRIANGLE_TESTS] += 1u;
    counted[COUNT_TRIANGLE_HITS] += select(0u, 1u, hit);
    inside[OBJECT_TRIANGLE_HITS] += select(0u, 1u, hit);
}

fn count_any_hit() {
    counted[COUNT_ANY_HITS] += 1u;
    inside[OBJECT_ANY_HITS] += 1u;
    // Rays that reject everything do not get as far as a verdict.
    if ((RAY_FLAGS & RAY_REJECT) != 0u) { count_verdict(0u, false); }
}

// Of an alpha test that sampled so many textures.
fn count_verdict(samples: u32, accepted: bool) {
    counted[COUNT_ALPHA_SAMPLES] += samples;
    inside[OBJECT_ALPHA_SAMPLES] += samples;
    counted[COUNT_REJECTED] += select(1u, 0u, accepted);
    inside[OBJECT_REJECTED] += select(1u, 0u, accepted);
}

fn count_enter_instance(unit: u32) {
    count_leave_instance();
    counted[COUNT_INSTANCE_HITS] += 1u;
    inside[OBJECT_INSTANCE_HITS] += 1u;
    inside_unit = unit;
}

// Charges what was spent since the last call to the object (or the TLAS) that it was spent in.
fn count_leave_instance() {
    var row = 0u;
    if (inside_unit != 0u) { row = object_row(bvh[(inside_unit << 2u) + 4u].x); }
    for (var field = 0u; field < OBJECT_FIELDS; field += 1u) {
        charge(row, field, inside[field]);
        inside[field] = 0u;
    }
    inside_unit = 0u;
}

fn is_maximum(field: u32) -> bool {
    return field == COUNT_STACK_MAX || field == COUNT_SUBGROUP_LANES;
}

// After the trace, in uniform control flow: one atomic a field a workgroup.
fn add_counters(lane: u32) {
    // Some drivers hand out workgroup memory that is not zero, against the specification.
    if (lane < COUNTER_FIELDS) { atomicStore(&totals[lane], 0u); }
    workgroupBarrier();
    counted[COUNT_SUBGROUP_LANES] = subgroup_lanes();
    for (var field = 0u; field < COUNTER_FIELDS; field += 1u) {
        if (is_maximum(field)) {
            atomicMax(&totals[field], counted[field]);
        } else {
            atomicAdd(&totals[field], counted[field]);
        }
    }
    workgroupBarrier();
    if (lane < COUNTER_FIELDS) {
        let total = atomicLoad(&totals[lane]);
        if (is_maximum(lane)) {
            atomicMax(&counters[lane], total);
        } else {
            atomicAdd(&counters[lane], total);
        }
    }
}

// The ray's hit, if it has one now, belongs to the object of `instance`.
fn count_hit(hit: bool, instance: u32) {
    counted[COUNT_HITS] = select(0u, 1u, hit);
    if (hit) { charge(object_row(instance), OBJECT_HITS, 1u); }
}

fn count_ray(hit: bool, instance: u32, failed: u32) {
    counted[COUNT_RAYS] = 1u;
    count_hit(hit, instance);
    counted[COUNT_NODES_HIT] = select(0u, counted[COUNT_NODES], hit);
    counted[COUNT_OVERFLOWS] = select(0u, 1u, failed != 0u);
}
