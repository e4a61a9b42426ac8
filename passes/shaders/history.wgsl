// Blends a light with what is remembered of it from the frames before: see passes/light_history.py.
// A pixel's past is looked for where its surface was on the picture before, or where what it reflects
// was seen there, in the four pixels around that place, each of which counts if it showed the same
// object, facing the same way, in the same plane.
#import passes.frame_uniforms
#import passes.filter_records
#import "passes/shaders/environment.wgsl"
#import "passes/shaders/filter_light.wgsl"
#import "passes/shaders/borrowed.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<uniform> filter_view: FilterView;
@group(0) @binding(2) var visibility: texture_2d<u32>;
@group(0) @binding(3) var surface: texture_2d<u32>;
@group(0) @binding(4) var depth: texture_2d<f32>;
@group(0) @binding(5) var<storage, read> light: array<vec2u>;
@group(0) @binding(6) var<storage, read> occlusion_results: array<u32>;
@group(0) @binding(7) var<storage, read> motion: array<vec2f>;
@group(0) @binding(8) var<storage, read> depth_before: array<f32>;
@group(0) @binding(9) var<storage, read_write> guide: array<vec4u>;
@group(0) @binding(10) var<storage, read_write> history: array<vec4u>;
@group(0) @binding(11) var<storage, read_write> filtered: array<vec2u>;
@group(0) @binding(12) var lobe_table: texture_2d<u32>;

override OCCLUDED: bool = false; // ambient light comes with the area light's
override DENOISED: bool = false; // a denoiser goes on with `filtered`, else the composite does

const SAME_NORMAL: f32 = 0.98; // cosine, of a surface found again
const LIKE_NORMAL: f32 = 0.9; // of neighbours, whose light is about the same
const SAME_PLANE: f32 = 0.01; // distance from it, of the depth; a pixel's size more
const CLAMP_DEVIATIONS: f32 = 1.5; // of the newest samples around
const DOUBT_DEVIATIONS: f32 = 3.0; // from which on reflections are forgotten
const BLUR_NOISE: f32 = 0.08; // of a sample's variance: what noise alone makes of it
const DIRECT_FRAMES: f32 = 4.0; // of the area light, that the newest sample is weighed against
const GLOSSY: f32 = 0.6; // roughness, up to which highlights move with the camera
const SHARP_FRAMES: f32 = 3.0; // besides the newest, of a lobe narrower than a pixel
const SHARP_STALE: f32 = 0.5; // of these
const LEAST_FOCUS: f32 = 0.1; // of a hollow mirror
const LEAST_SAMPLES: f32 = 4.0; // from which on their deviation is taken at its word

const REACH: u32 = 2u; // of a pixel's neighbourhood
const TILE: u32 = 8u + 2u * REACH;
const TILE_PIXELS: u32 = TILE * TILE;

var<workgroup> tile_light: array<vec3f, TILE_PIXELS>;
var<workgroup> tile_normal: array<vec3f, TILE_PIXELS>;
var<workgroup> tile_point: array<vec3f, TILE_PIXELS>; // from the camera
var<workgroup> tile_object: array<u32, TILE_PIXELS>; // NOTHING: without a light

// The light of a pixel in this frame, as filters see it.
fn sample_of(pixel: vec2u, s: GBufferSurface, view: vec3f) -> vec3f {
    let index = pixel.y * frame.width + pixel.x;
    var radiance = unpack_radiance(light[index]);
    if (OCCLUDED && !REFLECTION && occlusion_results[index] != 0u) {
        let diffuse = diffuse_albedo(s.base_color, s.metalness, surface_albedo(s, view));
        radiance += diffuse * ambient_radiance(s.shading_normal);
    }
    return radiance / light_factor(s, view);
}

fn load_tile(corner: vec2i, lane: u32) {
    for (var k = lane; k < TILE_PIXELS; k += 64u) {
        let place = corner + vec2i(i32(k % TILE), i32(k / TILE));
        tile_object[k] = NOTHING;
        if (any(place < vec2i(0)) || place.x >= i32(frame.width) || place.y >= i32(frame.height)) { continue; }
        let pixel = vec2u(place);
        let object = textureLoad(visibility, pixel, 0).x;
        let s = unpack_surface(textureLoad(surface, pixel, 0));
        if (!has_light(object, s.roughness)) { continue; }
        tile_object[k] = object;
        tile_normal[k] = s.shading_normal;
        let direction = camera_direction(pixel);
        tile_point[k] = direction * textureLoad(depth, pixel, 0).x;
        tile_light[k] = sample_of(pixel, s, normalize(-direction));
    }
}

