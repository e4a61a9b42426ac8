// What a reflection ray would bring, found on the picture: where the ray's way over it goes into a
// visible surface, that surface's light of this frame; else what the probe shows. Near the picture's
// borders one fades into the other.
#import passes.frame_uniforms
#import passes.screen_counts
#import "passes/shaders/material_record.wgsl"
#import "passes/shaders/light.wgsl"
#import "passes/shaders/reflection_block.wgsl"
#import "passes/shaders/sent_direction.wgsl"
#import "passes/shaders/screen_march.wgsl"
#import "passes/shaders/specular_albedo.wgsl"
#import "passes/shaders/probe.wgsl"
#import "passes/shaders/light_seen.wgsl"
#import "passes/shaders/sent_weight.wgsl"
#import "passes/shaders/direct.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(2) var visibility: texture_2d<u32>;
@group(0) @binding(3) var surface: texture_2d<u32>;
@group(0) @binding(4) var pyramid: texture_2d<u32>;
@group(0) @binding(5) var probe: texture_2d<f32>;
@group(0) @binding(6) var<storage, read> direct: array<vec2u>;
@group(0) @binding(7) var<storage, read> shadow_results: array<u32>;
@group(0) @binding(8) var<storage, read_write> reflected: array<vec2u>;
@group(0) @binding(9) var<storage, read_write> screen_counts: ScreenCounts;
@group(0) @binding(10) var lobe_table: texture_2d<u32>;

override COUNT: bool = false;

// Part of the picture's shorter side over which what is found fades out towards its borders.
const SCREEN_FADE: f32 = 0.05;

// Light that leaves a visible surface against `direction`; of direct light what the camera sees.
fn screen_radiance(pixel: vec2u, direction: vec3f) -> vec3f {
    let s = unpack_surface(textureLoad(surface, pixel, 0));
    let index = pixel.y * frame.width + pixel.x;
    let emissive = material_emissive(s.material);
    let n_v = max(dot(s.shading_normal, -direction), 1.0e-4);
    let specular = specular_albedo(reflectance_at_normal(s.base_color, s.metalness), s.roughness, n_v);
    return emissive
        + diffuse_albedo(s.base_color, s.metalness, specular) * ambient_radiance(s.shading_normal)
        + specular * environment(reflect(direction, s.shading_normal))
        + direct_radiance(index);
}

// 0 at the picture's border, 1 inside.
fn border_weight(pixel: vec2u) -> f32 {
    let size = vec2f(f32(frame.width), f32(frame.height));
    let place = vec2f(pixel) + 0.5;
    let inner = min(min(place.x, size.x - place.x), min(place.y, size.y - place.y));
    return clamp(inner / (SCREEN_FADE * min(size.x, size.y)), 0.0, 1.0);
}

fn find_reflection(pixel: vec2u) {
    let index = pixel.y * frame.width + pixel.x;
    let sent = sent_direction(pixel, index);
    let s = sent.s;
    let ray = sent.ray;
    let place = reflected_place(index);
    // No light of hits waits for its shadow.
    for (var i = 1u; i <= REFLECTION_BOUNCES * SHADOW_RAYS; i += 1u) { reflected[place + i] = vec2u(0u); }
    if (ray.lost) {
        reflected[place] = pack_radiance(vec3f(0.0), MISS_DISTANCE);
        return;
    }
    let hit = march_screen(pixel, ray.direction);
    let origin = seen_position(pixel);

    var radiance = vec3f(0.0);
    var t_max = 3.0e38;
    let inner = select(0.0, border_weight(hit.pixel), hit.found);
    if (inner > 0.0) {
        radiance = inner * screen_radiance(hit.pixel, ray.direction);
        t_max = hit.t;
    }
    var covered = 0.0;
    var distance = min(hit.t, 6.0e4);
    if (inner < 1.0) {
        let spread = ray_footprint(pixel, s.roughness) * frame.pixel_spread + s.roughness * s.roughness;
        let shown = probe_cone(origin, ray.direction, spread);
        radiance += (1.0 - inner) * shown.radiance;
        covered = shown.covered;
    }
    // Of what the probe shows nobody knows it.
    if (inner == 0.0) { distance = MISS_DISTANCE; }
    if (s.roughness < NARROW_ROUGHNESS) { radiance += light_seen(origin, ray.direction, t_max); }
    if (COUNT) {
        if (inner > 0.0) {
            atomicAdd(&screen_counts.screen, 1u);
        } else if (covered >= 0.5) {
            atomicAdd(&screen_counts.probe, 1u);
        } else {
            atomicAdd(&screen_counts.environment, 1u);
        }
        if (hit.cut) { atomicAdd(&screen_counts.cut, 1u); }
        if (ray.raised) { atomicAdd(&screen_counts.replaced, 1u); }
    }
    reflected[place] = pack_radiance(radiance * sent_weight(s, sent.view, ray.direction), distance);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let block = tile_pixel(group, lane);
    if (!in_picture(REFLECTION_BLOCK * block)) { return; }
    for (var sending = sending_turns(block); sending != 0u; sending &= sending - 1u) {
        find_reflection(pixel_in_turn(block, firstTrailingBit(sending)));
    }
}
