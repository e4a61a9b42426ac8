"""Runs a primitive once in a compute pass of its own."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def in_one_pass(device: Any) -> Callable[[Callable[[Any], None]], None]:
    """in_one_pass(encode) calls `encode(scope)` within one pass and submits it."""

    def run(encode: Callable[[Any], None]) -> None:
        encoder = device.wgpu.create_command_encoder()
        scope = encoder.begin_compute_pass()
        encode(scope)
        scope.end()
        device.wgpu.queue.submit([encoder.finish()])

    return run
