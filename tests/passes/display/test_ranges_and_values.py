"""Automatic ranges leave single pixels out; ranges and the value under the cursor come back without
a wait."""

import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passes.display import DisplayPass
from passes.display_records import BINS, DISPLAY_RANGE
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.rays import RAY_TYPES
from passes.twins.display_range_counts import bin_of
from passes.twins.display_range_resolve import bin_end
from tests.passes.display.by_twins import SIZE


def test_bins_hold_what_they_say() -> None:
    values = np.unique(np.concatenate([np.arange(5000), (1 << np.arange(5, 32)) - 1, [2**32 - 1]]))
    bins = bin_of(values)
    assert (np.diff(bins) >= 0).all() and bins[-1] == BINS - 1
    ends = np.array([bin_end(int(b)) for b in bins])
    assert (ends >= values).all() and (ends < values * (1 + 1 / 32) + 1).all()
    assert (ends[values < 64] == values[values < 64]).all()
    assert all(bin_of(bin_end(b)) == b and bin_of(bin_end(b) + 1) == b + 1 for b in range(BINS - 1))


def test_the_automatic_range_ignores_single_pixels(
    device: Any, display: DisplayPass, frame: HybridFrame
) -> None:
    """Two pixels of 5,063 stand out: one of 1,000 may. But where nearly all are 0, the range is
    the rest's."""
    ray = RAY_TYPES[1]
    plane = np.full(SIZE[0] * SIZE[1] * ray.slots_per_pixel, 10, np.uint32)
    plane[[5, 700]] = 100_000
    buffer = frame.data.resources[ray.slot_counts]
    before = device.read(buffer, np.uint32)
    device.write(buffer, plane)
    display.show(frame, "nodes/shadow")
    high = device.read(display._range, DISPLAY_RANGE.dtype, count=1)[0]["high"]
    assert high == 20  # 10 in each of a pixel's two slots
    rare = before.copy()
    rare[3 * len(plane) : 4 * len(plane)] = np.arange(len(plane)) == 700
    device.write(buffer, 7 * rare)
    display.show(frame, "any_hits/shadow")
    high = device.read(display._range, DISPLAY_RANGE.dtype, count=1)[0]["high"]
    device.write(buffer, before)
    assert high == 7


def wait_for(found: Callable[[], Any]) -> Any:
    for _ in range(500):
        if (answer := found()) is not None:
            return answer
        time.sleep(0.01)
    raise AssertionError("nothing arrived within 5 s")


def test_ranges_and_values_arrive_without_a_wait(
    device: Any, frame: HybridFrame, other: HybridFrame
) -> None:
    display = DisplayPass(device, *SIZE)
    waits = device.forced_waits
    assert display.auto_range("nodes/shadow") is None and display.value() is None
    assert display.auto_range("roughness") == (0.0, 1.0)
    display.show(frame, "nodes/shadow", cursor=(20, 30))
    low, high = wait_for(lambda: display.auto_range("nodes/shadow"))
    assert device.forced_waits == waits
    counts = frame.aov("nodes/shadow")
    sent = counts[counts > 0]
    assert low == 0 and np.percentile(sent, 99.8) <= high <= counts.max()
    assert display.maximum("nodes/shadow") == counts.max()
    value = wait_for(display.value)
    assert (value.pixel, value.output) == ((20, 30), "nodes/shadow")
    assert value.text == f"{counts[30, 20]} nodes" and counts[30, 20] > 0
    kept = display.keep(other, "nodes/shadow")
    display.show(frame, "nodes/shadow", baseline=kept, cursor=(20, 30))
    low, high = wait_for(lambda: display.auto_range("nodes/shadow", difference=True))
    known = display.auto_range("nodes/shadow")
    assert low == -high < 0 and known is not None and known[0] == 0
    was = other.aov("nodes/shadow")[30, 20]
    change = int(counts[30, 20]) - int(was)
    assert display.value().text == f"{change:+} nodes ({counts[30, 20]}, was {was})"


def test_values_are_told_with_their_unit(display: DisplayPass, frame: HybridFrame) -> None:
    scene = frame.scene.prepared.scene
    objects = frame.aov("object")
    depth, normal = frame.aov("depth"), frame.aov("normal")
    y, x = np.argwhere(objects == 2)[3].tolist()

    def read(name: str) -> str:
        display.show(frame, name)
        return display.read_value(frame, name, x, y)

    assert read("object") == scene.instances[2].name
    assert read("material") == scene.materials[frame.aov("material")[y, x]].name
    assert read("depth") == f"{depth[y, x]:.4g} m"
    assert read("normal") == " ".join(f"{c:.2f}" for c in normal[y, x])
    assert read("primitive") == f"triangle {frame.aov('primitive')[y, x]}"
    assert read("roughness") == f"{frame.aov('roughness')[y, x]:.2f}"
    assert read("picture") == "rgb " + " ".join(map(str, frame.image()[y, x]))
    slots = frame.data.read_slot_counts(RAY_TYPES[1], "stack_max").reshape(-1, 2)
    y, x = divmod(int(slots.min(axis=1).argmax()), SIZE[0])
    stack = frame.aov("stack_max/shadow")[y, x]
    assert read("stack_max/shadow") == f"{stack} entries" and slots[y * SIZE[0] + x].min() > 0
    y, x = np.argwhere(frame.aov("nodes/reflection") == 0)[7].tolist()
    assert read("any_hits/reflection") == "no reflection ray"
    calls = frame.aov("any_hits/reflection")
    y, x = np.argwhere((frame.aov("nodes/reflection") > 0) & (calls == 0))[7].tolist()
    assert read("any_hits/reflection") == "0 calls"
    with pytest.raises(ValueError, match="pixel 83,0 lies outside 83x61"):
        display.read_value(frame, "depth", 83, 0)


def test_an_old_frame_is_let_go(device: Any, room: Any) -> None:
    """A display that outlives frames must not keep their buffers."""
    display = DisplayPass(device, 16, 8)
    gone = []
    for _ in range(3):
        frame = HybridFrame(device, room, FrameOptions(16, 8, gbuffer="rays"))
        frame.run()
        display.show(frame, "picture")
        display.show(frame, "depth", cursor=(3, 3))
        wait_for(display.value)
        gone.append(weakref.ref(frame.data.resources["picture"]))
    del frame
    gc.collect()
    assert [ref() is None for ref in gone] == [True, True, False]
