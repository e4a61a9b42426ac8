"""One declaration of a record gives its NumPy dtype and its WGSL struct.

Host and shader cannot drift: fields keep their order, and a gap that WGSL's alignment rules
(WGSL specification, section "Memory Layout") would insert is an error, so that padding is
always written down. Offsets and sizes are in bytes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

_SCALAR = {"f32": np.dtype("<f4"), "u32": np.dtype("<u4"), "i32": np.dtype("<i4")}
# component count -> alignment in 4-byte words; a vec3 aligns like a vec4.
_VECTOR_ALIGN = {1: 1, 2: 2, 3: 4, 4: 4}


@dataclass(frozen=True, slots=True)
class Field:
    """A named member: `kind` is a WGSL scalar (`f32`, `u32`, `i32`), a vector (`vec2f`,
    `vec4u`) or, with `count` > 1, an array of either."""

    name: str
    kind: str
    count: int = 1

    def _parts(self) -> tuple[np.dtype[Any], int]:
        if self.kind in _SCALAR:
            return _SCALAR[self.kind], 1
        base = {"f": "f32", "u": "u32", "i": "i32"}[self.kind[-1]]
        return _SCALAR[base], int(self.kind[3])

    @property
    def align(self) -> int:
        return 4 * _VECTOR_ALIGN[self._parts()[1]]

    @property
    def size(self) -> int:
        return 4 * self._parts()[1] * self.count

    @property
    def numpy_field(self) -> tuple[Any, ...]:
        scalar, width = self._parts()
        shape = tuple(n for n in (self.count, width) if n > 1)
        return (self.name, scalar, shape) if shape else (self.name, scalar)

    @property
    def wgsl_type(self) -> str:
        return self.kind if self.count == 1 else f"array<{self.kind}, {self.count}>"


class Struct:
    """A record shared by host and shader. `dtype` is the NumPy side, `wgsl()` the shader's."""

    def __init__(self, name: str, *fields: Field) -> None:
        self.name = name
        self.fields = fields
        offset, align = 0, 4
        self.offsets: dict[str, int] = {}
        for field in fields:
            if offset % field.align:
                raise ValueError(
                    f"{name}.{field.name}: WGSL aligns {field.kind} to {field.align} bytes, "
                    f"offset {offset} needs explicit padding"
                )
            if field.count > 1 and (field.size // field.count) % field.align:
                raise ValueError(f"{name}.{field.name}: array of {field.kind} has padded elements")
            self.offsets[field.name] = offset
            offset += field.size
            align = max(align, field.align)
        if offset % align:
            raise ValueError(f"{name}: size {offset} is no multiple of its alignment {align}")
        self.size = offset
        self.dtype: np.dtype[Any] = np.dtype([f.numpy_field for f in fields])
        assert self.dtype.itemsize == offset

    def wgsl(self) -> str:
        """The WGSL declaration, each member with its byte offset as a comment."""
        lines = [f"struct {self.name} {{ // {self.size} bytes"]
        lines += [f"    {f.name}: {f.wgsl_type}, // {self.offsets[f.name]}" for f in self.fields]
        return "\n".join([*lines, "}"]) + "\n"
