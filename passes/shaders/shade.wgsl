// Shades what reflection rays found: material and textures at a hit, the environment on a miss.
// Light at a hit waits for its shadow ray, which is pushed here; what the ray carries back to its
// pixel is weighed by the reflectances of its path's surfaces, as $path says, and added to what the
// path's rays before it brought. Beside it lies the distance of the path's first hit.
#import passes.frame_uniforms
#import "bvh/shaders/ray.wgsl"
#import "passes/shaders/hit_material.wgsl"
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/specular_albedo.wgsl"
#import "passes/shaders/light.wgsl"
#import "passes/shaders/light_seen.wgsl"
#import "passes/shaders/sample_light.wgsl"
#import "passes/shaders/environment.wgsl"
#import "passes/shaders/shadow_slot.wgsl"
#import "passes/shaders/tone_map.wgsl"
#import $path
#import $push
#import passes.rays.shadow

alias PushRecord = ShadowRay;

struct PathQueue {
    header: AtomicQueueHeader,
    records: array<PathRay>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read_write> queue: PathQueue;
@group(0) @binding(2) var<storage, read> results: array<Hit>;
@group(0) @binding(3) var surface: texture_2d<u32>;
@group(0) @binding(4) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> geometry: array<u32>;
@group(0) @binding(6) var<storage, read> texels: array<u32>;
@group(0) @binding(7) var<storage, read_write> reflected: array<vec2u>;
@group(0) @binding(8) var<storage, read_write> push_queue: PushQueue;
@group(0) @binding(9) var hit_records: texture_2d<u32>; // read by a fine hit table alone
@group(0) @binding(10) var<storage, read> order: array<u32>; // of the hits, where SORTED
@group(0) @binding(11) var lobe_table: texture_2d<u32>;

override COUNT: bool = false;
override SORTED: bool = false;
override BOUNCE: u32 = 1u; // of the rays, along their paths

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    var index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let count = min(atomicLoad(&queue.header.count), atomicLoad(&queue.header.capacity));
    let is_ray = index < count;
    var pixel_index = 0u;
    var weight = vec3f(0.0);
    var is_hit = false;
    var goes_on = false; // with a reflection ray of the hit
    var view: vec3f;
    var point: SurfacePoint;
    var material: SurfaceMaterial;
    if (is_ray) {
        if (SORTED) { index = order[index]; }
        let record = queue.records[index];
        let hit = results[index];
        let origin = vec3f(record.origin[0], record.origin[1], record.origin[2]);
        let direction = vec3f(record.direction[0], record.direction[1], record.direction[2]);
        pixel_index = record.pixel;
        let path = path_of(record);
        weight = path.weight;

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
            // Where the path ends, the hit's own reflection sees the environment.
            var mirrored = specular * environment(reflect(direction, point.shading_normal));
            goes_on = BOUNCE < REFLECTION_BOUNCES && material.roughness <= frame.roughness_cutoff;
            if (goes_on) { mirrored = vec3f(0.0); }
            radiance = material.emissive
                + diffuse_albedo(material.base_color, material.metalness, specular)
                    * ambient_radiance(point.shading_normal)
                + mirrored;
            if (COUNT) {
                atomicAdd(&queue.header.texture_fetches, material.fetches);
                atomicAdd(&queue.header.hits, 1u);
            }
        }
        if (path.sees_lights) {
            radiance += light_seen(origin, direction, select(INFINITE_T, hit.t, is_hit));
        }
        radiance *= weight;
        var distance = select(MISS_DISTANCE, min(hit.t, 6.0e4), is_hit);
        let place = reflected_place(pixel_index);
        if (BOUNCE > 1u) {
            let before = reflected[place];
            radiance += unpack_radiance(before);
            distance = unpack2x16float(before.y).y;
        }
        reflected[place] = pack_radiance(radiance, distance);
        if (BOUNCE == 1u) { // paths may end here
            for (var i = 1u + SHADOW_RAYS; i <= REFLECTION_BOUNCES * SHADOW_RAYS; i += 1u) {
                reflected[place + i] = vec2u(0u);
            }
        }
    }
    for (var number = 0u; number < SHADOW_RAYS; number += 1u) {
        if (number > 0u) { workgroupBarrier(); } // the last push is done with its votes
        clear_votes(lane);
        var wanted = false;
        var shadow: ShadowRay;
        if (is_ray) {
            var arriving = vec3f(0.0);
            if (is_hit) {
                let light = light_sample(pixel_index, BOUNCE, number, point.position, point.geometric_normal,
                    point.shading_normal, view, material.base_color, material.metalness,
                    sampled_roughness(material.roughness, goes_on));
                arriving = light.radiance * weight;
                wanted = !is_black(arriving);
                if (wanted) {
                    let start = ray_origin(point, light.to_light);
                    shadow = ShadowRay(array<f32, 3>(start.x, start.y, start.z), light.light_uv,
                        shadow_slot(pixel_index, BOUNCE, number));
                    vote(lane);
                }
            }
            reflected[reflected_light_place(pixel_index, BOUNCE, number)] = pack_radiance(arriving, 0.0);
        }
        push(lane, wanted, shadow);
    }
}
