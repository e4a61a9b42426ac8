// Axis-aligned boxes as the build's buffers hold them: three vec2f (min.xy, min.z max.x, max.yz).

struct Box {
    low: vec3f,
    high: vec3f,
}

fn make_box(a: vec2f, b: vec2f, c: vec2f) -> Box {
    return Box(vec3f(a, b.x), vec3f(b.y, c));
}

fn unite(a: Box, b: Box) -> Box {
    return Box(min(a.low, b.low), max(a.high, b.high));
}

fn empty_box() -> Box {
    return Box(vec3f(LARGEST), vec3f(-LARGEST));
}

fn flat_index(group: vec3u, groups: vec3u, lane: u32) -> u32 {
    return (group.y * groups.x + group.x) * 256u + lane;
}

// First box of a level of the pyramid over `count` boxes, and that level's length.
fn pyramid_level(count: u32, level: u32) -> vec2u {
    var start = 0u;
    var size = count;
    for (var k = 0u; k < level; k += 1u) {
        start += size;
        size = (size + 1u) / 2u;
    }
    return vec2u(start, size);
}
