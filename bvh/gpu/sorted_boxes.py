"""Boxes in Morton order on the GPU: what LBVH and PLOC start from.

Scene box over those kept, grid, Morton codes, radix sort; how many boxes there are comes from
`state` on the GPU. The host's bound on it sizes the dispatches. `sort_boxes` is the same on the
CPU, made of the stages' twins.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.build_records import (
    BUILD_PARAMETERS,
    BUILD_STATE,
    SCENE_PARTIAL,
    group_count,
    key_words,
    make_parameters,
)
from bvh.gpu.morton import morton
from bvh.gpu.scene_box import grid, scene_box, tile_count
from bvh.tree import MAX_DEPTH, Bounds
from engine.gpu.device import Device
from engine.gpu.primitives.radix_sort import RadixSort, radix_sort
from engine.gpu.stage import Stage

U32 = NDArray[np.uint32]

TWINS: dict[str, Callable[..., None]] = {"scene_box": scene_box, "grid": grid, "morton": morton}


class SortedBoxes:
    """Sorts up to `capacity` boxes by codes of `grid_bits` an axis and `size_bits` of size.

    After `encode`, `payload` holds a u32 for each box kept, its index in Morton order, and `keys`
    the sorted codes; `parameters` is the uniform record that the stages were given. LimitError
    where a buffer would not fit."""

    def __init__(
        self,
        device: Device,
        capacity: int,
        grid_bits: int,
        size_bits: int,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self.device = device
        self.capacity = capacity
        self.grid_bits, self.size_bits, self.max_depth = grid_bits, size_bits, max_depth
        words = key_words(grid_bits, size_bits)
        sizes = {
            "partials": SCENE_PARTIAL.size * tile_count(capacity),
            "keys": 4 * words * capacity,
            "payload": 4 * capacity,
            "sort_count": 4,
        }
        for name, size in sizes.items():
            device.check_binding(f"sorted boxes/{name}", size)
        self.resources = {
            name: device.buffer(f"sorted boxes/{name}", size) for name, size in sizes.items()
        }
        self.parameters = device.buffer("parameters", BUILD_PARAMETERS.size, "UNIFORM|COPY_DST")
        self.resources["parameters"] = self.parameters
        self.keys, self.payload = self.resources["keys"], self.resources["payload"]
        self.sort = RadixSort(device, capacity, words, live=self.resources["sort_count"])
        self.stages = {
            name: Stage(device, name, f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in TWINS.items()
        }
        self.set_count(capacity)

    def set_count(self, count: int) -> None:
        """A bound on the boxes from now on; at most `capacity`, else ValueError."""
        self.sort.set_count(count)
        self.count = count
        record = make_parameters(count, self.grid_bits, self.size_bits, self.max_depth)
        self.device.write(self.parameters, record)

    def phases(self, inputs: dict[str, Any]) -> dict[str, Callable[[Any], None]]:
        """What a sort of `inputs` (state and boxes) encodes, in order, each into a pass."""
        return {
            "morton": partial(self._encode_codes, inputs),
            "sort": lambda scope: self.sort.encode(scope, self.keys, self.payload),
        }

    def _encode_codes(self, inputs: dict[str, Any], scope: Any) -> None:
        resources = {**self.resources, "state": inputs["state"], "boxes": inputs["boxes"]}
        self.stages["scene_box"].dispatch(scope, resources, tile_count(self.count))
        self.stages["grid"].dispatch(scope, resources, 1)
        self.stages["morton"].dispatch(scope, resources, group_count(self.count))

    def encode(self, scope: Any, inputs: dict[str, Any]) -> None:
        """Within the pass `scope`: the boxes of `inputs` sorted, the grid written to its state."""
        for encode_phase in self.phases(inputs).values():
            encode_phase(scope)


def sort_boxes(
    bounds: Bounds, grid_bits: int, size_bits: int
) -> tuple[NDArray[Any], NDArray[Any], U32, U32]:
    """(parameters, state, keys, payload) of `[n, 2, 3]` finite boxes, n > 0, as SortedBoxes
    leaves them."""
    count = len(bounds)
    boxes = np.ascontiguousarray(bounds, np.float32).reshape(-1)
    words = key_words(grid_bits, size_bits)
    parameters = make_parameters(count, grid_bits, size_bits)
    state = np.zeros(1, BUILD_STATE.dtype)
    state["kept"] = state["triangles"] = count
    partials = np.zeros(tile_count(count), SCENE_PARTIAL.dtype)
    keys = np.empty((count, words), np.uint32)
    payload = np.empty(count, np.uint32)
    scene_box(parameters, state, boxes, partials)
    grid(parameters, partials, state, np.zeros(1, np.uint32))
    morton(parameters, state, boxes, keys.reshape(-1), payload)
    keys, payload = radix_sort(keys if words == 2 else keys[:, 0], payload)
    return parameters, state, np.ascontiguousarray(keys).reshape(-1), payload
