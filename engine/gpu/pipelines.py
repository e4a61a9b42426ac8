"""The device's live pipelines: made once for what they are made of, kept while somebody uses them,
and the most recently used ones after that.

On some drivers every kernel in the process slows down, to a third and less, once 55 to 90 compute
pipelines that hold a private stack are alive; pipelines without one do no harm there. So both kinds
are bounded, those with a stack tightly. One that is in use is never dropped: `live` and
`live_stacks` count those, too.
"""

import json
import re
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.gpu.faults import works_around
from engine.gpu.shader import ComposedShader, Composer, ShaderError

LIVE_STACKS = 32  # a frame has two or three traversal kernels; 55 were seen to slow a GPU down
LIVE_PIPELINES = 192  # a frame has 12, a builder on the GPU 40 to 60
# A CPU driver compiles into the process's memory, a traversal kernel into 6 to 17 MiB: timed and
# counted frames and what they were switched from.
LIVE_ON_CPU = 96
_STACK = re.compile(r"\bvar(?:<private>)?\s+\w*stack\w*\s*:\s*array<")


class Pipeline:
    """One use of a pipeline: whoever holds this keeps `native`, wgpu's object, alive."""

    __slots__ = ("__weakref__", "native")

    def __init__(self, native: Any) -> None:
        self.native = native


@dataclass(slots=True)
class _Entry:
    native: Any
    holds_stack: bool
    use: weakref.ReferenceType[Pipeline]


class PipelineCache:
    """`made` counts the pipelines that were compiled. `device` is wgpu's, `on_cpu` whether a CPU
    driver's; what compiling takes is added to the composer's `compile_ms`."""

    def __init__(self, device: Any, composer: Composer, on_cpu: bool = False) -> None:
        self.device = device
        self.on_cpu = on_cpu
        self.composer = composer
        self.made = 0
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()  # oldest use first
        self._lock = threading.RLock()  # of the entries: a viewer compiles in a thread

    @property
    def limit(self) -> int:
        """How many are kept; those in use may be more."""
        return min(LIVE_PIPELINES, LIVE_ON_CPU) if self.on_cpu else LIVE_PIPELINES

    @property
    def live(self) -> int:
        """Pipelines that exist, in use or kept."""
        return len(self._entries)

    @property
    def live_stacks(self) -> int:
        """Those whose kernels hold a private stack."""
        with self._lock:
            return sum(entry.holds_stack for entry in self._entries.values())

    def compute(
        self,
        name: str,
        shader: ComposedShader,
        layout: Any,
        constants: Mapping[str, float] | None = None,
        trusted: bool = False,
    ) -> Pipeline:
        """The compute pipeline of `shader`'s `main` with these override constants. `layout` is the
        bind group layout that the shader's text asks for. ShaderError names the source line."""
        values = dict(constants or {})

        def make(module: Any) -> Any:
            stage = {"module": module, "entry_point": "main", "constants": values}
            return self.device.create_compute_pipeline(
                label=name, layout=self._layout(layout), compute=stage
            )

        key = (shader.code, trusted, tuple(sorted(values.items())))
        return self._get(key, name, shader, trusted, make)

    def render(
        self, name: str, shader: ComposedShader, layout: Any, settings: Mapping[str, Any]
    ) -> Pipeline:
        """The render pipeline of `settings`: what `create_render_pipeline` takes (plain data),
        with no module in its `vertex` and `fragment`, which are entry points of `shader`; one that
        only draws depth may have no `fragment`."""

        def make(module: Any) -> Any:
            stages = {
                stage: {"module": module, **settings[stage]}
                for stage in ("vertex", "fragment")
                if stage in settings
            }
            return self.device.create_render_pipeline(
                label=name, layout=self._layout(layout), **{**settings, **stages}
            )

        key = (shader.code, json.dumps(settings, sort_keys=True))
        return self._get(key, name, shader, False, make)

    def _layout(self, group: Any) -> Any:
        return self.device.create_pipeline_layout(bind_group_layouts=[group])

    def _get(
        self, key: Hashable, name: str, shader: ComposedShader, trusted: bool, make: Any
    ) -> Pipeline:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                use = entry.use() or Pipeline(entry.native)
                entry.use = weakref.ref(use)
                return use
        module = self.composer.compile(self.device, shader, trusted)
        start = time.perf_counter()
        try:
            native = make(module)
        except Exception as error:
            raise ShaderError(f"{name} ({shader.name}): {error}") from error
        self.composer.compile_ms += 1e3 * (time.perf_counter() - start)
        use = Pipeline(native)
        holds_stack = _STACK.search(shader.code) is not None
        with self._lock:
            self.made += 1
            self._entries[key] = _Entry(native, holds_stack, weakref.ref(use))
            self._drop()
        return use

    def _drop(self) -> None:
        """Drops what nobody uses, longest unused first, until both numbers are kept."""
        live, stacks = self.live, self.live_stacks
        most = self.limit
        most_stacks = LIVE_STACKS if works_around("live-stacks") else most
        for key, entry in list(self._entries.items()):
            if live <= most and stacks <= most_stacks:
                return
            over = live > most or (entry.holds_stack and stacks > most_stacks)
            if over and entry.use() is None:
                del self._entries[key]
                live -= 1
                stacks -= entry.holds_stack
