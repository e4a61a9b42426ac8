// Sends the next reflection ray of each path, from what its last one hit, where that is smooth
// enough and what comes back still counts. Directions as of the first ray (reflect_ray.wgsl): what the
// lobe loses ends the path. $path says what the path is worth so far.
#import passes.frame_uniforms
#import "bvh/shaders/ray.wgsl"
#import "passes/shaders/hit_material.wgsl"
#import "passes/shaders/light.wgsl"
#import "passes/shaders/reflect_ray.wgsl"
#import "passes/shaders/sample_number.wgsl"
#import $path
#import $push
#import passes.rays.bounce

alias PushRecord = BounceRay;

struct PathQueue {
    header: AtomicQueueHeader,
    records: array<PathRay>,
}

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var<storage, read_write> queue: PathQueue;
@group(0) @binding(2) var<storage, read> results: array<Hit>;
@group(0) @binding(3) var surface: texture_2d<u32>; // read for the first rays of paths alone
@group(0) @binding(4) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> geometry: array<u32>;
@group(0) @binding(6) var<storage, read> texels: array<u32>;
@group(0) @binding(7) var<storage, read_write> push_queue: PushQueue;
@group(0) @binding(8) var hit_records: texture_2d<u32>;
@group(0) @binding(9) var lobe_table: texture_2d<u32>;

override BOUNCE: u32 = 2u; // of the rays that are sent
override COUNT: bool = false;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    clear_votes(lane);
    let index = (frame.first_group + group.y * groups.x + group.x) * QUEUE_GROUP_SIZE + lane;
    let count = min(atomicLoad(&queue.header.count), atomicLoad(&queue.header.capacity));
    var wanted = false;
    var ray: BounceRay;
    if (index < count) {
        let record = queue.records[index];
        let hit = results[index];
        if (hit.object != MISS) {
            let view = -vec3f(record.direction[0], record.direction[1], record.direction[2]);
            let point = face_viewer(surface_point(hit.object, hit.primitive, hit.u, hit.v), view);
            let cone = unpack2x16float(record.cone);
            let width = cone.x + cone.y * hit.t;
            let material = hit_material(hit.object, point, width, abs(dot(point.geometric_normal, view)));
            if (COUNT) { atomicAdd(&queue.header.texture_fetches, material.fetches); }
            if (material.roughness <= frame.roughness_cutoff) {
                let reflected = reflect_ray(view, point.shading_normal, point.geometric_normal, material.roughness,
                    sample_number(record.pixel, reflection_dimension(BOUNCE)),
                    sample_number(record.pixel, reflection_dimension(BOUNCE) + 1u));
                let weight = path_of(record).weight * reflection_weight(material.base_color, material.metalness,
                    material.roughness, point.shading_normal, view, reflected.direction);
                if (reflected.lost) { atomicAdd(&push_queue.header.lost, 1u); }
                wanted = !reflected.lost && !is_black(weight);
                if (wanted) {
                    if (reflected.raised) { atomicAdd(&push_queue.header.replaced, 1u); }
                    let origin = ray_origin(point, reflected.direction);
                    let spread = cone.y + material.roughness * material.roughness;
                    let sees_lights = select(0.0, 1.0, material.roughness < NARROW_ROUGHNESS);
                    ray = BounceRay(array<f32, 3>(origin.x, origin.y, origin.z), record.pixel,
                        array<f32, 3>(reflected.direction.x, reflected.direction.y, reflected.direction.z),
                        pack2x16float(vec2f(min(width, 6.0e4), spread)),
                        array<u32, 2>(pack2x16float(weight.xy), pack2x16float(vec2f(weight.z, sees_lights))));
                    vote(lane);
                }
            }
        }
    }
    push(lane, wanted, ray);
}
