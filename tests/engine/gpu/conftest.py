"""A stage made from text: the shader lies in the test's own folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.gpu.stage import Stage


@pytest.fixture
def wgsl(tmp_path: Path) -> Callable[[str, str], str]:
    """wgsl(text, name) writes a shader and gives the path that `compose` takes."""

    def write(text: str, name: str = "shader.wgsl") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def stage(device: Any, wgsl: Callable[..., str]) -> Callable[..., Stage]:
    """stage(text, **settings): a Stage of that text."""

    def make(text: str, **settings: Any) -> Stage:
        return Stage(device, "test", wgsl(text), **settings)

    return make
