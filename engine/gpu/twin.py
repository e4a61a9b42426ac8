"""Twins without a device: builds on the CPU are made of the stages' twins alone."""

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any


def call_twin(twin: Callable[..., None], arrays: Mapping[str, Any]) -> None:
    """Runs a stage's twin over NumPy arrays; its arguments have the names of its bindings."""
    twin(*(arrays[name] for name in _bindings(twin)))


@lru_cache(maxsize=256)
def _bindings(twin: Callable[..., None]) -> tuple[str, ...]:
    """Asked thousands of times a build."""
    arguments = inspect.signature(twin).parameters.values()
    return tuple(a.name for a in arguments if a.kind == a.POSITIONAL_OR_KEYWORD)
