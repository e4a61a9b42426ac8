"""A Stage is one compute dispatch with named buffers and its NumPy twin.

Bindings are read from the WGSL, so a stage is bound by name. The twin takes the same buffers, in
the order of their bindings, as NumPy arrays, and is the definition of the stage: float32 in the
shader's order of operations.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.gpu.device import STORAGE_BUFFERS_PER_STAGE, Device, fold_groups
from engine.gpu.faults import works_around
from engine.gpu.shader import ComposedShader, ShaderError, compose

MOST_GROUPS = 64  # bind groups that a stage keeps
_BINDING = re.compile(
    r"@group\(0\)\s*@binding\((?P<index>\d+)\)\s*var(?:<(?P<space>[^>]+)>)?\s+(?P<name>\w+)\s*:"
    r"\s*(?P<type>[^;]+);"
)


@dataclass(frozen=True, slots=True)
class Binding:
    """One `@group(0)` variable of a stage."""

    index: int
    name: str
    space: str
    type: str

    def layout(self, visibility: str) -> dict[str, Any]:
        """This binding's entry of a bind group layout."""
        entry: dict[str, Any] = {"binding": self.index, "visibility": visibility}
        if self.space == "uniform":
            entry["buffer"] = {"type": "uniform"}
        elif self.space.startswith("storage"):
            writable = "read_write" in self.space
            entry["buffer"] = {"type": "storage" if writable else "read-only-storage"}
        elif self.type.startswith("texture_storage_2d"):
            texel_format, access = re.findall(r"\w+", self.type)[1:3]
            entry["storage_texture"] = {"format": texel_format, "access": f"{access}-only"}
        elif self.type.startswith("texture_depth_2d"):
            entry["texture"] = {"sample_type": "depth"}
        elif self.type.startswith("texture_2d"):
            kind = {"u32": "uint", "i32": "sint", "f32": "unfilterable-float"}
            entry["texture"] = {"sample_type": kind[re.findall(r"\w+", self.type)[1]]}
        else:
            raise ShaderError(f"binding {self.name}: no rule for {self.space} {self.type}")
        if "2d_array" in self.type:
            entry["texture"]["view_dimension"] = "2d-array"
        return entry


def read_bindings(shader: ComposedShader) -> tuple[Binding, ...]:
    """The stage's bindings in the order of their indices."""
    found = [
        Binding(int(m["index"]), m["name"], m["space"] or "", m["type"].strip())
        for m in _BINDING.finditer(shader.code)
    ]
    found.sort(key=lambda b: b.index)
    if [b.index for b in found] != list(range(len(found))):
        raise ShaderError(f"{shader.name}: bindings are not numbered 0..{len(found) - 1}")
    buffers = sum(b.space.startswith("storage") for b in found)
    if buffers > STORAGE_BUFFERS_PER_STAGE and works_around("bindings-above-limit"):
        raise ShaderError(f"{shader.name}: more than {STORAGE_BUFFERS_PER_STAGE} storage buffers")
    return tuple(found)


