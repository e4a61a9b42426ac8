"""Twins of the shaders that say what a path is worth."""

from collections.abc import Callable
from functools import partial
from typing import Any

from passes.twins.paths import first, later
from passes.twins.wgsl_functions import F32, Flags


def path_of(bounce: int, without_color: bool) -> Callable[[Any, Any, Any, Any], tuple[F32, Flags]]:
    """Of the `bounce`th rays of paths, 1 and on; `without_color` as sent_weight.wgsl has it."""
    if bounce > 1:
        return later.path_of
    return partial(first.path_of, without_color=without_color)
