// What a sample of reflected light is worth to the mean over frames. Where rays are sent at a part of
// the picture's size, most frames show a pixel what its neighbours' rays bring: of a wide lobe as good
// as its own, of a sharp image something else. So the worth of what is borrowed falls with how sharp
// a reflection is seen, and in a picture at rest with the square of how many frames it has: all of it
// together is worth no more than some own samples, and the mean tends to that of the whole picture.
// Needs `frame`.
#import "passes/shaders/lobe_radius.wgsl"

override REFLECTION_BLOCK: u32 = 1u;

const LEAST_WORTH: f32 = 0.0078125; // of an own sample's: shown until there is one
const BORROWED_FRAMES: f32 = 2.0; // of a picture at rest, after which it is worth a quarter

// `distance` of what is reflected, as light_reflection.wgsl tells it; `away` metres from the camera;
// `frames` of a picture at rest that the mean is of, 0 where things may move: then what is newer is
// worth more than what is exact.
fn sample_worth(roughness: f32, distance: f32, away: f32, frames: f32) -> f32 {
    if (distance >= 0.0) { return 1.0; }
    let radius = lobe_radius(roughness, -distance, away) / f32(REFLECTION_BLOCK);
    let square = radius * radius;
    let alike = square * square / (square * square + 1.0);
    let fades = BORROWED_FRAMES / (BORROWED_FRAMES + frames);
    return max(alike, LEAST_WORTH) * fades * fades;
}
