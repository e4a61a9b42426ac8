"""LBVH on the GPU: triangles or boxes to a binary tree, all in one compute pass.

Set-up, grid, Morton codes, radix sort, hierarchy, bounds; nothing is read back between them, and
every dispatch's size follows from the number of triangles given. Scratch is allocated once for a
capacity. `bvh.builders.lbvh` is the same build made of the stages' twins.

The tree comes back to the host as a `Tree`, for the collapse and the encoder there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.builders.lbvh import LbvhConfig
from bvh.gpu.build_records import (
    BUILD_PARAMETERS,
    BUILD_STATE,
    SCENE_PARTIAL,
    group_count,
    make_parameters,
)
from bvh.gpu.hierarchy import hierarchy
from bvh.gpu.morton import morton
from bvh.gpu.range_bounds import box_pyramid, pyramid_dispatches, pyramid_sizes, range_bounds
from bvh.gpu.scene_box import grid, scene_box, tile_count
from bvh.gpu.tree_paths import ROUNDS, tree_depth, tree_paths
from bvh.gpu.tree_paths import TILE as DEPTH_TILE
from bvh.gpu.triangle_setup import triangle_setup
from bvh.tree import EMPTY, Bounds, Tree, empty_bounds
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.gpu.primitives.radix_sort import RadixSort
from engine.gpu.stage import Stage

F32 = NDArray[np.float32]

TWINS: dict[str, Callable[..., None]] = {
    "triangle_setup": triangle_setup,
    "scene_box": scene_box,
    "grid": grid,
    "morton": morton,
    "hierarchy": hierarchy,
    "tree_paths": tree_paths,
    "tree_depth": tree_depth,
    "box_pyramid": box_pyramid,
    "range_bounds": range_bounds,
}
MOST_PRIMITIVES = 1 << 30  # node indices are signed and a search doubles them


@dataclass(frozen=True, slots=True)
class GpuTree:
    """A tree whose leaves name the triangles (or boxes) that were given, without those taken out;
    `boxes [n, 2, 3]` are theirs (inverted for what was taken out)."""

    tree: Tree
    boxes: Bounds
    kept: int
    degenerate: int
    nonfinite: int


class GpuLbvh:
    """Builds over up to `capacity` triangles or boxes. LimitError where a buffer would not fit."""

    def __init__(self, device: Device, capacity: int, config: LbvhConfig | None = None) -> None:
        if capacity > MOST_PRIMITIVES:
            raise LimitError(f"{capacity:,} triangles, one build takes {MOST_PRIMITIVES:,}")
        self.device = device
        self.capacity = capacity
        self.config = config or LbvhConfig()
        words = self.config.key_words
        nodes = max(capacity - 1, 1)
        sizes = {
            "triangles": 36 * capacity,
            "boxes": 24 * capacity,
            "partials": SCENE_PARTIAL.size * tile_count(capacity),
            "state": BUILD_STATE.size,
            "keys": 4 * words * capacity,
            "payload": 4 * capacity,
            "children": 8 * nodes,
            "ranges": 8 * nodes,
            "paths": 8 * nodes,
            "longer_paths": 8 * nodes,
            "deepest": 8,
            "pyramid": 24 * sum(pyramid_sizes(capacity)),
            "bounds": 24 * nodes,
        }
        for name, size in sizes.items():
            device.check_binding(f"lbvh/{name}", size)
        self.resources = {name: device.buffer(f"lbvh/{name}", size) for name, size in sizes.items()}
        self._pyramid_parameters = [
            device.buffer("lbvh/parameters", BUILD_PARAMETERS.size, "UNIFORM|COPY_DST")
            for _ in pyramid_dispatches(capacity)
        ]
        # The first dispatch's record has level 0, which the other stages do not read.
        self.resources["parameters"] = self._pyramid_parameters[0]
        self._again = device.buffer("lbvh/parameters", BUILD_PARAMETERS.size, "UNIFORM|COPY_DST")
        self.sort = RadixSort(device, capacity, words)
        self.stages = {
            name: Stage(device, f"lbvh/{name}", f"bvh/gpu/shaders/{name}.wgsl", twin=twin)
            for name, twin in TWINS.items()
        }
        self.count = -1

    def set_count(self, count: int) -> None:
        """Triangles or boxes from now on; at most `capacity`, else ValueError."""
        self.sort.set_count(count)
        self.count = count
        config = self.config
        records = [(b, first, 0) for b, (first, _) in self._pyramid()] + [(self._again, 0, 1)]
        for buffer, first, attempt in records:
            record = make_parameters(
                count,
                config.grid_bits,
                config.size_bits,
                config.max_depth,
                level=first,
                attempt=attempt,
            )
            self.device.write(buffer, record)

    def _pyramid(self) -> list[tuple[Any, tuple[int, int]]]:
        """Parameters, first level and its boxes of each dispatch of the pyramid."""
        return list(zip(self._pyramid_parameters, pyramid_dispatches(self.count), strict=False))

    def upload_triangles(self, triangles: F32) -> None:
        """`[n, 3, 3]` float32; any value is allowed."""
        self.set_count(len(triangles))
        self.device.write(self.resources["triangles"], np.asarray(triangles, np.float32))

    def upload_boxes(self, bounds: Bounds) -> None:
        """`[n, 2, 3]` finite float32."""
        self.set_count(len(bounds))
        self.device.write(self.resources["boxes"], np.asarray(bounds, np.float32))

    def phases(self, from_triangles: bool) -> dict[str, Callable[[Any], None]]:
        """What a build encodes, in order; each into a compute pass that it is given."""
        phases: dict[str, Callable[[Any], None]] = {
            "set-up": self._encode_setup if from_triangles else self._encode_scene_box,
            "morton": lambda scope: self._encode(scope, "morton", self.count),
            "sort": lambda scope: self.sort.encode(
                scope, self.resources["keys"], self.resources["payload"]
            ),
            "hierarchy": self._encode_hierarchy,
            "bounds": self._encode_bounds,
        }
        return phases

    def _encode(self, scope: Any, name: str, items: int) -> None:
        self.stages[name].dispatch(scope, self.resources, group_count(items))

    def _encode_setup(self, scope: Any) -> None:
        self._encode(scope, "triangle_setup", self.count)
        self._encode_scene_box(scope)

    def _encode_scene_box(self, scope: Any) -> None:
        self.stages["scene_box"].dispatch(scope, self.resources, tile_count(self.count))
        self.stages["grid"].dispatch(scope, self.resources, 1)

    def _encode_hierarchy(self, scope: Any) -> None:
        nodes = max(self.count - 1, 1)
        for parameters in (self.resources["parameters"], self._again):
            resources = {**self.resources, "parameters": parameters}
            self.stages["hierarchy"].dispatch(scope, resources, group_count(nodes))
            names = ("paths", "longer_paths")
            for _ in range(ROUNDS):
                source, target = (self.resources[name] for name in names)
                resources.update(paths=source, longer_paths=target)
                self.stages["tree_paths"].dispatch(scope, resources, group_count(nodes))
                names = (names[1], names[0])
            resources["paths"] = self.resources["longer_paths"]
            self.stages["tree_depth"].dispatch(scope, resources, -(-nodes // DEPTH_TILE))

    def _encode_bounds(self, scope: Any) -> None:
        for parameters, (_, items) in self._pyramid():
            resources = {**self.resources, "parameters": parameters}
            self.stages["box_pyramid"].dispatch(scope, resources, group_count(items))
        self._encode(scope, "range_bounds", max(self.count - 1, 1))

    def encode(self, scope: Any, from_triangles: bool = True) -> None:
        """The whole build of what was uploaded, within the pass `scope`."""
        for encode_phase in self.phases(from_triangles).values():
            encode_phase(scope)

    @property
    def tree_buffers(self) -> dict[str, Any]:
        """The finished tree's buffers, for stages that go on from it."""
        names = ("state", "deepest", "children", "ranges", "bounds")
        buffers = {name: self.resources[name] for name in names}
        return {**buffers, "paths": self.resources["longer_paths"]}

    def submit(self, *encodes: Callable[[Any], None]) -> None:
        """Submits the parts in one compute pass."""
        encoder = self.device.wgpu.create_command_encoder(label="lbvh")
        scope = encoder.begin_compute_pass(label="lbvh")
        for encode in encodes:
            encode(scope)
        scope.end()
        self.device.wgpu.queue.submit([encoder.finish()])

    def build_triangles(self, triangles: F32) -> GpuTree:
        """Tree over the usable ones of `[n, 3, 3]` triangles."""
        self.upload_triangles(triangles)
        self.submit(lambda scope: self.encode(scope, from_triangles=True))
        return self.read()

    def build_boxes(self, bounds: Bounds) -> GpuTree:
        """Tree over finite boxes `[n, 2, 3]`; its tree is `bvh.builders.lbvh.build`'s."""
        self.upload_boxes(bounds)
        self.submit(lambda scope: self.encode(scope, from_triangles=False))
        return self.read()

    def read(self) -> GpuTree:
        """Reads the last build back."""
        if not self.count:
            nothing = Tree(np.full((1, 2), EMPTY, np.int32), empty_bounds(1))
            return GpuTree(nothing, empty_bounds(0), 0, 0, 0)
        state = self.device.read(self.resources["state"], BUILD_STATE.dtype, count=1)[0]
        kept = int(state["kept"])
        words = self.device.read(self.resources["children"], np.int32, count=2 * max(kept - 1, 1))
        children = np.asarray(words).reshape(-1, 2)
        bounds = self.device.read(self.resources["bounds"], np.float32, count=6 * len(children))
        boxes = self.device.read(self.resources["boxes"], np.float32, count=6 * self.count)
        return GpuTree(
            Tree(children, bounds.reshape(-1, 2, 3) if kept else empty_bounds(1)),
            boxes.reshape(-1, 2, 3),
            kept,
            int(state["degenerate"]),
            int(state["nonfinite"]),
        )
