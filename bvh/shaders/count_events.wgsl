// Fills traverse.wgsl's $count slot in counted pipelines. The stage declares
// `counters: array<atomic<u32>>`: COUNTER_FIELDS totals, then OBJECT_FIELDS for the TLAS and for
// each instance (bvh/counters.py names them). A lane counts privately; a workgroup adds once.
#import bvh.layout
#import bvh.counters
#import "bvh/shaders/note_nothing.wgsl"

var<private> counted: array<u32, COUNTER_FIELDS>;
var<private> inside: array<u32, OBJECT_FIELDS>; // spent since the last change of level
var<private> inside_unit: u32; // of the instance node, 0 for the TLAS
var<workgroup> totals: array<atomic<u32>, COUNTER_FIELDS>;

fn count_box_node(children: vec4<u32>, hits: vec4<bool>) {
    counted[COUNT_NODES] += 1u;
    inside[OBJECT_NODES] += 1u;
    counted[COUNT_BOX_TESTS] += dot(select(vec4<u32>(1u), vec4<u32>(0u), children == vec4<u32>(INVALID_POINTER)), vec4<u32>(1u));
    counted[COUNT_BOX_HITS] += dot(select(vec4<u32>(0u), vec4<u32>(1u), hits), vec4<u32>(1u));
}

fn count_stack(entries: u32) {
    counted[COUNT_STACK_MAX] = max(counted[COUNT_STACK_MAX], entries);
}

fn count_triangle(hit: bool) {
    counted[COUNT_TRIANGLE_TESTS] += 1u;
    inside[OBJECT_TRIANGLE_TESTS] += 1u;
    counted[COUNT_TRIANGLE_HITS] += select(0u, 1u, hit);
}

fn count_any_hit() {
    counted[COUNT_ANY_HITS] += 1u;
    inside[OBJECT_ANY_HITS] += 1u;
}

fn count_enter_instance(unit: u32) {
    counted[COUNT_INSTANCE_HITS] += 1u;
    count_leave_instance();
    inside_unit = unit;
}

// Charges what was spent since the last call to the object (or the TLAS) that it was spent in.
fn count_leave_instance() {
    var slot = 0u;
    if (inside_unit != 0u) {
        slot = 1u + bvh[(inside_unit << 2u) + 4u].x;
    }
    for (var field = 0u; field < OBJECT_FIELDS; field += 1u) {
        if (inside[field] != 0u) {
            atomicAdd(&counters[COUNTER_FIELDS + slot * OBJECT_FIELDS + field], inside[field]);
            inside[field] = 0u;
        }
    }
    inside_unit = 0u;
}

// After the trace, in uniform control flow: one atomic a field a workgroup.
fn add_counters(lane: u32) {
    // Some drivers hand out workgroup memory that is not zero, against the specification.
    if (lane < COUNTER_FIELDS) { atomicStore(&totals[lane], 0u); }
    workgroupBarrier();
    for (var field = 0u; field < COUNTER_FIELDS; field += 1u) {
        if (field == COUNT_STACK_MAX) {
            atomicMax(&totals[field], counted[field]);
        } else {
            atomicAdd(&totals[field], counted[field]);
        }
    }
    workgroupBarrier();
    if (lane < COUNTER_FIELDS) {
        let total = atomicLoad(&totals[lane]);
        if (lane == COUNT_STACK_MAX) {
            atomicMax(&counters[lane], total);
        } else {
            atomicAdd(&counters[lane], total);
        }
    }
}

fn count_ray(hit: bool, failed: u32) {
    counted[COUNT_RAYS] = 1u;
    counted[COUNT_HITS] = select(0u, 1u, hit);
    counted[COUNT_NODES_HIT] = select(0u, counted[COUNT_NODES], hit);
    counted[COUNT_OVERFLOWS] = select(0u, 1u, failed != 0u);
}
