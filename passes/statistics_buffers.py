"""Where a frame's statistics lie on the GPU, and how they come back: packed into one block of
bytes, waited for (`read`) or through a ring (`copies`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.counters import table_words
from bvh.gpu.encode_records import ENCODE_SUMMARY
from engine.gpu.compute_scope import ComputePasses
from engine.gpu.stage import Stage
from passes.frame_data import FrameData
from passes.node_histogram import BINS, groups
from passes.queue import QUEUE_HEADER
from passes.rays import RayType
from passes.screen_counts import SCREEN_COUNTS
from passes.sorting import filled_queue
from passes.twins.node_histogram import node_histogram

_HEADER_FIELDS = [field.name for field in QUEUE_HEADER.fields]  # a word each


@dataclass(frozen=True, slots=True)
class _Item:
    """The first `count` of a resource."""

    name: str
    dtype: np.dtype[Any]
    count: int

    @property
    def size(self) -> int:
        return self.dtype.itemsize * self.count


def counted_items(ray: RayType, objects: int) -> list[_Item]:
    """What a counted frame of so many objects keeps of a ray type."""
    word = np.dtype(np.uint32)
    return [
        _Item(f"{ray.name}_counters", word, table_words(objects)),
        _Item(f"{ray.name}_node_histogram", word, BINS),
    ]


class StatisticsLayout:
    """Where what lies in a frame's packed statistics, `size` bytes of them."""

    def __init__(self, items: Sequence[_Item]) -> None:
        self.items = tuple(items)
        self.size = sum(item.size for item in items)
        self._troubles = _trouble_words(items)

    def unpack(self, packed: bytes) -> dict[str, NDArray[Any]]:
        """Item by name out of the copied bytes."""
        found, offset = {}, 0
        for item in self.items:
            found[item.name] = np.frombuffer(packed, item.dtype, item.count, offset)
            offset += item.size
        return found

    def troubled(self, packed: bytes) -> bool:
        """Whether a queue dropped anything or a traversal failed."""
        words = memoryview(packed).cast("I")
        return any(words[place] for place in self._troubles)


def _trouble_words(items: Sequence[_Item]) -> list[int]:
    """The words that are 0 in a frame that can be trusted."""
    words, offset = [], 0
    for item in items:
        if item.dtype == QUEUE_HEADER.dtype:
            words += [offset // 4 + _HEADER_FIELDS.index(name) for name in ("dropped", "failed")]
        elif item.name == "primary_failed":
            words.append(offset // 4)
        offset += item.size
    return words


class StatisticsBuffers:
    """Of one frame. `encode` comes after its passes; it belongs to no pass and is not timed."""

    def __init__(self, data: FrameData) -> None:
        self.data = data
        word = np.dtype(np.uint32)
        items = [_Item("primary_failed", word, 1)]
        for ray in data.rays:
            # Of a queue that is sorted, the one that was filled knows what did not fit: nothing is
            # copied where no ray had room.
            filled = filled_queue(data.options, ray)
            for queue in dict.fromkeys((ray.queue, filled, *data.candidate_queues(ray))):
                items.append(_Item(queue, QUEUE_HEADER.dtype, 1))
            if data.options.count:
                items += counted_items(ray, len(data.objects))
        if data.options.count and data.options.reflections == "screen":
            items.append(_Item("screen_counts", SCREEN_COUNTS.dtype, 1))
        moving = data.scene.moving
        builds = moving.deforming if moving and data.options.update != "refit" else 0
        self.builds = [_Item(f"build/{i}", ENCODE_SUMMARY.dtype, 1) for i in range(builds)]
        self.layout = StatisticsLayout([*items, *self.builds])
        self._packed: Any = None
        self._passes = ComputePasses()
        self._histograms = [(ray, self._histogram(ray)) for ray in data.rays if data.options.count]

    def _histogram(self, ray: RayType) -> Stage:
        return Stage(
            self.data.device,
            f"node_histogram/{ray.name}",
            "passes/shaders/node_histogram.wgsl",
            constants={"SLOTS_PER_PIXEL": ray.slots_per_pixel},
            twin=node_histogram,
        )

    def encode(self, encoder: Any) -> None:
        """What has to be worked out on the GPU before it is copied."""
        if not self._histograms:
            return
        scope = self._passes.begin(encoder, "statistics")
        for ray, stage in self._histograms:
            bound = {
                "frame": self.data.resources["frame"],
                "slot_counts": self.data.resources[ray.slot_counts],
                "histogram": self.data.resources[f"{ray.name}_node_histogram"],
            }
            stage.dispatch(scope, bound, groups(self.data.pixels * ray.slots_per_pixel))
        scope.end()

    def copies(self) -> list[tuple[Any, int, int]]:
        """(buffer, offset, bytes) of every item, in the order of `StatisticsLayout.unpack`."""
        items = self.layout.items[: len(self.layout.items) - len(self.builds)]
        copies = [(self.data.resources[item.name], 0, item.size) for item in items]
        moving = self.data.scene.moving
        if moving and self.builds:
            summaries = moving.build_summaries()
            copies += [(s, 0, b.size) for s, b in zip(summaries, self.builds, strict=True)]
        return copies

    def unbuilt(self, numbers: Mapping[str, NDArray[Any]]) -> list[str]:
        """`MovingScene.unbuilt` of the unpacked statistics, of trees as they are now."""
        moving = self.data.scene.moving
        if moving is None or not self.builds:
            return []
        return moving.unbuilt([numbers[item.name][0] for item in self.builds])

    def read(self) -> dict[str, NDArray[Any]]:
        """The last frame's items; waits for them."""
        device, size = self.data.device, self.layout.size
        if self._packed is None:
            self._packed = device.buffer("statistics", size, "COPY_SRC|COPY_DST")
        encoder = device.wgpu.create_command_encoder(label="statistics")
        self.encode(encoder)
        offset = 0
        for buffer, start, count in self.copies():
            encoder.copy_buffer_to_buffer(buffer, start, self._packed, offset, count)
            offset += count
        device.wgpu.queue.submit([encoder.finish()])
        return self.layout.unpack(device.read(self._packed, np.uint8, count=size).tobytes())
