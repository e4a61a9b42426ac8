// Shades what reflection rays found: material and textures at a hit, the environment on a miss.
// Light at a hit waits for its shadow ray, which is pushed here; what the ray carries back to its
// pixel is weighed by the first surface's reflectance. Beside it lies the distance of the hit.
#import passes.frame_uniforms
#import "bvh/shaders/ray.wgsl"
#import "passes/shaders/material.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/light.wgsl"
#import "passes/shaders/light_seen.wgsl"
#import "passes/shaders/environment.wgsl"
#import "passes/shaders/shadow_slot.wgsl"
#import "passes/shaders/tone_map.wgsl"
#import $push
#import passes.hit_records
#import passes.rays.reflection
#import passes.rays.shadow

alias PushRecord = ShadowRay;

struct ReflectionQueue {
    header: AtomicQueueHeader,
    records: array<ReflectionRay>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read_write> reflection_queue: ReflectionQueue;
@group(0) @binding(2) var<storage, read> reflection_results: array<Hit>;
@group(0) @binding(3) var surface: texture_2d<u32>;
@group(0) @binding(4) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> geometry: array<u32>;
@group(0) @binding(6) var<storage, read> texels: array<u32>;
@group(0) @binding(7) var<storage, read_write> reflected: array<vec2u>;
@group(0) @binding(8) var<storage, read_write> push_queue: PushQueue;
@group(0) @binding(9) var hit_records: texture_2d<u32>; // read by a fine hit table alone
@group(0) @binding(10) var<storage, read> order: array<u32>; // of the hits, where SORTED

override COUNT: bool = false;
override FINE_TABLE: bool = false; // every object has a record of its own (passes/hit_records.py)
override SORTED: bool = false;

// A hit's material by the frame's grouping of hit records.
fn hit_material(object: u32, point: SurfacePoint, cone_width: f32, cosine: f32) -> SurfaceMaterial {
    if (!FINE_TABLE) { return material_at(point, cone_width, cosine); }
    let at = vec2u(object % HIT_RECORDS_A_ROW * MATERIAL_VEC4S, object / HIT_RECORDS_A_ROW);
    return material_of(textureLoad(hit_records, at, 0), textureLoad(hit_records, at + vec2u(1u, 0u), 0),
        textureLoad(hit_records, at + vec2u(2u, 0u), 0), point, cone_width, cosine);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    clear_votes(lane);
    var index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let count = min(atomicLoad(&reflection_queue.header.count), atomicLoad(&reflection_queue.header.capacity));
    var wanted = false;
    var shadow: ShadowRay;
    if (index < count) {
        if (SORTED) { index = order[index]; }
        let record = reflection_queue.records[index];
        let hit = reflection_results[index];
        let origin = vec3f(record.origin[0], record.origin[1], record.origin[2]);
        let direction = vec3f(record.direction[0], record.direction[1], record.direction[2]);
        let pixel = vec2u(record.pixel % frame.width, record.pixel / frame.width);
        let first = unpack_surface(textureLoad(surface, pixel, 0));
        let weight = reflection_weight(first.base_color, first.metalness, first.roughness,
            first.shading_normal, normalize(-camera_direction(pixel)), direction);

        var radiance = vec3f(0.0);
        var light = LightSample(vec3f(0.0), vec3f(0.0));
        if (hit.object == MISS) {
            radiance = environment(direction);
        } else {
            let view = -direction;
            let point = face_viewer(surface_point(hit.object, hit.primitive, hit.u, hit.v), view);
            let cone = unpack2x16float(record.cone);
            let width = cone.x + cone.y * hit.t;
            let material = hit_material(hit.object, point, width, abs(dot(point.geometric_normal, view)));
            let n_v = max(dot(point.shading_normal, view), 1.0e-4);
            let f0 = reflectance_at_normal(material.base_color, material.metalness);
            let specular = specular_albedo(f0, material.roughness, n_v);
            let mirrored = reflect(direction, point.shading_normal);
            // No second bounce: the hit's own reflection sees the environment.
            radiance = material.emissive
                + diffuse_albedo(material.base_color, material.metalness, specular)
                    * ambient_radiance(point.shading_normal)
                + specular * environment(mirrored);
            let light_uv = sample_light(record.pixel, REFLECTED_LIGHT_DIMENSION);
            light = light_from(light_uv, point.position, point.geometric_normal, point.shading_normal, view,
                material.base_color, material.metalness, material.roughness);
            wanted = !is_black(light.radiance * weight);
            if (wanted) {
                let start = ray_origin(point, light.to_light);
                shadow = ShadowRay(array<f32, 3>(start.x, start.y, start.z), light_uv,
                    shadow_slot(record.pixel, 1u, 0u));
                vote(lane);
            }
            if (COUNT) {
                atomicAdd(&reflection_queue.header.texture_fetches, material.fetches);
                atomicAdd(&reflection_queue.header.hits, 1u);
            }
        }
        if (first.roughness < MIRROR_ROUGHNESS) {
            radiance += light_seen(origin, direction, select(hit.t, INFINITE_T, hit.object == MISS));
        }
        let distance = select(min(hit.t, 6.0e4), MISS_DISTANCE, hit.object == MISS);
        reflected[reflected_place(record.pixel)] = pack_radiance(radiance * weight, distance);
        reflected[reflected_light_place(record.pixel, 1u, 0u)] = pack_radiance(light.radiance * weight, 0.0);
    }
    push(lane, wanted, shadow);
}
