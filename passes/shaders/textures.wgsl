// Textures as texels in one storage buffer: any number, any size, one binding, the same filter on
// every adapter. A sample is bilinear within one mip level. Needs `texels`.
#import engine.scene.records
#import "engine/gpu/shaders/remainder.wgsl"

fn wrap_coordinate(value: i32, size: u32, mode: u32) -> u32 {
    if (mode == 1u) { return u32(clamp(value, 0, i32(size) - 1)); }
    if (mode == 2u) {
        let place = positive_remainder(value, 2u * size);
        return select(place, 2u * size - 1u - place, place >= size);
    }
    return positive_remainder(value, size);
}

fn srgb_to_linear(c: vec3f) -> vec3f {
    return select(pow((c + 0.055) / 1.055, vec3f(2.4)), c / 12.92, c <= vec3f(0.04045));
}

fn load_texel(record: Texture, first: u32, size: vec2u, x: i32, y: i32) -> vec4f {
    let column = wrap_coordinate(x, size.x, (record.flags >> 1u) & 3u);
    let row = wrap_coordinate(y, size.y, (record.flags >> 3u) & 3u);
    let value = unpack4x8unorm(texels[first + row * size.x + column]);
    if ((record.flags & TEXTURE_SRGB) != 0u) {
        return vec4f(srgb_to_linear(value.xyz), value.w);
    }
    return value;
}

// Linear colour at `uv` (0,0 is the corner of the first texel), from mip level round(lod).
fn sample_texture(record: Texture, uv: vec2f, lod: f32) -> vec4f {
    let level = u32(clamp(lod + 0.5, 0.0, f32(record.mip_count - 1u)));
    var first = record.first_texel;
    var size = vec2u(record.width, record.height);
    for (var i = 0u; i < level; i += 1u) {
        first += size.x * size.y;
        size = max(size >> vec2u(1u), vec2u(1u));
    }
    // Reduced to one period of "mirror" first, so that large coordinates keep their fraction.
    let at = (uv - 2.0 * floor(uv * 0.5)) * vec2f(size) - 0.5;
    let clamped = uv * vec2f(size) - 0.5;
    let mode_u = (record.flags >> 1u) & 3u;
    let mode_v = (record.flags >> 3u) & 3u;
    let p = vec2f(select(at.x, clamped.x, mode_u == 1u), select(at.y, clamped.y, mode_v == 1u));
    let corner = floor(p);
    let weight = p - corner;
    let x = i32(corner.x);
    let y = i32(corner.y);
    let top = mix(load_texel(record, first, size, x, y), load_texel(record, first, size, x + 1, y), weight.x);
    let bottom = mix(load_texel(record, first, size, x, y + 1), load_texel(record, first, size, x + 1, y + 1), weight.x);
    return mix(top, bottom, weight.y);
}
