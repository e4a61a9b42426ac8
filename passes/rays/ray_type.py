"""What a ray type is: its record in the queue, how it is traced and who makes it.

A new ray type is one file here, its generator and record shaders, and one line in RAY_TYPES;
reports, heat maps and tests loop over that tuple.
"""

from dataclasses import dataclass

from engine.gpu.structs import Struct


@dataclass(frozen=True, slots=True)
class RayType:
    """`record_shader` gives `load_ray(index)` and `store_result(index, result)`;
    `slots_per_pixel` is the most rays a pixel sends, so also the queue's capacity a pixel."""

    name: str
    record: Struct
    result_bytes: int
    any_hit: bool
    record_shader: str
    generator_shader: str
    slots_per_pixel: int

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