// The samples of a pixel and of those around it on the same surface.
struct Neighbourhood {
    mean: vec3f,
    deviation: vec3f,
    light_deviation: f32, // of the luminance
    bend: f32, // radians to the normal that is turned most
    curvature: f32, // 1/metres, the mean one: positive where the surface bulges to the camera
}

fn neighbourhood(lane: u32) -> Neighbourhood {
    let first = (lane >> 3u) * TILE + (lane & 7u);
    let centre = first + REACH * TILE + REACH;
    var count = 0.0;
    // From the centre's, so that equal samples have no deviation.
    var sum = vec3f(0.0);
    var squares = vec3f(0.0);
    var light_sum = 0.0;
    var light_squares = 0.0;
    var turned = 0.0;
    var turned_along = 0.0;
    var squared_way = 0.0;
    for (var y = 0u; y <= 2u * REACH; y += 1u) {
        for (var x = 0u; x <= 2u * REACH; x += 1u) {
            let k = first + y * TILE + x;
            if (tile_object[k] != tile_object[centre]) { continue; }
            if (dot(tile_normal[k], tile_normal[centre]) < LIKE_NORMAL) { continue; }
            let turn = tile_normal[k] - tile_normal[centre];
            turned = max(turned, dot(turn, turn));
            let way = tile_point[k] - tile_point[centre];
            turned_along += dot(turn, way);
            squared_way += dot(way, way);
            let apart = tile_light[k] - tile_light[centre];
            let light_apart = luminance(apart);
            count += 1.0;
            sum += apart;
            squares += apart * apart;
            light_sum += light_apart;
            light_squares += light_apart * light_apart;
        }
    }
    let mean = sum / count;
    let light_mean = light_sum / count;
    return Neighbourhood(tile_light[centre] + mean,
        sqrt(max(squares / count - mean * mean, vec3f(0.0))),
        sqrt(max(light_squares / count - light_mean * light_mean, 0.0)), sqrt(turned),
        turned_along / max(squared_way, 1.0e-20));
}

// What is remembered of a light: its mean, over how many frames, and a sample's standard deviation;
// and the part of it, 0 to 1, that the newest sample makes up for.
struct Past {
    light: vec3f,
    length: f32,
    deviation: f32,
    stale: f32,
}

const NO_PAST: Past = Past(vec3f(0.0), 0.0, 0.0, 0.0);

fn past_at(index: u32) -> Past {
    let words = history[filter_view.before + index];
    let more = unpack2x16float(words.w);
    return Past(bitcast<vec3f>(words.xyz), more.x, more.y, 0.0);
}

// Through a place on the picture before, in pixels: one unit along that view's axis.
fn direction_before(place: vec2f) -> vec3f {
    let x = place.x / f32(frame.width) * 2.0 - 1.0;
    let y = 1.0 - place.y / f32(frame.height) * 2.0;
    return filter_view.forward.xyz + x * filter_view.right.xyz + y * filter_view.up.xyz;
}

// Where the picture before showed a point that stood still; z is not positive behind its camera.
fn place_before(point: vec3f) -> vec3f {
    let v = point - filter_view.origin.xyz;
    let z = dot(v, filter_view.forward.xyz);
    let x = dot(v, filter_view.right.xyz) / dot(filter_view.right.xyz, filter_view.right.xyz) / z;
    let y = dot(v, filter_view.up.xyz) / dot(filter_view.up.xyz, filter_view.up.xyz) / z;
    return vec3f((0.5 + 0.5 * x) * f32(frame.width), (0.5 - 0.5 * y) * f32(frame.height), z);
}

// How far what a surface reflects moved apart from the surface itself, in pixels. It is seen as far
// behind the surface as it lies before it, of a rough one the nearer the rougher (Lagarde, de Rousiers,
// "Moving Frostbite to PBR", 2014, the dominant direction of the lobe). A mirror that bulges shows it
// nearer, by the thin lens equation, as ReBLUR has it (Zhdan, "ReBLUR: A Hierarchical Recurrent
// Denoiser", Ray Tracing Gems II, 2021); a hollow one farther, here at most ten times as far.
fn reflected_motion(direction: vec3f, z: f32, distance: f32, roughness: f32, curvature: f32) -> vec2f {
    let smoothness = 1.0 - roughness;
    let focused = distance / max(1.0 + 2.0 * curvature * distance, LEAST_FOCUS);
    let behind = focused * smoothness * (sqrt(smoothness) + roughness);
    let point = frame.camera_origin.xyz + direction * z;
    let image = place_before(point + normalize(direction) * behind);
    let itself = place_before(point);
    return select(vec2f(0.0), image.xy - itself.xy, image.z > 0.0 && itself.z > 0.0);
}

