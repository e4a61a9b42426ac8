// Fills the pyramid that screen_march.wgsl goes through (passes/depth_pyramid.py). A workgroup makes
// one cell of the top level and all below it.
#import passes.frame_uniforms
#import "passes/shaders/gbuffer.wgsl"
#import "passes/shaders/pyramid_layout.wgsl"

@group(0) @binding(0) var<uniform> frame: FrameUniforms;
@group(0) @binding(1) var surface: texture_2d<u32>;
@group(0) @binding(2) var depth: texture_2d<f32>;
@group(0) @binding(3) var pyramid_out: texture_storage_2d<rg32uint, write>;

const SIDE: u32 = 1u << PYRAMID_TOP; // pixels of a cell of the top level
const LANES: u32 = 64u;

// By pixel; a cell's are kept where its first pixel's were.
var<workgroup> cells: array<CellBounds, SIDE * SIDE>;

// Planes seen from their edge count as hardly steeper than this cosine.
const LEAST_COSINE: f32 = -1.0e-6;

fn pixel_plane(pixel: vec2u, along: vec3f, down: vec3f) -> PixelPlane {
    let pixel_depth = textureLoad(depth, pixel, 0).x; // 0 where nothing is seen
    if (pixel_depth == 0.0) { return PixelPlane(0.0, vec2f(0.0)); }
    let normal = decode_normal(textureLoad(surface, pixel, 0).y);
    // Of a plane's points d c, with c the view through a place of the picture, dot(normal, d c) is
    // the same: 1 / d is linear over the picture.
    let cosine = min(dot(normal, camera_direction(pixel)), LEAST_COSINE);
    return PixelPlane(1.0 / pixel_depth, vec2f(dot(normal, along), dot(normal, down)) / cosine);
}

fn store_cell(padded: vec2u, level: u32, cell: vec2u, words: vec2u) {
    textureStore(pyramid_out, pyramid_corner(padded, level) + cell, vec4u(words, 0u, 0u));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group_in: vec3u, @builtin(local_invocation_index) lane: u32) {
    let group = vec2u(group_in.x, frame.first_tile_row + group_in.y);
    let size = vec2u(frame.width, frame.height);
    let padded = padded_size(size);
    let along = frame.camera_right.xyz * (2.0 / f32(size.x)); // from pixel to pixel of the view
    let down = frame.camera_up.xyz * (-2.0 / f32(size.y));

    for (var i = lane; i < SIDE * SIDE; i += LANES) {
        let pixel = SIDE * group + vec2u(i % SIDE, i / SIDE);
        cells[i] = EMPTY_CELL;
        if (all(pixel < size)) {
            let words = pack_plane(pixel_plane(pixel, along, down));
            store_cell(padded, 0u, pixel, words);
            cells[i] = plane_bounds(unpack_plane(words)); // of what is packed: rays meet that
        }
    }
    for (var level = 1u; level <= PYRAMID_TOP; level += 1u) {
        workgroupBarrier();
        let side: u32 = SIDE >> level; // of the workgroup's cells
        let step = 1u << (level - 1u); // between those of the level below
        for (var i = lane; i < side * side; i += LANES) {
            let place = vec2u(i % side, i / side);
            let first = 2u * step * (place.y * SIDE + place.x);
            let below = first + step * SIDE;
            let bounds = both_bounds(both_bounds(cells[first], cells[first + step]),
                both_bounds(cells[below], cells[below + step]));
            cells[first] = bounds;
            store_cell(padded, level, side * group + place, pack_bounds(bounds));
        }
    }
}
