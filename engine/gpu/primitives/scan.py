"""Exclusive prefix sum of u32, in place: reduce, then scan.

Up: one sum a tile, level by level, until one tile is left. Down: every tile is scanned from the
scanned sum of the tiles before it. Each level is read twice and written once, and no workgroup
waits for another, so that the order in which workgroups run does not matter (Merrill and Grimshaw
2009, "Parallel scan for stream architectures", reduce-then-scan). Sums wrap at 2^32.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.primitives.reduce import TILE, make_reduce_stage, no_limit, tile_count
from engine.gpu.stage import Stage

U32 = NDArray[np.uint32]


def scan(parameters: U32, live: U32, offsets: U32, values: U32) -> None:
    """Twin of scan.wgsl: `values[:count]` becomes its exclusive scan, tile by tile, each from
    `offsets[tile]` (from 0 where `parameters` say that there are none). `parameters` are count,
    1 if `offsets` are used, 0, 0."""
    count = min(int(parameters[0]), int(live[0]))
    tiles = tile_count(count)
    padded = np.zeros((tiles, TILE), np.uint32)
    padded.reshape(-1)[:count] = values[:count]
    scanned = np.cumsum(padded, axis=1, dtype=np.uint32) - padded
    if parameters[1]:
        scanned += offsets[:tiles, None]
    values[:count] = scanned.reshape(-1)[:count]


class ExclusiveScan:
    """Scans up to `capacity` u32 in place. `total` holds the sum of all of them in its first word
    after `encode` where `with_total` asked for it. `live`: see `reduce`."""

    def __init__(
        self, device: Device, capacity: int, *, with_total: bool = False, live: Any = None
    ) -> None:
        self.device = device
        self.capacity = capacity
        self.with_total = with_total
        self.reduce = make_reduce_stage(device)
        self.scan = Stage(device, "scan", "engine/gpu/primitives/shaders/scan.wgsl", twin=scan)
        sizes = [max(1, tile_count(capacity))]
        while sizes[-1] > 1:
            sizes.append(tile_count(sizes[-1]))
        self._sums = [device.buffer("scan/sums", 4 * size) for size in sizes]
        self._parameters = [
            [device.buffer("scan/parameters", 16, "UNIFORM|COPY_DST") for _ in sizes]
            for _ in ("reduce", "scan")
        ]
        self.total = self._sums[-1]
        self._no_offsets = device.buffer("scan/no offsets", 4)
        self._no_limit = no_limit(device)
        self._live = self._no_limit if live is None else live
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """Items from now on; at most `capacity`, else ValueError."""
        if not 0 <= count <= self.capacity:
            raise ValueError(f"scan of {count} items, made for {self.capacity}")
        self._tiles = []
        last = len(self._sums) - 1
        for level, (up, down) in enumerate(zip(*self._parameters, strict=True)):
            self.device.write(up, np.array([count, 0, 0, 0], np.uint32))
            self.device.write(down, np.array([count, level < last, 0, 0], np.uint32))
            count = tile_count(count)
            self._tiles.append(count)
            count = max(1, count)

    def encode(self, scope: Any, values: Any) -> None:
        """Replaces `values[:count]` by their exclusive scan."""
        levels = [values, *self._sums]
        live = [self._live, *(self._no_limit for _ in self._sums)]
        last = len(self._sums) - 1
        for level in range(last + 1 if self.with_total else last):
            buffers = {
                "parameters": self._parameters[0][level],
                "live": live[level],
                "values": levels[level],
                "partials": levels[level + 1],
            }
            self.reduce.dispatch(scope, buffers, max(1, self._tiles[level]))
        for level in range(last, -1, -1):
            buffers = {
                "parameters": self._parameters[1][level],
                "live": live[level],
                "offsets": levels[level + 1] if level < last else self._no_offsets,
                "values": levels[level],
            }
            self.scan.dispatch(scope, buffers, self._tiles[level])
