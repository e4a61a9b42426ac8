"""The display pass by its twins."""

import importlib
import inspect
from typing import Any

import numpy as np

from passes.display import has_range
from passes.display_records import DISPLAY_RANGE, DISPLAY_UNIFORMS
from passes.hybrid import HybridFrame
from passes.outputs import PASS_OUTPUTS, counted_rays
from passes.palettes import palette_colours
from passes.rays.ray_sum import RaySum
from passes.slot_counts import SLOT_COUNTS
from passes.twins.read_back import read_resources
from passes.twins.sum_counts import sum_counts

SIZE = (83, 61)  # no multiple of a tile's eight; two groups of the range stages


def by_twins(
    frame: HybridFrame,
    output: Any,
    palette: str = "viridis",
    value_range: tuple[float, float] | None = None,
    baseline: Any = None,
) -> tuple[Any, Any]:
    """What the twins make of the frame's resources: the picture, in steps of 1/255 that are not
    rounded yet, and the range record."""
    arrays = read_resources(frame.data, frame.inputs)
    uniforms = np.zeros((), DISPLAY_UNIFORMS.dtype)
    if output.count:
        ray = counted_rays(frame.data.rays, output)
        uniforms["field"] = SLOT_COUNTS.index(output.count)
        uniforms["slots_per_pixel"] = ray.slots_per_pixel
        if isinstance(ray, RaySum):
            planes = np.full(len(SLOT_COUNTS) * frame.data.pixels, 0xDEAD, np.uint32)
            for number, own in enumerate(ray.rays):
                settings = dict(first=number == 0, slots_per_pixel=own.slots_per_pixel)
                sum_counts(arrays["frame"], arrays[own.slot_counts], planes, **settings)
        else:
            planes = arrays[ray.slot_counts]
        arrays["slot_counts"] = planes
        arrays["baseline"] = planes if baseline is None else baseline
    else:
        names = [o.name for o in PASS_OUTPUTS if o.shader == PASS_OUTPUTS[1].shader]
        uniforms["field"] = names.index(output.name) if output.name in names else 0
    uniforms["difference"] = baseline is not None
    uniforms["automatic"] = value_range is None
    uniforms["low"], uniforms["high"] = value_range or (0, 1)
    opaque = np.full((256, 1), 255, np.uint8)
    arrays |= {
        "display": uniforms,
        "display_range": np.zeros((), DISPLAY_RANGE.dtype),
        "palette": np.concatenate([palette_colours(palette), opaque], 1).view(np.uint32).ravel(),
        "shown": np.zeros((frame.data.height, frame.data.width, 4), np.float32),
    }
    depth = output.name == "depth"
    if has_range(output):
        run(f"display_range_{'depth' if depth else 'counts'}", arrays)
        run("display_range_resolve", arrays, depth=depth)
    run(output.shader.rpartition("/")[2].removesuffix(".wgsl"), arrays)
    assert (arrays["shown"][..., 3] == 255).all()
    return arrays["shown"][..., :3], arrays["display_range"]


# A driver rounds what it stores into 8 bits to within this part of a step: Direct3D's tolerance of
# float to integer conversions (functional specification, 3.2.3.6), which the hardware is made for.
STORED_WITHIN = 0.6
# Before that: WGSL bounds log2's error by 3 ULP and exp2's, of arguments above -4, by 11, so that
# the relative error of `pow` in an sRGB curve is below 4e-6; all else is some roundings.
COLOURS_WITHIN = 255 * 1e-5


def assert_shown(found: Any, steps: Any) -> None:
    """A picture that was read is the one that the twins make, at every pixel."""
    assert np.abs(found - steps).max() <= STORED_WITHIN + COLOURS_WITHIN


def run(stage: str, arrays: dict[str, Any], **settings: Any) -> None:
    twin = getattr(importlib.import_module(f"passes.twins.{stage}"), stage)
    parameters = inspect.signature(twin).parameters.values()
    twin(*(arrays[p.name] for p in parameters if p.kind is not p.KEYWORD_ONLY), **settings)
