// Which light each shadow ray of a surface goes to. Where the surface sends a ray for every light
// they take turns. Else a light is drawn with a probability that grows with what it might bring
// (Shirley, Wang, Zimmerman, "Monte Carlo Techniques for Direct Lighting Calculations", 1996), and
// what it brings is divided by that. Needs `frame`.
#import "passes/shaders/rect_light.wgsl"
#import "passes/shaders/shadow_slot.wgsl"

// Draws all lights that may reach the surface alike.
override UNIFORM_LIGHTS: bool = false;
// This part of the draws takes them alike in any case, which bounds the weight of a light whose
// bound is far too low, as that of a dim one in a narrow highlight.
const ALIKE: f32 = 0.125;

struct LightChoice {
    light: u32,
    weight: f32, // of what the ray brings; 0: no light reaches the surface
}

// How far the light reaches above the plane through `position`, at its highest point.
fn light_height(light: RectLight, position: vec3f, normal: vec3f) -> f32 {
    return dot(normal, light.center - position) + abs(dot(normal, light.half_u)) + abs(dot(normal, light.half_v));
}

// What a white surface might receive, by the light's highest point and the distance of its centre.
// 0 only where nothing arrives: behind the light, or wholly below the surface's horizon.
fn light_importance(light: RectLight, position: vec3f, geometric_normal: vec3f, normal: vec3f) -> f32 {
    let ahead = dot(position - light.center, light.normal);
    let height = light_height(light, position, normal);
    if (ahead <= 0.0 || height <= 0.0 || light_height(light, position, geometric_normal) <= 0.0) { return 0.0; }
    let way = light.center - position;
    let distance2 = dot(way, way) + dot(light.half_u, light.half_u) + dot(light.half_v, light.half_v);
    let power = light.area * (light.radiance.x + light.radiance.y + light.radiance.z);
    return power * (height / distance2) * (ahead / distance2);
}

// For the `number`th ray; `r` in [0, 1) is spread over the surface's rays.
fn choose_light(number: u32, r: f32, position: vec3f, geometric_normal: vec3f, normal: vec3f) -> LightChoice {
    let lights: u32 = max(frame.light_count, 1u);
    if (lights <= SHADOW_RAYS) {
        let light = number % lights;
        let rays = (SHADOW_RAYS - light + lights - 1u) / lights; // that go to it
        return LightChoice(light, 1.0 / f32(rays));
    }
    var total = 0.0;
    var lit = 0u; // lights that may reach the surface
    for (var i = 0u; i < lights; i += 1u) {
        let importance = light_importance(light_at(i), position, geometric_normal, normal);
        total += importance;
        lit += select(0u, 1u, importance > 0.0);
    }
    if (lit == 0u) { return LightChoice(0u, 0.0); }
    let place = (f32(number) + r) / f32(SHADOW_RAYS);
    let alike = select(ALIKE, 1.0, UNIFORM_LIGHTS);
    var chosen = LightChoice(0u, 0.0);
    var begin = 0.0; // of a light's part of [0, 1)
    for (var i = 0u; i < lights; i += 1u) {
        let importance = light_importance(light_at(i), position, geometric_normal, normal);
        if (importance > 0.0 && begin <= place) {
            let probability = (1.0 - alike) * (importance / total) + alike / f32(lit);
            chosen = LightChoice(i, 1.0 / (f32(SHADOW_RAYS) * probability));
            begin += probability;
        }
    }
    return chosen;
}
