"""What a pass of the frame is on the CPU."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CpuPass:
    """A pass of the frame and its twin. `bind` maps the twin's parameters, which are the
    bindings of its stage, to the frame's resources where the names differ."""

    name: str
    twin: Callable[..., Any]
    bind: Mapping[str, str] = field(default_factory=dict)

    @property
    def bindings(self) -> tuple[str, ...]:
        parameters = inspect.signature(self.twin).parameters.values()
        return tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)

    def run(self, resources: Mapping[str, Any]) -> None:
        self.twin(*(resources[self.bind.get(name, name)] for name in self.bindings))
