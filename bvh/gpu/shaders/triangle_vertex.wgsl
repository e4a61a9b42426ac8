// Vertices of triangles. Who imports this declares `triangles`, nine words each.

// The vertex at a corner, counted on from 2 to 0, as bits.
fn vertex(triangle: u32, corner: u32) -> vec3u {
    let at = 9u * triangle + 3u * (corner % 3u);
    return vec3u(triangles[at], triangles[at + 1u], triangles[at + 2u]);
}
