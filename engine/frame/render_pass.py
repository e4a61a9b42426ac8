"""What a pass is: a named step of a frame that says what it reads and writes.

A pass only encodes. It never submits, maps, waits or prints; timestamps, labels and order checks
live in `Frame`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.gpu.device import WORKGROUPS_PER_DIMENSION
from engine.gpu.stage import Stage

Resources = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """How a pass is encoded a part at a time, for frames that have to give way to something else
    (`Frame.steps`). Its units are what can be told apart: rows of tiles, workgroups, triangles.

    `units(resources)` counts them; it may read back. `encode(encoder, resources, first, count)`
    encodes `count` from `first` on, at most `most`. A dispatch has no first workgroup in WebGPU, so
    the kernel finds `words(first)` at `at`, a resource and a byte, while that part runs; at other
    times the words there are zero.
    """

    units: Callable[[Resources], int]
    encode: Callable[[Any, Resources, int, int], None]
    words: Callable[[int], tuple[int, ...]]
    at: tuple[str, int]
    most: int = 1 << 31


@dataclass(frozen=True, slots=True)
class Pass:
    """One timed step. `name` is a path such as "traverse/reflection/0".

    `encode(encoder, resources)` gets the compute or render pass encoder that `Frame` began.
    A render pass gives `attachments(resources)`: what `begin_render_pass` takes besides the
    label and the timestamps. One without `parts` is always encoded whole.

    `kept` names a resource, an `engine.frame.kept.Kept`: where that says that what the pass wrote
    in an earlier frame still stands, the frame leaves the pass out and says so
    (`FrameTimes.reused`). Whatever else writes what the pass writes has to know the same.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    encode: Callable[[Any, Resources], None]
    attachments: Callable[[Resources], dict[str, Any]] | None = None
    parts: Parts | None = None
    kept: str = ""


def stage_pass(
    name: str,
    stage: Stage,
    groups: int | tuple[int, int] | None = None,
    *,
    arguments: str | None = None,
    bind: Mapping[str, str] | None = None,
    first_unit: tuple[str, int] | None = None,
    kept: str = "",
) -> Pass:
    """A pass that dispatches one stage over `groups` workgroups (a count or x, y), or over the
    group counts that an earlier pass wrote into the buffer `arguments`.

    `bind` maps a binding's name in the WGSL to the frame's resource where they differ. Reads and
    writes come from the bindings. `first_unit` names the u32 (resource, byte) to which the kernel
    adds its row of groups (where `groups` is x, y) or its flat group: then the pass has parts.
    """
    renamed = {b.name: (bind or {}).get(b.name, b.name) for b in stage.bindings}
    writable = [b for b in stage.bindings if "read_write" in b.space or "storage_2d" in b.type]
    writes = tuple(renamed[b.name] for b in writable)
    # What a stage updates in place (a queue's header, a counter) it also reads.
    reads = [renamed[b.name] for b in stage.bindings if "storage_2d" not in b.type]
    if arguments:
        reads.append(arguments)

    def encode(encoder: Any, resources: Resources) -> None:
        bound = {inner: resources[outer] for inner, outer in renamed.items()}
        if arguments:
            stage.dispatch_indirect(encoder, bound, resources[arguments])
        else:
            assert groups is not None
            stage.dispatch(encoder, bound, groups)

    def units(resources: Resources) -> int:
        if arguments:
            x, y, _ = stage.device.read(resources[arguments], np.uint32, count=3).tolist()
            return int(x * y)
        assert groups is not None
        return groups if isinstance(groups, int) else groups[1]

    def encode_part(encoder: Any, resources: Resources, first: int, count: int) -> None:
        bound = {inner: resources[outer] for inner, outer in renamed.items()}
        stage.dispatch(encoder, bound, (groups[0], count) if isinstance(groups, tuple) else count)

    parts = None
    if first_unit is not None:
        # More would be folded into rows, of which the last may reach into the next part.
        most = WORKGROUPS_PER_DIMENSION
        parts = Parts(units, encode_part, lambda first: (first,), first_unit, most)
    return Pass(name, tuple(reads), writes, encode, parts=parts, kept=kept)
