"""Twins without a device: builds on the CPU are made of the stages' twins alone."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def call_twin(twin: Callable[..., None], arrays: Mapping[str, Any]) -> None:
    """Runs a stage's twin over NumPy arrays; its arguments have the names of its bindings."""
    arguments = inspect.signature(twin).parameters.values()
    twin(*(arrays[a.name] for a in arguments if a.kind == a.POSITIONAL_OR_KEYWORD))
