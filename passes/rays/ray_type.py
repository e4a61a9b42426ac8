"""What a ray type is: its record in the queue, how it is traced and who makes it.

A new ray type is one file here, its generator and record shaders, and one line in RAY_TYPES;
reports, heat maps and tests loop over that tuple.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bvh.gpu.trace_rays import HIT
from engine.gpu.structs import Struct
from passes.frame_options import FrameOptions


@dataclass(frozen=True, slots=True)
class RayType:
    """`record_shader` gives `load_ray(index)`, `ray_slot(index)` and `store_result(index, result)`.
    `light_shader` is a stage over the frame's resources that writes what these rays brought to the
    picture into the texture `shown`; `apart_shader` is the one that does so where the frame keeps
    its lights apart, None: the same.

    A pixel owns `slots_per_pixel` consecutive slots, pixel * slots_per_pixel and on: the most rays
    that it sends, so also the queue's capacity a pixel. `starts_at` says for each of them where its
    ray starts: at what the "primary" ray sees, or at the hit of another ray type of that name.
    The record's `slot_field` says which slot a ray has. Results lie by queue index, with
    `results_by_slot` by slot; those of closest-hit types are HIT records, of any-hit types one
    word, 1 where nothing was in the way.

    A frame whose options give a pixel more slots has the type as `of` makes it: `starts_with` tells
    what these slots' rays start at; None: the options do not matter.

    `goes_to` tells in words, by a record and the FRAME_UNIFORMS, what in the frame a ray goes to:
    " to light 2 of 3", "" where that is plain. None: it goes anywhere.

    `silence` makes a frame's inputs (passes.frame_uniforms.FrameInputs) those of one that sends no
    such ray; None where `option` does.

    Reflection rays that start at the hits of reflection rays are types of their own: the path's
    `bounce`th, as further ones `bounce_of` the first (passes/rays/bounce.py).

    `option` is the flag of FrameOptions without which a frame has no such rays, nor passes and
    buffers for them; None: every frame has them. `choice` is the field of FrameOptions that has to
    be "rays" for a frame to send them; None: there is no other way. `block` is the property of
    FrameOptions that holds the side of the block of pixels which share such a ray, as the constant
    REFLECTION_BLOCK tells its shaders; None: every pixel sends its own (`passes.senders`)."""

    name: str
    record: Struct
    any_hit: bool
    record_shader: str
    generator_shader: str
    light_shader: str
    starts_at: tuple[str, ...]
    slot_field: str = "slot"
    results_by_slot: bool = False
    option: str | None = None
    apart_shader: str | None = None
    choice: str | None = None
    block: str | None = None
    goes_to: Callable[[Any, Any], str] | None = None
    silence: Callable[[Any], Any] | None = None
    starts_with: Callable[[FrameOptions], tuple[str, ...]] | None = None
    bounce: int = 1
    bounce_of: str = ""

    def of(self, options: FrameOptions) -> "RayType":
        """The type as a frame with these options has it."""
        if self.starts_with is None or self.starts_with(options) == self.starts_at:
            return self
        return replace(self, starts_at=self.starts_with(options))

    def is_sent(self, options: Any) -> bool:
        """Whether frames with these FrameOptions send such rays."""
        by_rays = self.choice is None or getattr(options, self.choice) == "rays"
        return by_rays and self.is_shown(options)

    def is_shown(self, options: Any) -> bool:
        """Whether such frames have their light, by rays or otherwise."""
        return self.option is None or bool(getattr(options, self.option))

    @property
    def family(self) -> str:
        """The name under which options know it: masks, kernels, sorted rays."""
        return self.bounce_of or self.name

    @property
    def slots_per_pixel(self) -> int:
        return len(self.starts_at)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint32) if self.any_hit else HIT.dtype

    @property
    def result_bytes(self) -> int:
        return self.result_dtype.itemsize

    @property
    def queue(self) -> str:
        return f"{self.name}_queue"

    @property
    def results(self) -> str:
        return f"{self.name}_results"

    @property
    def slot_counts(self) -> str:
        """Of counted frames: see passes/slot_counts.py."""
        return f"{self.name}_slot_counts"
