"""Triangles to finished guest bytes on the GPU, in one compute pass and without a read-back.

Set-up, pairs, a builder's binary tree, reinsertion if asked for, order, collapse, encoding: all
buffers are allocated once for a capacity and used again by every build. How many blocks, nodes and
bytes come of it is only known on the GPU until `read`.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.blas import Blas, BuildOptions, BuildStats, check_input
from bvh.builders import find_builder
from bvh.fan_blocks import fan_table_units
from bvh.gpu.build_records import BUILD_STATE
from bvh.gpu.collapse import WIDTH, GpuCollapse
from bvh.gpu.encode import GpuEncode, most_units
from bvh.gpu.fan_encode import GpuFanEncode
from bvh.gpu.fan_near import GpuFans
from bvh.gpu.pair_records import NONE, triangle_ids
from bvh.gpu.pairing import GpuPairing
from bvh.gpu.reinsertion import GpuReinsertion
from bvh.gpu.tree_order import TreeOrder
from bvh.layout import UNIT_BYTES, UNIT_WORDS
from bvh.sah import sah_cost
from bvh.transforms.reinsertion import ReinsertionConfig
from bvh.tree import EMPTY, Tree, empty_bounds
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.gpu.stage import submit_pass

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
Mask = NDArray[np.bool_]

TRIANGLE_BYTES = 36


def refusal(options: BuildOptions) -> str:
    """Why a BLAS cannot be built on a GPU as `options` say; empty where it can."""
    chosen = find_builder(options.builder)
    if chosen.gpu is None:
        return f"the builder '{options.builder}' has nothing that runs on a GPU"
    if options.pairing != "near":
        return f"a build on the GPU pairs near triangles, not '{options.pairing}' ones"
    if chosen.gpu_split is not None and options.leaf > 2:
        return "spatial splits on the GPU take blocks of 1 or 2 triangles, not 4"
    return ""


class GpuBlasBuilder:
    """Builds a BLAS of up to `capacity` triangles. UserError for `options` that have a `refusal`;
    LimitError, before anything is allocated, where a buffer would not fit a binding.

    `output_bytes` is the room for the container: by default what no container exceeds, or the
    largest binding where that is less. A container that does not fit is refused by `read`."""

    def __init__(
        self,
        device: Device,
        capacity: int,
        options: BuildOptions,
        *,
        output_bytes: int | None = None,
    ) -> None:
        chosen = find_builder(options.builder)
        why_not = refusal(options)
        if why_not or chosen.gpu is None:
            raise UserError(why_not)
        # Before anything is allocated: the largest buffer of all that the stages need.
        largest = max(TRIANGLE_BYTES, chosen.gpu_bytes) * capacity
        device.check_binding(f"a mesh of {capacity:,} triangles", largest)
        self.device = device
        self.capacity = capacity
        self.options = options
        fans = options.leaf > 2
        pairing = GpuFans(device, capacity) if fans else GpuPairing(device, capacity, options.leaf)
        self.pairing: GpuPairing | GpuFans = pairing
        # A builder over references to blocks has more of these than there are triangles.
        self.splits = None
        most_blocks = capacity
        if chosen.gpu_split is not None:
            self.splits = chosen.gpu_split(device, capacity, chosen.config)
            most_blocks = self.splits.most_references
        self.builder = chosen.gpu(device, most_blocks, chosen.config)
        self.reinsertion = None
        if options.reinsertion:
            config = ReinsertionConfig(rounds=options.reinsertion)
            self.reinsertion = GpuReinsertion(device, most_blocks, config)
        self.order = TreeOrder(device, most_blocks)
        self.collapse = GpuCollapse(device, most_blocks, options.collapse)
        self.encoder = (GpuFanEncode if fans else GpuEncode)(device, most_blocks, options.nodes)
        if output_bytes is None:
            names = ("max-storage-buffer-binding-size", "max-buffer-size")
            limit = min(device.limits[name] for name in names)
            output_bytes = min(UNIT_BYTES * most_units(most_blocks), limit)
        self.output_units = output_bytes // UNIT_BYTES
        sizes = {
            "triangles": TRIANGLE_BYTES * capacity,
            "triangle_ids": 8 * capacity,
            "words": UNIT_BYTES * self.output_units,
            "parent_links": 4 * self.output_units,
        }
        for name, size in sizes.items():
            device.check_binding(f"blas/{name}", size)
        self.resources = {name: device.buffer(f"blas/{name}", size) for name, size in sizes.items()}
        self.geometry_count = 0

    def upload(self, triangles: F32, geometry: U32, primitive: U32, opaque: Mask) -> None:
        """The input of the next builds, as for `bvh.build.build_blas`; more triangles than the
        capacity are a ValueError."""
        triangles, geometry, primitive, opaque = check_input(triangles, geometry, primitive, opaque)
        self.pairing.set_count(len(triangles))
        self.device.write(self.resources["triangles"], triangles)
        ids = triangle_ids(geometry, primitive, opaque)
        self.device.write(self.resources["triangle_ids"], ids)
        self.geometry_count = len(opaque)
        self.encoder.set_output(0, self.output_units, len(opaque))

    def set_input(self, geometry: U32, primitive: U32, opaque: Mask) -> None:
        """Whose triangles the next builds are of, one row a triangle, where a stage of the same
        pass writes these into `resources["triangles"]` (nine words each)."""
        self.pairing.set_count(len(geometry))
        ids = triangle_ids(geometry, primitive, opaque)
        self.device.write(self.resources["triangle_ids"], ids)
        self.geometry_count = len(opaque)

    def set_output(self, words: Any, parent_links: Any, base_unit: int, units: int) -> None:
        """Containers go there from now on, in place of the builder's own buffers: at `base_unit`
        (in 64 bytes, a multiple of four), with room for so many units. After `set_input`."""
        self.resources.update(words=words, parent_links=parent_links)
        self.encoder.set_output(base_unit, units, self.geometry_count)

    def phases(self) -> dict[str, Callable[[Any], None]]:
        """What a build encodes, in order; each into a compute pass that it is given."""
        phases = dict(self.pairing.phases(self.resources))
        if self.splits:
            inputs = {**self.pairing.buffers, "triangles": self.resources["triangles"]}
            phases["splits"] = partial(self.splits.encode, inputs=inputs)
        phases.update(self.builder.phases(self._blocks))
        tree = self.builder.tree_buffers
        if self.reinsertion:
            phases["reinsertion"] = partial(self.reinsertion.encode, tree_buffers=tree)
        order = self.order.buffers
        phases["order"] = partial(self.order.encode, tree_buffers=tree, ranges=False)
        phases["collapse"] = partial(self.collapse.encode, tree_buffers=tree, order_buffers=order)
        phases["encode"] = partial(self.encoder.encode, inputs=self._encoder_inputs())
        return phases

    @property
    def _blocks(self) -> dict[str, Any]:
        """`state`, `boxes` and `blocks` that the tree is built over."""
        return self.splits.buffers if self.splits else self.pairing.buffers

    def _encoder_inputs(self) -> dict[str, Any]:
        return {
            **self.builder.tree_buffers,
            **self.order.buffers,
            **self.collapse.buffers,
            **self._blocks,
            **self.resources,
        }

    def encode(self, scope: Any) -> None:
        """The whole build of what was uploaded, within the pass `scope`."""
        for encode_phase in self.phases().values():
            encode_phase(scope)

    def build(self, triangles: F32, geometry: U32, primitive: U32, opaque: Mask) -> Blas:
        """Uploads, builds in a submission of its own and reads back."""
        self.upload(triangles, geometry, primitive, opaque)
        self.device.wait()
        started = time.perf_counter()
        submit_pass(self.device, self.encode, label="blas")
        self.device.wait()
        return self.read(build_ms=1000.0 * (time.perf_counter() - started))

    def read(self, build_ms: float = 0.0) -> Blas:
        """Reads the last build back; LimitError where the container had no room."""
        summary = self.encoder.read_summary()[0]
        units = int(summary["units"])
        words = self.device.read(self.resources["words"], count=UNIT_WORDS * units)
        parents = self.device.read(self.resources["parent_links"], count=units)
        buffers = self._blocks
        state = self.device.read(buffers["state"], BUILD_STATE.dtype, count=1)[0]
        kept = int(state["kept"])
        wide_summary = self.device.read(self.collapse.buffers["wide_summary"], count=3)
        tree = self._read_tree(int(wide_summary[0]), kept)
        boxes = self.device.read(buffers["boxes"], np.float32, count=6 * kept).reshape(-1, 2, 3)
        width = 4 if self.options.leaf > 2 else 2  # words of a block
        held = self.device.read(buffers["blocks"], count=width * kept).reshape(-1, width) != NONE
        fans = int(summary["fans"])
        stats = BuildStats(
            builder=self.options.builder,
            triangles=int(state["triangles"]),
            dropped_degenerate=int(state["degenerate"]),
            dropped_nonfinite=int(state["nonfinite"]),
            blocks=kept,
            pairs=int((held.sum(axis=1) == 2).sum()),
            nodes_fp16=int(summary["nodes_fp16"]),
            nodes_fp32=int(summary["nodes"] - summary["nodes_fp16"]),
            bytes=4 * len(words),
            fill=float((tree.children != EMPTY).sum() / len(tree.children)),
            depth=int(summary["depth"]),
            stack_bound=int(wide_summary[2]),
            sah=sah_cost(tree, boxes),
            build_ms=build_ms,
            fans=fans,
            fan_table_bytes=UNIT_BYTES * fan_table_units(kept, fans),
            duplicates=kept - int(self.device.read(self.pairing.buffers["state"], count=1)[0]),
        )
        return Blas(words, parents, stats, tree.bounds[0], self.geometry_count)

    def _read_tree(self, nodes: int, kept: int) -> Tree:
        wide = self.collapse.buffers
        children = self.device.read(wide["wide_children"], np.int32, count=WIDTH * nodes)
        places = self.device.read(wide["places"], count=nodes)
        size = 6 * max(kept - 1, 1)
        bounds = self.device.read(self.builder.tree_buffers["bounds"], np.float32, count=size)
        boxes = bounds.reshape(-1, 2, 3)[places] if kept else empty_bounds(nodes)
        return Tree(children.reshape(-1, WIDTH), boxes)
