"""What a pass is: a named step of a frame that says what it reads and writes.

A pass only encodes. It never submits, maps, waits or prints; timestamps, labels and order checks
live in `Frame`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.gpu.stage import Stage

Resources = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pass:
    """One timed step. `name` is a path such as "traverse/reflection/0".

    `encode(encoder, resources)` gets the compute or render pass encoder that `Frame` began.
    A render pass gives `attachments(resources)`: what `begin_render_pass` takes besides the
    label and the timestamps.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    encode: Callable[[Any, Resources], None]
    attachments: Callable[[Resources], dict[str, Any]] | None = None


def stage_pass(
    name: str,
    stage: Stage,
    groups: int | tuple[int, int] | None = None,
    *,
    arguments: str | None = None,
    bind: Mapping[str, str] | None = None,
) -> Pass:
    """A pass that dispatches one stage over `groups` workgroups (a count or x, y), or over the
    group counts that an earlier pass wrote into the buffer `arguments`.

    `bind` maps a binding's name in the WGSL to the frame's resource where they differ. Reads and
    writes come from the bindings.
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

    return Pass(name, tuple(reads), writes, encode)
