"""A small GLB writer of its own, so that the importer is not tested against its own library."""

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

_CODES = {"i1": 5120, "u1": 5121, "i2": 5122, "u2": 5123, "u4": 5125, "f4": 5126}
_TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}


class Glb:
    """A glTF document that grows by calls and is written with struct and json alone."""

    def __init__(self) -> None:
        self.json: dict[str, Any] = {
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": []}],
            "buffers": [{"byteLength": 0}],
        }
        self.blob = bytearray()

    def add(self, kind: str, item: dict[str, Any]) -> int:
        self.json.setdefault(kind, []).append(item)
        return len(self.json[kind]) - 1

    def view(self, data: bytes, **extra: Any) -> int:
        self.blob += bytes(-len(self.blob) % 4)
        start = len(self.blob)
        self.blob += data
        view = {"buffer": 0, "byteOffset": start, "byteLength": len(data), **extra}
        return self.add("bufferViews", view)

    def accessor(self, values: Any, dtype: str = "f4", **extra: Any) -> int:
        array = np.asarray(values).astype("<" + dtype)
        array = array.reshape(len(array), -1)
        item = {
            "bufferView": self.view(array.tobytes()),
            "componentType": _CODES[dtype],
            "type": _TYPES[array.shape[1]],
            "count": len(array),
            **extra,
        }
        return self.add("accessors", item)

    def primitive(self, positions: Any, indices: Any = None, **attributes: int) -> dict[str, Any]:
        item: dict[str, Any] = {
            "attributes": {"POSITION": self.accessor(positions), **attributes},
        }
        if indices is not None:
            item["indices"] = self.accessor(np.asarray(indices).reshape(-1), "u2")
        return item

    def mesh(self, *primitives: dict[str, Any], **extra: Any) -> int:
        return self.add("meshes", {"primitives": list(primitives), **extra})

    def node(self, root: bool = True, **item: Any) -> int:
        index = self.add("nodes", item)
        if root:
            self.json["scenes"][0]["nodes"].append(index)
        return index

    def image(self, pixels: Any, kind: str = "png") -> int:
        data = io.BytesIO()
        Image.fromarray(np.asarray(pixels, np.uint8)).save(data, kind)
        return self.add(
            "images", {"bufferView": self.view(data.getvalue()), "mimeType": f"image/{kind}"}
        )

    def data(self) -> bytes:
        document = {**self.json, "buffers": [{"byteLength": len(self.blob)}]}
        text = json.dumps(document).encode()
        text += b" " * (-len(text) % 4)
        blob = bytes(self.blob) + bytes(-len(self.blob) % 4)
        length = 12 + 8 + len(text) + 8 + len(blob)
        head = struct.pack("<4sII", b"glTF", 2, length)
        return (
            head
            + struct.pack("<I4s", len(text), b"JSON")
            + text
            + struct.pack("<I4s", len(blob), b"BIN\0")
            + blob
        )


CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)


@pytest.fixture
def glb() -> Glb:
    """An empty document."""
    return Glb()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a document or bytes into the test's folder and gives the path."""

    def writer(content: Glb | bytes | str, name: str = "scene.glb") -> Path:
        path = tmp_path / name
        if isinstance(content, Glb):
            content = content.data()
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return writer


@pytest.fixture
def corners() -> np.ndarray:
    """One triangle [3, 3]."""
    return CORNERS.copy()


@pytest.fixture
def scene_file(tmp_path: Path, glb: Glb, corners: np.ndarray) -> Callable[..., Path]:
    """Writes a .toml beside a model `one.glb` of one triangle and gives its path."""
    if not (tmp_path / "one.glb").exists():
        glb.node(mesh=glb.mesh(glb.primitive(corners), name="tri"), name="node")
        (tmp_path / "one.glb").write_bytes(glb.data())

    def writer(text: str, name: str = "scene.toml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return writer
