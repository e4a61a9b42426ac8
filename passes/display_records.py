"""Records of the display stages, and the outputs that one of them chooses between by number.

The range is found over values as integers: counts, magnitudes of differences, or the bits of
depths, which grow as the depths do. A histogram has 32 bins an octave, exact below 64.
"""

from typing import Any

import numpy as np

from engine.gpu.structs import Field, Struct
from passes.palettes import NO_RAY

SURFACE_FIELDS = (
    "depth",
    "normal",
    "roughness",
    "metalness",
    "base_color",
    "material",
    "object",
    "primitive",
)
FULL_MOTION = 16.0  # pixels that are shown at full brightness where no range is given
FULL_HISTORY = 32.0  # frames remembered that are shown white
BIN_BITS = 5
# 32 bins below 32, then 32 for each octave up to 2^32.
BINS = (1 << BIN_BITS) * (33 - BIN_BITS)

DISPLAY_UNIFORMS = Struct(
    "DisplayUniforms",
    Field("field", "u32"),  # of SURFACE_FIELDS, or the plane of passes.slot_counts.SLOT_COUNTS
    Field("slots_per_pixel", "u32"),
    Field("difference", "u32"),  # 1: less the baseline
    Field("automatic", "u32"),  # 1: the range is what DisplayRange holds
    Field("low", "f32"),
    Field("high", "f32"),
    Field("pad", "vec2u"),
)
DISPLAY_RANGE = Struct(
    "DisplayRange",  # zero before the range stages
    Field("most", "u32"),
    Field("least_inverted", "u32"),  # ~ of the least value, so that it begins at 0
    Field("values", "u32"),  # pixels that have one
    Field("low", "f32"),
    Field("high", "f32"),
    Field("pad", "u32", 3),
    Field("histogram", "u32", BINS),
)
RANGE_RESULT_BYTES = DISPLAY_RANGE.offsets["pad"]  # what a reader of the range wants


def chosen_range(display: Any, display_range: Any) -> tuple[np.float32, np.float32]:
    """What a stage shows between, by its records: the automatic range or the given one."""
    source = display_range if display["automatic"] else display
    return np.float32(source["low"]), np.float32(source["high"])


def wgsl() -> str:
    """The records, `AtomicDisplayRange`, `FIELD_<NAME>`, and the bins' constants."""
    plain = DISPLAY_RANGE.wgsl()
    atomic = plain.replace("DisplayRange", "AtomicDisplayRange")
    for name in ("most", "least_inverted", "values"):
        atomic = atomic.replace(f" {name}: u32", f" {name}: atomic<u32>")
    atomic = atomic.replace(f"array<u32, {BINS}>", f"array<atomic<u32>, {BINS}>")
    lines = [f"const FIELD_{n.upper()}: u32 = {i}u;" for i, n in enumerate(SURFACE_FIELDS)]
    lines += [
        f"const BIN_BITS: u32 = {BIN_BITS}u;",
        f"const BINS: u32 = {BINS}u;",
        f"const NO_RAY: vec3f = vec3f{tuple(float(c) for c in NO_RAY)} / 255.0;",
    ]
    return DISPLAY_UNIFORMS.wgsl() + plain + atomic + "\n".join(lines) + "\n"