// How much of what is found again between pixels the newest sample makes up for. Each frame blurs it
// by `blur`, which is noise where `variance` of a sample explains it; a mean of n frames has an error
// of variance / n + (n blur)^2, which is least at:
fn blurred(past: Past, blur: f32) -> f32 {
    let variance = past.deviation * past.deviation;
    let edge = max(blur * blur - BLUR_NOISE * variance, 1.0e-12);
    let most = select(DIRECT_FRAMES, past.length, REFLECTION);
    let frames = clamp(pow(max(0.5 * variance / edge, 1.0e-12), 1.0 / 3.0), 1.0, max(most, 1.0));
    let even = 1.0 / (past.length + 1.0);
    return max((1.0 / (frames + 1.0) - even) / (1.0 - even), 0.0);
}

fn moved_past(pixel: vec2u, object: u32, s: GBufferSurface, curvature: f32) -> Past {
    var past = NO_PAST;
    let index = pixel.y * frame.width + pixel.x;
    let z_before = depth_before[index];
    if (z_before <= 0.0) { return past; }
    let was = vec2f(pixel) + 0.5 - motion[index];
    let point = direction_before(was) * z_before; // from the camera before
    var place = was;
    if (REFLECTION) {
        let direction = camera_direction(pixel);
        let z = textureLoad(depth, pixel, 0).x;
        place += reflected_motion(direction, z, unpack_w(light[index]), s.roughness, curvature);
    }
    let first = floor(place - 0.5);
    let part = place - 0.5 - first;
    let off_plane = z_before * (SAME_PLANE + frame.pixel_spread);
    var total = 0.0;
    var weights = vec4f(0.0);
    var lights = vec4f(0.0);
    for (var k = 0u; k < 4u; k += 1u) {
        let step = vec2f(f32(k & 1u), f32(k >> 1u));
        let tap = first + step;
        if (any(tap < vec2f(0.0)) || tap.x >= f32(frame.width) || tap.y >= f32(frame.height)) { continue; }
        let at = u32(tap.y) * frame.width + u32(tap.x);
        let seen = guide[filter_view.before + at];
        let there = direction_before(tap + 0.5) * bitcast<f32>(seen.x);
        let old = past_at(at);
        let same = old.length > 0.0 && seen.z == object
            && dot(decode_normal(seen.y), s.shading_normal) >= SAME_NORMAL
            && abs(dot(there - point, s.geometric_normal)) <= off_plane;
        if (!same) { continue; }
        let sides = mix(vec2f(1.0) - part, part, step);
        let weight = sides.x * sides.y;
        total += weight;
        weights[k] = weight;
        lights[k] = luminance(old.light);
        past.light += weight * old.light;
        past.length += weight * old.length;
        past.deviation += weight * old.deviation;
    }
    if (total < 1.0e-3) { return NO_PAST; }
    // Without some of the four the place is up to a pixel off, and may lie beyond a shadow's edge.
    // Reflections scatter more: there the loss would be greater.
    let stale = select(max(1.0 - total * total, 0.0), 0.0, REFLECTION);
    past = Past(past.light / total, past.length / total, past.deviation / total, stale);
    if (filter_view.clamped != 0u) {
        let apart = abs(lights - luminance(past.light));
        past.stale = max(stale, blurred(past, 0.5 * dot(weights, apart) / total));
    }
    return past;
}

// What is found again between pixels is blurred a little, and frame by frame more: an image whose
// lobe is narrower than a pixel keeps to the newest frames. In a mirror that bends (its normals turn by
// more than the view does) too much fits between two pixels for any to be found again: none is
// remembered. A light's image stays behind with the surface: the newest sample counts the more the
// sharper it is.
fn kept_sharp(pixel: vec2u, roughness: f32, around: Neighbourhood, past: Past) -> Past {
    var kept = past;
    if (!REFLECTION) {
        kept.stale = max(past.stale, 1.0 - roughness / GLOSSY);
        return kept;
    }
    let distance = unpack_w(light[pixel.y * frame.width + pixel.x]);
    let away = length(camera_direction(pixel)) * textureLoad(depth, pixel, 0).x;
    // From pixel to pixel mirrored rays turn by twice as much as the normal, too: where they see the
    // lights themselves, a lobe is measured by that.
    let curved = 2.0 * abs(around.curvature) * away * distance / (distance + away);
    let bent = select(0.0, curved, roughness < NARROW_ROUGHNESS);
    if (2.0 * lobe_radius(roughness, distance, away) < 1.0 + bent) {
        kept.length = min(past.length, select(SHARP_FRAMES, 0.0, around.bend > frame.pixel_spread));
        kept.stale = max(past.stale, SHARP_STALE);
    }
    return kept;
}

