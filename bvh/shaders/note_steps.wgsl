// The step log's functions that write: imported in place of note_nothing.wgsl. The stage declares
// `ray_log: RayLog` and sets `note_active` in the lane whose ray is to be logged. What does not fit
// counts in `dropped`; nothing else of the run changes.
#import bvh.gpu.ray_log

struct RayLog {
    ray: u32, // index of the ray that is logged
    count: atomic<u32>, // events, dropped ones included
    dropped: atomic<u32>,
    pad: u32,
    events: array<LogEvent>,
}

var<private> note_active: bool;

// The index of a new event, its fields zero but for `kind`; the last event where none is free.
fn note_event(kind: u32) -> u32 {
    let index = atomicAdd(&ray_log.count, 1u);
    let capacity = arrayLength(&ray_log.events);
    if (index >= capacity) {
        atomicAdd(&ray_log.dropped, 1u);
        return 0xffffffffu;
    }
    ray_log.events[index].kind = kind;
    return index;
}

fn note_words(index: u32, at: u32, vectors: u32) {
    for (var i = 0u; i < vectors; i += 1u) {
        let word = bvh[at + i];
        for (var j = 0u; j < 4u; j += 1u) { ray_log.events[index].words[4u * i + j] = word[j]; }
    }
}

fn note_start(ray: Ray, instance_unit: u32) {
    if (!note_active) { return; }
    let index = note_event(LOG_START);
    if (index == 0xffffffffu) { return; }
    ray_log.events[index].at = instance_unit << 2u;
    let start = array<f32, 8>(ray.origin.x, ray.origin.y, ray.origin.z, ray.t_min,
                              ray.direction.x, ray.direction.y, ray.direction.z, ray.t_max);
    for (var j = 0u; j < 8u; j += 1u) { ray_log.events[index].words[j] = bitcast<u32>(start[j]); }
}

fn note_box(
    node: u32, at: u32, children: vec4<u32>, entry: vec4f, keys: vec4<u32>, t_limit: f32,
    next: u32, top: u32,
) {
    if (!note_active) { return; }
    let index = note_event(LOG_BOX);
    if (index == 0xffffffffu) { return; }
    ray_log.events[index].node = node;
    ray_log.events[index].at = at;
    ray_log.events[index].next = next;
    ray_log.events[index].top = top;
    ray_log.events[index].t_limit = t_limit;
    ray_log.events[index].flags =
        dot(select(vec4<u32>(1u, 2u, 4u, 8u), vec4<u32>(0u), keys == vec4<u32>(NO_KEY)), vec4<u32>(1u));
    for (var j = 0u; j < 4u; j += 1u) { ray_log.events[index].entry[j] = entry[j]; }
    note_words(index, at, select(8u, 4u, (node & 7u) == NODE_BOX_FP16));
}

fn note_triangle(
    node: u32, at: u32, triangle: u32, hit: TriangleHit, t_limit: f32, accepted: bool,
) {
    if (!note_active) { return; }
    let index = note_event(LOG_TRIANGLE);
    if (index == 0xffffffffu) { return; }
    ray_log.events[index].node = node;
    ray_log.events[index].at = at;
    ray_log.events[index].next = triangle;
    ray_log.events[index].t = hit.t;
    ray_log.events[index].t_limit = t_limit;
    ray_log.events[index].flags = select(0u, 1u, hit.hit) | select(0u, 2u, accepted);
    note_words(index, at, 4u);
}

fn note_instance(node: u32, entered: bool) {
    if (!note_active) { return; }
    let index = note_event(LOG_INSTANCE);
    if (index == 0xffffffffu) { return; }
    ray_log.events[index].node = node;
    ray_log.events[index].at = (node >> 3u) << 2u;
    ray_log.events[index].flags = select(0u, 1u, entered);
    note_words(index, (node >> 3u) << 2u, 8u);
}

fn note_leave() {
    if (note_active) { note_event(LOG_LEAVE); }
}

fn note_end(node: u32, failed: u32, t: f32, hit: bool) {
    if (!note_active) { return; }
    let index = note_event(LOG_END);
    if (index == 0xffffffffu) { return; }
    ray_log.events[index].node = node;
    ray_log.events[index].next = failed;
    ray_log.events[index].t = t;
    ray_log.events[index].flags = select(0u, 1u, hit);
}
