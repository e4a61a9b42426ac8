// Fills traverse.wgsl's $count slot in timed pipelines: no counters, no cost.
#import "bvh/shaders/note_nothing.wgsl"
fn count_box_node(children: vec4<u32>, hits: vec4<bool>) {}
fn count_stack(entries: u32) {}
fn count_triangle(hit: bool) {}
fn count_any_hit() {}
fn count_enter_instance(unit: u32) {}
fn count_leave_instance() {}