// Whether a surface shows the lights' images rather than scatters their light.
fn shines(s: GBufferSurface, view: vec3f) -> bool {
    let specular = surface_albedo(s, view);
    let diffuse = diffuse_albedo(s.base_color, s.metalness, specular);
    return s.roughness <= GLOSSY && luminance(specular) > luminance(diffuse);
}

// Where few of many samples are bright most neighbourhoods have none of them, and what is remembered
// of those is brighter for good reason: clamped, reflections would be too dark. They are remembered
// the less instead, the farther they are off.
fn fit_to(around: Neighbourhood, past: Past) -> Past {
    let reach = select(CLAMP_DEVIATIONS, DOUBT_DEVIATIONS, REFLECTION) * around.deviation;
    let fitting = clamp(past.light, around.mean - reach, around.mean + reach);
    let changed = abs(luminance(past.light - fitting));
    let trust = 1.0 - changed / max(changed + CLAMP_DEVIATIONS * around.light_deviation, 1.0e-6);
    let light = select(fitting, past.light, REFLECTION);
    return Past(light, past.length * trust, past.deviation, past.stale);
}

fn worth_of_sample(pixel: vec2u, roughness: f32, remembered: f32) -> f32 {
    if (!REFLECTION) { return 1.0; }
    let distance = unpack2x16float(light[pixel.y * frame.width + pixel.x].y).y;
    let away = length(camera_direction(pixel)) * textureLoad(depth, pixel, 0).x;
    let frames = select(0.0, remembered, filter_view.past == PAST_SAME);
    return sample_worth(roughness, distance, away, frames);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    load_tile(vec2i(tile_pixel(group, 0u)) - i32(REACH), lane);
    workgroupBarrier();
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let index = pixel.y * frame.width + pixel.x;
    let object = textureLoad(visibility, pixel, 0).x;
    let words = textureLoad(surface, pixel, 0);
    let s = unpack_surface(words);
    if (!REFLECTION) {
        let z = bitcast<u32>(textureLoad(depth, pixel, 0).x);
        guide[filter_view.after + index] = vec4u(z, words.x, object, bitcast<u32>(s.roughness));
    }
    if (!has_light(object, s.roughness)) {
        history[filter_view.after + index] = vec4u(0u);
        filtered[index] = light[index];
        return;
    }
    let around = neighbourhood(lane);
    let view = normalize(-camera_direction(pixel));
    var past = NO_PAST;
    if (filter_view.past == PAST_SAME) {
        past = past_at(index);
    } else if (filter_view.past == PAST_MOVED) {
        past = moved_past(pixel, object, s, around.curvature);
        let is_glossy = REFLECTION || shines(s, view);
        if ((filter_view.clamped & select(CLAMPED_DIFFUSE, CLAMPED_GLOSSY, is_glossy)) != 0u) {
            past = fit_to(around, past);
            if (is_glossy) { past = kept_sharp(pixel, s.roughness, around, past); }
        }
    }
    let now = tile_light[((lane >> 3u) + REACH) * TILE + (lane & 7u) + REACH];
    let worth = worth_of_sample(pixel, s.roughness, past.length);
    let length = min(past.length + worth, filter_view.limit);
    let even = worth / length;
    let share = even + (1.0 - even) * past.stale * worth;
    let apart = now - past.light;
    let mean = past.light + share * apart;
    // The variance of a sample, as the mean moves on (West, CACM 1979, with weights that fade).
    let shift = luminance(apart);
    let first = past.length < 0.5;
    let squares = past.deviation * past.deviation + share * shift * shift;
    let deviation = select(sqrt((1.0 - share) * squares), 0.0, first);
    history[filter_view.after + index] = vec4u(bitcast<vec3u>(mean), pack2x16float(vec2f(length, min(deviation, 6.0e4))));
    if (DENOISED) {
        let of_sample = select(deviation, around.light_deviation, length < LEAST_SAMPLES);
        let frames = 1.0 / max(length, 1.0);
        let of_mean = of_sample * sqrt(frames + (1.0 - frames) * past.stale);
        filtered[index] = pack_radiance(mean, min(of_mean, 6.0e4));
    } else {
        let factor = light_factor(s, view);
        filtered[index] = pack_radiance(mean * factor, unpack_w(light[index]));
    }
}
