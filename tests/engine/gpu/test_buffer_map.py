"""The callback that all mappings of buffers share."""

import sys
from typing import Any

import pytest
from wgpu.backends.wgpu_native import ffi

from engine.gpu import buffer_map


def test_it_may_be_called_when_the_module_has_lost_its_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As at the end of Python, when the last device lets go of its buffers."""
    told = buffer_map._make_callback()
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    monkeypatch.setattr(buffer_map, "_pending", None)
    told(1, ffi.new("WGPUStringView *")[0], ffi.cast("void *", 10**6), ffi.NULL)
    assert not ignored