class BindGroups:
    """Makes bind groups by name and keeps the `most` that were used last: a group keeps its
    resources alive, so that one kept for ever would keep buffers that nobody else has."""

    def __init__(
        self,
        device: Device,
        bindings: tuple[Binding, ...],
        visibility: str,
        most: int = MOST_GROUPS,
    ) -> None:
        self.device = device
        self.bindings = bindings
        self._names = tuple(b.name for b in bindings)
        self.most = most
        self.layout = device.wgpu.create_bind_group_layout(
            entries=[b.layout(visibility) for b in bindings]
        )
        self._groups: OrderedDict[tuple[int, ...], tuple[Any, list[Any]]] = OrderedDict()

    def get(self, resources: Mapping[str, Any]) -> Any:
        values = [resources[name] for name in self._names]
        key = tuple(map(id, values))
        known = self._groups.get(key)
        if known is None:
            entries = [
                {"binding": b.index, "resource": {"buffer": v} if b.space else v}
                for b, v in zip(self.bindings, values, strict=True)
            ]
            group = self.device.wgpu.create_bind_group(layout=self.layout, entries=entries)
            # The resources stay referenced: an id may be reused once its object is gone.
            known = self._groups[key] = (group, values)
            if len(self._groups) > self.most:
                self._groups.popitem(last=False)
        else:
            self._groups.move_to_end(key)
        return known[0]

    def forget(self) -> None:
        """Lets go of every resource: for stages whose resources rarely come back."""
        self._groups.clear()


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A stage over so many workgroups, bound: what it is bound to stays alive with it."""

    pipeline: Any
    group: Any
    size: tuple[int, int, int]

    def encode(self, scope: Any) -> None:
        scope.set_pipeline(self.pipeline)
        scope.set_bind_group(0, self.group)
        scope.dispatch_workgroups(*self.size)


class Stage:
    """One compute shader. `constants` are its WGSL `override`s, `slots` its composed parts. Stages
    made of the same things share a pipeline (engine/gpu/pipelines.py).

    `twin(*buffers)` runs the stage in NumPy; None where another module owns the CPU truth.
    `trusted` leaves out run-time checks: only over validated buffers.
    """

    def __init__(
        self,
        device: Device,
        name: str,
        path: str,
        *,
        slots: Mapping[str, str] | None = None,
        constants: Mapping[str, float] | None = None,
        twin: Callable[..., None] | None = None,
        trusted: bool = False,
    ) -> None:
        self.name = name
        self.twin = twin
        self.device = device
        self.shader = compose(path, slots)
        self.bindings = read_bindings(self.shader)
        self.bind_groups = BindGroups(device, self.bindings, "COMPUTE")
        self._pipeline = device.pipelines.compute(
            name, self.shader, self.bind_groups.layout, constants, trusted
        )

    def dispatch(
        self, encoder: Any, resources: Mapping[str, Any], groups: int | tuple[int, int]
    ) -> None:
        """Encodes the stage over `groups` workgroups: a count, folded into y past 65,535, or
        (x, y)."""
        if groups == 0:
            return
        self._bind(encoder, resources)
        encoder.dispatch_workgroups(*(fold_groups(groups) if isinstance(groups, int) else groups))

    def dispatch_indirect(
        self, encoder: Any, resources: Mapping[str, Any], arguments: Any, offset: int = 0
    ) -> None:
        """Encodes the stage with the group counts at `offset` of the buffer `arguments`."""
        self._bind(encoder, resources)
        encoder.dispatch_workgroups_indirect(arguments, offset)

    def prepare(self, resources: Mapping[str, Any], groups: int | tuple[int, int]) -> "Dispatch":
        """What `dispatch` would encode, for a dispatch that comes again and again."""
        size = fold_groups(groups) if isinstance(groups, int) else (*groups, 1)
        return Dispatch(self._pipeline.native, self.bind_groups.get(resources), size)

    def _bind(self, encoder: Any, resources: Mapping[str, Any]) -> None:
        encoder.set_pipeline(self._pipeline.native)
        encoder.set_bind_group(0, self.bind_groups.get(resources))

    def run_cpu(self, resources: Mapping[str, Any]) -> None:
        """Runs the twin over NumPy arrays bound by the same names."""
        if self.twin is None:
            raise ValueError(f"{self.name} has no twin")
        self.twin(*(resources[b.name] for b in self.bindings))

    def run(self, resources: Mapping[str, Any], groups: int | tuple[int, int]) -> None:
        """Dispatches once in a submission of its own (tests and one-off work)."""
        submit_pass(self.device, lambda scope: self.dispatch(scope, resources, groups))


def submit_pass(device: Device, *encodes: Callable[[Any], None], label: str = "compute") -> None:
    """Submits one compute pass into which `encodes` put their dispatches, in order."""
    encoder = device.wgpu.create_command_encoder(label=label)
    scope = encoder.begin_compute_pass(label=label)
    for encode in encodes:
        encode(scope)
    scope.end()
    device.wgpu.queue.submit([encoder.finish()])
