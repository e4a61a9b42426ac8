// Fills traverse.wgsl's $count slot in logged pipelines: steps are written down, nothing is counted.
#import "bvh/shaders/note_steps.wgsl"
fn count_box_node(children: vec4<u32>, hits: vec4<bool>) {}
fn count_stack(entries: u32) {}
fn count_triangle(hit: bool) {}
fn count_any_hit() {}
fn count_enter_instance(unit: u32) {}
fn count_leave_instance() {}
