// The step log's functions where no ray is logged: empty, no cost. note_steps.wgsl has the others.
fn note_start(ray: Ray, instance_unit: u32) {}
fn note_box(
    node: u32, at: u32, children: vec4<u32>, entry: vec4f, keys: vec4<u32>, t_limit: f32,
    next: u32, top: u32,
) {}
fn note_triangle(
    node: u32, at: u32, triangle: u32, hit: TriangleHit, t_limit: f32, accepted: bool,
) {}
fn note_instance(node: u32, entered: bool) {}
fn note_leave() {}
fn note_end(node: u32, failed: u32, t: f32, hit: bool) {}
