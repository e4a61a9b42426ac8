// Dear ImGui's triangles: a colour times a texture, glyphs and pictures alike. A vertex finds its
// command by the place of its index, and with it the clip rectangle: a draw holds many commands.
#import engine.view.interface_backend

struct Interface {
    header: InterfaceHeader,
    words: array<u32>, // commands, vertices, indices
}

@group(0) @binding(0) var<storage, read> frame: Interface;
@group(0) @binding(1) var linear_sampler: sampler;
@group(1) @binding(0) var picture: texture_2d<f32>;

// True for a target that encodes what is written: the interface's colours are encoded already.
override target_encodes: bool = false;

const COMMAND_WORDS: u32 = 6u; // of a command: clip rectangle, then these two
const FIRST_INDEX: u32 = 4u;
const BASE_VERTEX: u32 = 5u;
const VERTEX_WORDS: u32 = 5u; // of an ImDrawVert: position, uv, colour

struct Varying {
    @builtin(position) place: vec4f,
    @location(0) uv: vec2f,
    @location(1) colour: vec4f,
    @location(2) @interpolate(flat) clip: vec4u, // left, top, right, bottom in pixels
}

fn number(at: u32) -> f32 {
    return bitcast<f32>(frame.words[at]);
}

// Where the command begins that the index at `place` belongs to: the last that starts no later.
fn find_command(place: u32) -> u32 {
    var low = 0u;
    var high = frame.header.commands;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (frame.words[middle * COMMAND_WORDS + FIRST_INDEX] <= place) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low * COMMAND_WORDS;
}

@vertex
fn corner(@builtin(vertex_index) place: u32) -> Varying {
    let command = find_command(place);
    let vertex = frame.words[command + BASE_VERTEX] + frame.words[frame.header.indices + place];
    let at = frame.header.vertices + vertex * VERTEX_WORDS;
    let position = vec2f(number(at), number(at + 1u));
    return Varying(
        vec4f(position * frame.header.scale + frame.header.shift, 0.0, 1.0),
        vec2f(number(at + 2u), number(at + 3u)),
        unpack4x8unorm(frame.words[at + 4u]),
        vec4u(frame.words[command], frame.words[command + 1u], frame.words[command + 2u],
            frame.words[command + 3u]),
    );
}

fn decode(c: vec3f) -> vec3f {
    return select(pow((c + 0.055) / 1.055, vec3f(2.4)), c / 12.92, c <= vec3f(0.04045));
}

@fragment
fn shade(in: Varying) -> @location(0) vec4f {
    let pixel = vec2u(in.place.xy);
    if (any(pixel < in.clip.xy) || any(pixel >= in.clip.zw)) {
        discard;
    }
    // No texture here has more than level 0.
    let shown = in.colour * textureSampleLevel(picture, linear_sampler, in.uv, 0.0);
    if (target_encodes) {
        return vec4f(decode(shown.rgb), shown.a);
    }
    return shown;
}
