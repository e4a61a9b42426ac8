// Shades what reflection rays found: material and textures at a hit, the environment on a miss.
// Light at a hit waits for its shadow ray, which is pushed here; what the ray carries back to its
// pixel is weighed by the first surface's reflectance. Beside it lies the distance of the hit.
#import passes.frame_uniforms
#import "bvh/shaders/ray.wgsl"
#import "passes/shaders/material.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/light.wgsl"
#import "passes/shaders/light_seen.wgsl"
#import "passes/shaders/sample_light.wgsl"
#import "passes/shaders/environment.wgsl"
#import "passes/shaders/sent_weight.wgsl"
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
    var index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let count = min(atomicLoad(&reflection_queue.header.count), atomicLoad(&reflection_queue.header.capacity));
    let is_ray = index < count;
    var pixel_index = 0u;
    var weight = vec3f(0.0);
    var is_hit = false;
    var view: vec3f;
    var point: SurfacePoint;
    var material: SurfaceMaterial;
    if (is_ray) {
        if (SORTED) { index = order[index]; }
        let record = reflection_queue.records[index];
        let hit = reflection_results[index];
        let origin = vec3f(record.origin[0], record.origin[1], record.origin[2]);
        let direction = vec3f(record.direction[0], record.direction[1], record.direction[2]);
        pixel_index = record.pixel;
        let pixel = vec2u(pixel_index % frame.width, pixel_index / frame.width);
        let first = unpack_surface(textureLoad(surface, pixel, 0));
        weight = sent_weight(first, normalize(-camera_direction(pixel)), direction);

        var radiance = vec3f(0.0);
        is_hit = hit.object != MISS;
        if (!is_hit) {
            radiance = environment(direction);
        } else {
            view = -direction;
            point = face_viewer(surface_point(hit.object, hit.primitive, hit.u, hit.v), view);
            let cone = unpack2x16float(record.cone);
            let width = cone.x + cone.y * hit.t;
            material = hit_material(hit.object, point, width, abs(dot(point.geometric_normal, view)));
            let n_v = max(dot(point.shading_normal, view), 1.0e-4);
            let f0 = reflectance_at_normal(material.base_color, material.metalness);
            let specular = specular_albedo(f0, material.roughness, n_v);
            let mirrored = reflect(direction, point.shading_normal);
            // No second bounce: the hit's own reflection sees the environment.
            radiance = material.emissive
                + diffuse_albedo(material.base_color, material.metalness, specular)
                    * ambient_radiance(point.shading_normal)
                + specular * environment(mirrored);
            if (COUNT) {
                atomicAdd(&reflection_queue.header.texture_fetches, material.fetches);
                atomicAdd(&reflection_queue.header.hits, 1u);
            }
        }
        if (first.roughness < MIRROR_ROUGHNESS) {
            radiance += light_seen(origin, direction, select(INFINITE_T, hit.t, is_hit));
        }
        let distance = select(MISS_DISTANCE, min(hit.t, 6.0e4), is_hit);
        reflected[reflected_place(pixel_index)] = pack_radiance(radiance * weight, distance);
    }
    for (var number = 0u; number < SHADOW_RAYS; number += 1u) {
        if (number > 0u) { workgroupBarrier(); } // the last push is done with its votes
        clear_votes(lane);
        var wanted = false;
        var shadow: ShadowRay;
        if (is_ray) {
            var arriving = vec3f(0.0);
            if (is_hit) {
                let light = light_sample(pixel_index, 1u, number, point.position, point.geometric_normal,
                    point.shading_normal, view, material.base_color, material.metalness, material.roughness);
                arriving = light.radiance * weight;
                wanted = !is_black(arriving);
                if (wanted) {
                    let start = ray_origin(point, light.to_light);
                    shadow = ShadowRay(array<f32, 3>(start.x, start.y, start.z), light.light_uv,
                        shadow_slot(pixel_index, 1u, number));
                    vote(lane);
                }
            }
            reflected[reflected_light_place(pixel_index, 1u, number)] = pack_radiance(arriving, 0.0);
        }
        push(lane, wanted, shadow);
    }
}
