"""Reduction of u32: one value a tile, again and again until one is left.

Sums wrap at 2^32. Tiles are summed in a fixed tree, so the result does not depend on scheduling.

Here and in `scan` and `radix_sort`, a count that only the GPU knows stands in the first word of a
storage buffer, `live`: what lies past it is left out. The host's count still sets the dispatches.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.stage import Stage

U32 = NDArray[np.uint32]

LANES = 256
TILE = 2048  # items a workgroup: eight a lane keep loads in flight and the upper levels small
OPERATIONS = ("sum", "min", "max")
_IDENTITY = {"sum": 0, "min": 0xFFFFFFFF, "max": 0}


def tile_count(count: int) -> int:
    """Workgroups for `count` items."""
    return -(-count // TILE)


def no_limit(device: Device) -> Any:
    """A `live` buffer that leaves nothing out."""
    return device.upload("no limit", np.full(4, 0xFFFFFFFF, np.uint32))


def reduce(parameters: U32, live: U32, values: U32, partials: U32) -> None:
    """Twin of reduce.wgsl: `partials[tile]` from `values[:count]`; an empty tile gives the
    operation's identity. `parameters` are count, operation, 0, 0."""
    given, operation = int(parameters[0]), OPERATIONS[int(parameters[1])]
    count, tiles = min(given, int(live[0])), max(1, tile_count(given))
    padded = np.full(tiles * TILE, _IDENTITY[operation], np.uint32)
    padded[:count] = values[:count]
    rows = padded.reshape(tiles, TILE)
    ufunc = {"sum": np.add, "min": np.minimum, "max": np.maximum}[operation]
    partials[:tiles] = ufunc.reduce(rows, axis=1, dtype=np.uint32)


def make_reduce_stage(device: Device) -> Stage:
    """The stage that Reduce and ExclusiveScan share."""
    return Stage(device, "reduce", "engine/gpu/primitives/shaders/reduce.wgsl", twin=reduce)


class Reduce:
    """`result` holds the operation over `values[:count]` in its first word after `encode`.

    `capacity` is the largest count; `set_count` may lower it between submissions, and `live`
    within one.
    """

    def __init__(
        self, device: Device, capacity: int, operation: str = "sum", live: Any = None
    ) -> None:
        self.device = device
        self.capacity = capacity
        self.operation = OPERATIONS.index(operation)
        self.stage = make_reduce_stage(device)
        sizes = [max(1, tile_count(capacity))]
        while sizes[-1] > 1:
            sizes.append(tile_count(sizes[-1]))
        self._partials = [device.buffer("reduce/partials", 4 * size) for size in sizes]
        self._parameters = [
            device.buffer("reduce/parameters", 16, "UNIFORM|COPY_DST") for _ in sizes
        ]
        self._no_limit = no_limit(device)
        self._live = self._no_limit if live is None else live
        self.result = self._partials[-1]
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """Items from now on; at most `capacity`, else ValueError."""
        if not 0 <= count <= self.capacity:
            raise ValueError(f"reduce of {count} items, made for {self.capacity}")
        self._groups = []
        for parameters in self._parameters:
            self.device.write(parameters, np.array([count, self.operation, 0, 0], np.uint32))
            count = max(1, tile_count(count))
            self._groups.append(count)

    def encode(self, scope: Any, values: Any) -> None:
        """Reduces `values`, which stay as they are."""
        source, live = values, self._live
        for parameters, groups, partials in zip(
            self._parameters, self._groups, self._partials, strict=True
        ):
            buffers = {
                "parameters": parameters,
                "live": live,
                "values": source,
                "partials": partials,
            }
            self.stage.dispatch(scope, buffers, groups)
            source, live = partials, self._no_limit
