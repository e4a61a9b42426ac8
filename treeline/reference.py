"""The picture that a frame is compared with: from a file, or made here of many samples.

A reference made here is the mean of many frames of the same scene, camera, light and pose, with
everything full and other random numbers, so that its noise is not the frame's own.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.gpu.errors import CheckFailed, UserError
from engine.scene.scene import Scene
from passes.frame_options import MOST_BOUNCES, FrameOptions
from passes.hybrid import HybridFrame
from treeline.radiance_file import RadiancePicture, check_suffix, load_radiance

# What a reference has of the options that trade a picture for time. All others (what a frame is
# of, and how it is traced to the same hits) are the frame's.
FULL: dict[str, Any] = {
    "roughness_cutoff": 1.0,
    "reflection_scale": "full",
    "reflection_bounces": MOST_BOUNCES,
    "any_hit": "test",
    "history": 0,
    "denoiser": 0,
    "sampler": "hash",
    "reflections": "rays",
    "shadows": "rays",
}
OTHER_SEED = 0x5EED  # added to the frame's
MOST_SAMPLES = 1 << 20

MakeFrame = Callable[[FrameOptions], HybridFrame]


def full_options(options: FrameOptions) -> FrameOptions:
    """Those of a reference for a frame with these."""
    seed = options.seed + OTHER_SEED
    return replace(options, **FULL, seed=seed, count=False, count_lanes=False)


def parse_reference(text: str) -> Path | int:
    """A file, or how many samples to make one of. UserError for what is neither."""
    if text.isdecimal():
        samples = int(text)
        if not 1 <= samples <= MOST_SAMPLES:
            raise UserError(f"a reference is made of 1 to {MOST_SAMPLES:,} samples, not {text}")
        return samples
    path = Path(text)
    check_suffix(path)
    return path


def picture_facts(
    scene: Scene, options: FrameOptions, pose: Mapping[str, Any], samples: int = 1
) -> dict[str, Any]:
    """What a picture from the scene's own camera shows, for a file of it; JSON types only. `pose`
    has a `clip` and a `time`, or nothing."""
    return {
        "scene": scene.name,
        "scene_sha256": scene.sha256,
        "camera": np.asarray(scene.camera.transform, np.float64).ravel().tolist(),
        "y_fov": float(scene.camera.y_fov),
        "light": [
            float(x)
            for light in scene.lights
            for part in (light.center, light.half_u, light.half_v, light.radiance)
            for x in part
        ],
        "clip": pose.get("clip"),
        "time": float(pose.get("time", 0.0)),
        "width": options.width,
        "height": options.height,
        "samples": samples,
        "seed": options.seed,
    }


# What a reference and a frame must have in common, and how a mismatch is said.
SHARED = {
    "scene_sha256": "shows another scene ({scene})",
    "camera": "was taken from elsewhere",
    "y_fov": "was taken through another lens",
    "light": "has another light",
    "clip": "shows another clip ({clip})",
    "time": "shows another time ({time:g} s)",
}


def check_reference(name: str, picture: RadiancePicture, facts: dict[str, Any]) -> None:
    """UserError where the picture is of another size, or as far as its facts tell of another scene,
    from another camera, in other light or in another pose than the frame with `facts`."""
    height, width = picture.pixels.shape[:2]
    if (width, height) != (facts["width"], facts["height"]):
        raise UserError(
            f"reference {name} is {width}x{height}, the frame {facts['width']}x{facts['height']}"
        )
    for key, said in SHARED.items():
        if key in picture.facts and not _same(picture.facts[key], facts[key]):
            shown = {"scene": "unnamed", **picture.facts}
            raise UserError(f"reference {name} {said.format(**shown)} than the frame's")


def _same(one: Any, other: Any) -> bool:
    """Numbers within what a round trip through text or float32 costs."""
    if isinstance(one, str | type(None)) or isinstance(other, str | type(None)):
        return bool(one == other)
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-6, atol=1e-9))


def make_reference(make_frame: MakeFrame, options: FrameOptions, samples: int) -> RadiancePicture:
    """The mean of `samples` frames of `full_options(options)`. CheckFailed where one was not
    whole."""
    full = full_options(options)
    frame = make_frame(full)
    stats = frame.render(samples)
    if not stats.valid:
        raise CheckFailed(f"the reference misses rays: {'; '.join(stats.failures) or 'no room'}")
    return RadiancePicture(frame.radiance(), {"samples": samples, "seed": full.seed})


def reference_facts(wanted: Path | int, picture: RadiancePicture | None) -> dict[str, Any]:
    """What a record says of a reference: a file's picture, or one made of so many samples."""
    if picture is None:
        return {"source": "made here", "samples": wanted}
    assert isinstance(wanted, Path)
    digest = hashlib.sha256(np.ascontiguousarray(picture.pixels).tobytes()).hexdigest()
    return {"source": wanted.name, "samples": picture.facts.get("samples"), "sha256": digest}


def load_reference(path: Path, facts: dict[str, Any]) -> RadiancePicture:
    """UserError where it is not of what the frame with `facts` shows."""
    picture = load_radiance(path)
    check_reference(path.name, picture, facts)
    return picture
