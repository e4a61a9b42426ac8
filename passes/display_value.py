"""What one pixel of an output holds, as text: a few words copied on the GPU, told on the host.

The probe copies all that any output needs of a pixel (its texels, and its slots of the planes that
are shown); which of it matters is decided where it is read.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.scene.upload import decode_normals
from passes.frame_options import EVERY_TYPE
from passes.hybrid import HybridFrame
from passes.motion_records import MOTION_BYTES
from passes.outputs import HISTORIES, Output, counted_rays
from passes.shadow_slots import MOST_SLOTS
from passes.slot_counts import SLOT_COUNTS, plane_bytes

# Words of the probe: texels first, then slots of the planes.
_VISIBILITY, _SURFACE, _DEPTH, _SHOWN, _NODES = 0, 4, 8, 9, 10
_SLOTS = MOST_SLOTS
_COUNT, _BASELINE = _NODES + _SLOTS, _NODES + 2 * _SLOTS
_MOTION = _NODES + 3 * _SLOTS
_HISTORY = _MOTION + 2
PROBE_BYTES = 4 * (_HISTORY + 1)


@dataclass(frozen=True, slots=True)
class Value:
    """`text` of the pixel (x, y) of an output."""

    pixel: tuple[int, int]
    output: str
    text: str


class Probe:
    """A buffer of PROBE_BYTES and the copies into it."""

    def __init__(self, device: Device) -> None:
        self.buffer = device.buffer("probe", PROBE_BYTES, "COPY_SRC|COPY_DST")

    def encode(
        self,
        encoder: Any,
        frame: HybridFrame,
        output: Output,
        pixel: tuple[int, int],
        shown: Any,
        planes: Any,
        baseline: Any,
    ) -> None:
        """Copies pixel (x, y), which must be inside the picture (else ValueError); of a count from
        `planes`, as a ray type's `slot_counts` are."""
        data, (x, y) = frame.data, pixel
        if not (0 <= x < data.width and 0 <= y < data.height):
            raise ValueError(f"pixel {x},{y} lies outside {data.width}x{data.height}")
        textures = data.textures
        for texture, word in (
            (textures["visibility"], _VISIBILITY),
            (textures["surface"], _SURFACE),
            (textures["depth"], _DEPTH),
            (shown, _SHOWN),
        ):
            encoder.copy_texture_to_buffer(
                {"texture": texture, "mip_level": 0, "origin": (x, y, 0)},
                {"buffer": self.buffer, "offset": 4 * word, "bytes_per_row": 256},
                (1, 1, 1),
            )
        if output.name == "motion":
            at = MOTION_BYTES * (y * data.width + x)
            motion = data.resources["motion"]
            encoder.copy_buffer_to_buffer(motion, at, self.buffer, 4 * _MOTION, MOTION_BYTES)
        if output in HISTORIES and data.light_history is not None:
            at = data.light_history.length_offset(y * data.width + x)
            history = data.resources[f"{output.light}_history"]
            encoder.copy_buffer_to_buffer(history, at, self.buffer, 4 * _HISTORY, 4)
        if output.count is None:
            return
        ray = counted_rays(frame.data.rays, output)
        spots = 4 * ray.slots_per_pixel
        at = (y * data.width + x) * spots
        plane = plane_bytes(data.pixels * ray.slots_per_pixel)
        for buffer, offset, word in (
            (planes, SLOT_COUNTS.index("nodes") * plane, _NODES),
            (planes, SLOT_COUNTS.index(output.count) * plane, _COUNT),
            (baseline, 0, _BASELINE),
        ):
            if buffer is not None:
                encoder.copy_buffer_to_buffer(buffer, offset + at, self.buffer, 4 * word, spots)


def describe_value(
    frame: HybridFrame, output: Output, words: NDArray[np.uint32], difference: bool
) -> str:
    """The probe's `words` of an output, with unit: "37 nodes", "2.41 m", an object's name."""
    if output.count is not None:
        rays = counted_rays(frame.data.rays, output)
        return _describe_count(rays.name, rays.slots_per_pixel, output, words, difference)
    if output.kind == "colour":
        red, green, blue = words[_SHOWN : _SHOWN + 1].view(np.uint8)[:3].tolist()
        return f"rgb {red} {green} {blue}"
    if output.name == "motion":
        right, down = words[_MOTION : _MOTION + 2].view(np.float32).tolist()
        return f"{right:+.2f} {down:+.2f} {output.unit}"
    if output in HISTORIES:
        length = words[_HISTORY : _HISTORY + 1].view(np.float16)[0]
        return f"{max(float(length) - 1, 0.0):.3g} {output.unit}"
    seen = int(words[_VISIBILITY])
    if seen == 0xFFFFFFFF:
        return "nothing"
    scene = frame.scene.prepared.scene
    packed = int(words[_SURFACE + 3])
    if output.name == "depth":
        return f"{words[_DEPTH : _DEPTH + 1].view(np.float32)[0]:.4g} {output.unit}"
    if output.name == "normal":
        x, y, z = decode_normals(words[_SURFACE : _SURFACE + 1])[0].tolist()
        return f"{x:.2f} {y:.2f} {z:.2f}"
    if output.name in ("roughness", "metalness"):
        return f"{(packed >> (16 if output.name == 'roughness' else 24) & 0xFF) / 255:.2f}"
    if output.name == "material":
        return scene.materials[packed & 0xFFFF].name
    if output.name == "object":
        return scene.instances[seen].name
    return f"triangle {int(words[_VISIBILITY + 1]):,}"


def _describe_count(
    rays: str, slots: int, output: Output, words: NDArray[np.uint32], difference: bool
) -> str:
    combine = max if output.count == "stack_max" else sum
    nodes, count, was = (
        combine(words[begin : begin + slots].tolist()) for begin in (_NODES, _COUNT, _BASELINE)
    )
    if not nodes and not (difference and was):
        return "no ray" if rays == EVERY_TYPE else f"no {rays} ray"
    if difference:
        return f"{count - was:+,} {output.unit} ({count:,}, was {was:,})"
    return f"{count:,} {output.unit}"
