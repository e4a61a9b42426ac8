"""What the scene tests share: files that they write, and a model of one triangle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a document or bytes into the test's folder and gives the path."""

    def writer(content: Any, name: str = "scene.glb") -> Path:
        path = tmp_path / name
        if not isinstance(content, bytes | str):
            content = content.data()  # a `glb` document
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return writer


@pytest.fixture
def corners() -> np.ndarray:
    """One triangle [3, 3]."""
    return CORNERS.copy()


@pytest.fixture
def scene_file(tmp_path: Path, glb: Any, corners: np.ndarray) -> Callable[..., Path]:
    """Writes a .toml beside a model `one.glb` of one triangle and gives its path."""
    if not (tmp_path / "one.glb").exists():
        glb.node(mesh=glb.mesh(glb.primitive(corners), name="tri"), name="node")
        (tmp_path / "one.glb").write_bytes(glb.data())

    def writer(text: str, name: str = "scene.toml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return writer
