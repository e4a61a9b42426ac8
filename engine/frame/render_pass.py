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
    groups: int | None = None,
    *,
    arguments: str | None = None,
    reads: tuple[str, ...] = (),
) -> Pass:
    """A pass that dispatches one stage over `groups` workgroups, or over the group counts that
    an earlier pass wrote into the buffer `arguments`. Reads and writes come from its bindings.
    """
    writes = tuple(
        b.name for b in stage.bindings if "read_write" in b.space or "storage_2d" in b.type
    )
    inputs = tuple(b.name for b in stage.bindings if b.name not in writes)
    # What a stage updates in place (a queue's header, a counter) it also reads.
    updated = tuple(b.name for b in stage.bindings if b.name in writes and "read_write" in b.space)
    extra = (arguments,) if arguments else ()

    def encode(encoder: Any, resources: Resources) -> None:
        if arguments:
            stage.dispatch_indirect(encoder, resources, resources[arguments])
        else:
            assert groups is not None
            stage.dispatch(encoder, resources, groups)

    return Pass(name, (*inputs, *updated, *extra, *reads), writes, encode)
