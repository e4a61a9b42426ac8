"""Fixtures that every test shares: seeded random numbers, the shared scenes, one GPU device, and a
small GLB writer of its own, so that the importer is not tested against its own library.

A missing adapter is an error here, not a skip: llvmpipe counts as one, and the set-up installs it.
"""

import io
import json
import os
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

# Before anything imports PyOpenGL: the raster oracle has no display.
os.environ.setdefault("PYOPENGL_PLATFORM", "egl")

import numpy as np
import pytest
from PIL import Image

# pyrender still reads the name that numpy 2 removed.
np.infty = np.inf  # type: ignore[attr-defined]  # noqa: NPY201

# Infinity and NaN have to be asked for with np.errstate where they are meant.
np.seterr(over="raise", invalid="raise", divide="raise", under="ignore")

# Commands that keep what they built, started here or as processes, keep it here and not with the
# user's. (XDG_CACHE_HOME would hide the drivers' compiled shaders, too.)
_CACHE = tempfile.TemporaryDirectory(prefix="treeline-cache-")
os.environ["TREELINE_CACHE"] = _CACHE.name

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that are the same on every run and different for every test."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="session")
def shared_scenes() -> Path:
    """The folder of real scenes beside the repository, which are too large to keep in it."""
    folder = ROOT.parent / "shared" / "scenes"
    if not folder.is_dir():
        pytest.skip(f"no real scenes here: {folder} does not exist")
    return folder


@pytest.fixture(scope="session")
def device() -> Any:
    """The one GPU device (and so the one pipeline cache) of the whole test session."""
    from engine.gpu.device import open_device

    return open_device()


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


@pytest.fixture
def glb() -> Glb:
    """An empty document."""
    return Glb()


@pytest.fixture(scope="session")
def new_glb() -> type[Glb]:
    """Makes an empty document, for fixtures that outlive a test."""
    return Glb
