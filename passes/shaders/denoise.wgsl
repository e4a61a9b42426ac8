// One round of an a-trous wavelet filter: each pixel becomes the mean of the 5x5 pixels STEP apart, by a
// B3 spline, as far as they show the same surface and differ by no more than their noise (Dammertz
// et al., "Edge-Avoiding A-Trous Wavelet Transform", HPG 2010; edge stops after Schied et al.,
// "Spatiotemporal Variance-Guided Filtering", HPG 2017). Weights are normalised and nothing is cut
// off: a firefly spreads over its neighbours, which its own deviation makes tolerant.
#import passes.frame_uniforms
#import passes.filter_records
#import "passes/shaders/filter_light.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<uniform> filter_view: FilterView;
@group(0) @binding(2) var surface: texture_2d<u32>;
@group(0) @binding(3) var<storage, read> guide: array<vec4u>;
@group(0) @binding(4) var<storage, read> light: array<vec2u>;
@group(0) @binding(5) var<storage, read> unfiltered: array<vec2u>; // w: standard deviation of the luminance
@group(0) @binding(6) var<storage, read_write> filtered: array<vec2u>;
@group(0) @binding(7) var lobe_table: texture_2d<u32>;

override STEP: i32 = 1;
override LAST: bool = false; // the composite goes on with `filtered`

const NORMAL_POWER: f32 = 128.0;
const PLANE_PIXELS: f32 = 1.0; // off the plane, in sizes of a pixel there
// Of the luminance: edges of shadows would blur where reflections, whose samples scatter more, gain.
const DIRECT_DEVIATIONS: f32 = 2.0;
const REFLECTION_DEVIATIONS: f32 = 4.0;
const ROUGHNESS_APART: f32 = 0.1;

// Where a pixel's surface lies, from the camera.
fn from_camera(pixel: vec2u, guided: vec4u) -> vec3f {
    return camera_direction(pixel) * bitcast<f32>(guided.x);
}

// The standard deviation of a pixel's luminance, smoothed over 3x3 pixels: one pixel's own is noise.
fn smooth_deviation(pixel: vec2i, object: u32) -> f32 {
    var sum = 0.0;
    var total = 0.0;
    for (var y = -1; y <= 1; y += 1) {
        for (var x = -1; x <= 1; x += 1) {
            let q = pixel + vec2i(x, y);
            if (any(q < vec2i(0)) || q.x >= i32(frame.width) || q.y >= i32(frame.height)) { continue; }
            let at = u32(q.y) * frame.width + u32(q.x);
            let guided = guide[filter_view.after + at];
            if (guided.z != object || !has_light(object, bitcast<f32>(guided.w))) { continue; }
            let weight = 1.0 / f32((1 + abs(x)) * (1 + abs(y)));
            let deviation = unpack_w(unfiltered[at]);
            sum += weight * deviation * deviation;
            total += weight;
        }
    }
    return sqrt(sum / total);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = tile_pixel(group, lane);
    if (pixel.x >= frame.width || pixel.y >= frame.height) { return; }
    let index = pixel.y * frame.width + pixel.x;
    let guided = guide[filter_view.after + index];
    let roughness = bitcast<f32>(guided.w);
    if (!has_light(guided.z, roughness)) {
        filtered[index] = light[index];
        return;
    }
    let s = unpack_surface(textureLoad(surface, pixel, 0));
    let point = from_camera(pixel, guided);
    let off_plane = PLANE_PIXELS * frame.pixel_spread * bitcast<f32>(guided.x);
    let here = unpack_radiance(unfiltered[index]);
    let brightness = luminance(here);
    // What halves cannot tell is no difference.
    let deviations = select(DIRECT_DEVIATIONS, REFLECTION_DEVIATIONS, REFLECTION);
    let noise = deviations * smooth_deviation(vec2i(pixel), guided.z) + 1.0e-3 * brightness + 1.0e-6;
    var narrow = 0.0; // of the exponent, a pixel squared
    if (REFLECTION) {
        let radius = max(lobe_radius(roughness, unpack_w(light[index]), length(point)), 1.0e-3);
        narrow = 0.5 / (radius * radius);
    }
    var kernel = array<f32, 3>(0.375, 0.25, 0.0625);
    var sum = vec3f(0.0);
    var variance = 0.0;
    var total = 0.0;
    for (var y = -2; y <= 2; y += 1) {
        for (var x = -2; x <= 2; x += 1) {
            let q = vec2i(pixel) + STEP * vec2i(x, y);
            if (any(q < vec2i(0)) || q.x >= i32(frame.width) || q.y >= i32(frame.height)) { continue; }
            let at = u32(q.y) * frame.width + u32(q.x);
            let other = guide[filter_view.after + at];
            let rough = bitcast<f32>(other.w);
            if (other.z != guided.z || !has_light(other.z, rough)) { continue; }
            let cosine = dot(decode_normal(other.y), s.shading_normal);
            if (cosine <= 0.0) { continue; }
            let lit = unpack_radiance(unfiltered[at]);
            let off = abs(dot(from_camera(vec2u(q), other) - point, s.geometric_normal));
            var cost = off / off_plane + abs(luminance(lit) - brightness) / noise
                - NORMAL_POWER * log(min(cosine, 1.0));
            if (REFLECTION) {
                cost += abs(rough - roughness) / ROUGHNESS_APART + narrow * f32(STEP * STEP * (x * x + y * y));
            }
            // The pixel itself has no cost.
            let alike = select(exp(-cost), 1.0, x == 0 && y == 0);
            let weight = kernel[abs(x)] * kernel[abs(y)] * alike;
            let deviation = unpack_w(unfiltered[at]);
            sum += weight * lit;
            variance += weight * weight * deviation * deviation;
            total += weight;
        }
    }
    let mean = sum / total;
    if (LAST) {
        let factor = light_factor(s, normalize(-camera_direction(pixel)));
        filtered[index] = pack_radiance(mean * factor, unpack_w(light[index]));
    } else {
        filtered[index] = pack_radiance(mean, min(sqrt(variance) / total, 6.0e4));
    }
}
