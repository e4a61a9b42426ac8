// Boxes of triangles. Who imports this declares `triangle_boxes`, as triangle_setup.wgsl leaves them.

fn box_of(triangle: u32) -> Box {
    let at = 3u * triangle;
    return make_box(triangle_boxes[at], triangle_boxes[at + 1u], triangle_boxes[at + 2u]);
}
