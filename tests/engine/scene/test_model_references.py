"""What a model of a scene file refers to (buffers, images, materials' textures) stays inside of the
folder, however its way out is written; a flag allows more."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.gpu.errors import UserError
from engine.scene.asset_folders import AssetFolders
from engine.scene.load import load_scene

WAYS = ["../x", "%2e%2e/x", "..%2fx", "sub/../../x", "up/x", "absolute"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`inner`, with a link `up` to the folder above, where x.bin and x.png lie; both have a
    neighbour of the right kind inside."""
    inner = tmp_path / "inner"
    (inner / "sub").mkdir(parents=True)
    (inner / "up").symlink_to(tmp_path)
    for place in (tmp_path, inner):
        (place / "x.bin").write_bytes(np.arange(9, dtype="<f4").tobytes())
        Image.fromarray(np.zeros((2, 2, 4), np.uint8)).save(place / "x.png")
    return inner


def place(folder: Path, model: str) -> Path:
    path = folder / "scene.toml"
    path.write_text(f'[files]\nm = "{model}"\n[[objects]]\nfile = "m"\n')
    return path


def written(folder: Path, way: str, ending: str) -> str:
    return str(folder.parent / f"x{ending}") if way == "absolute" else way + ending


def gltf(folder: Path, buffer: str, image: str) -> Path:
    document: dict[str, Any] = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "material": 0}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": 3}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "buffers": [{"byteLength": 36, "uri": buffer}],
        "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        "textures": [{"source": 0}],
        "images": [{"uri": image}],
    }
    (folder / "model.gltf").write_text(json.dumps(document))
    return place(folder, "model.gltf")


def refused(path: Path) -> None:
    with pytest.raises(UserError, match=r"refers to .*outside of.*--allow-outside") as caught:
        load_scene(path)
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2
    assert load_scene(path, AssetFolders(allow_outside=True)).triangle_count == 1


def test_what_lies_beside_it_is_read(folder: Path) -> None:
    assert len(load_scene(gltf(folder, "x.bin", "sub/../x.png")).textures) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_buffer_elsewhere(folder: Path, way: str) -> None:
    refused(gltf(folder, written(folder, way, ".bin"), "x.png"))


@pytest.mark.parametrize("way", WAYS)
def test_an_image_elsewhere(folder: Path, way: str) -> None:
    refused(gltf(folder, "x.bin", written(folder, way, ".png")))


@pytest.mark.parametrize("way", ["../x", "sub/../../x", "up/x", "absolute"])
def test_a_texture_of_a_material_file_elsewhere(folder: Path, way: str) -> None:
    (folder / "m.mtl").write_text(f"newmtl a\nmap_Kd {written(folder, way, '.png')}\n")
    (folder / "model.obj").write_text(
        "mtllib m.mtl\nusemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n"
    )
    refused(place(folder, "model.obj"))


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "http://localhost/x.bin"])
def test_addresses_are_not_followed(folder: Path, uri: str) -> None:
    with pytest.raises(UserError, match="only files next to it are read"):
        load_scene(gltf(folder, uri, "x.png"), AssetFolders(allow_outside=True))
