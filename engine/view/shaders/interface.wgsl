// Dear ImGui's triangles: a colour times a texture, glyphs and pictures alike.

struct Screen {
    scale: vec2f, // logical pixels to clip space
    shift: vec2f,
}

@group(0) @binding(0) var<uniform> screen: Screen;
@group(0) @binding(1) var linear_sampler: sampler;
@group(1) @binding(0) var picture: texture_2d<f32>;

// True for a target that encodes what is written: the interface's colours are encoded already.
override target_encodes: bool = false;

struct Varying {
    @builtin(position) clip: vec4f,
    @location(0) uv: vec2f,
    @location(1) colour: vec4f,
}

@vertex
fn corner(
    @location(0) position: vec2f,
    @location(1) uv: vec2f,
    @location(2) colour: vec4f,
) -> Varying {
    return Varying(vec4f(position * screen.scale + screen.shift, 0.0, 1.0), uv, colour);
}

fn decode(c: vec3f) -> vec3f {
    return select(pow((c + 0.055) / 1.055, vec3f(2.4)), c / 12.92, c <= vec3f(0.04045));
}

@fragment
fn shade(in: Varying) -> @location(0) vec4f {
    // No texture here has more than level 0.
    let shown = in.colour * textureSampleLevel(picture, linear_sampler, in.uv, 0.0);
    if (target_encodes) {
        return vec4f(decode(shown.rgb), shown.a);
    }
    return shown;
}
