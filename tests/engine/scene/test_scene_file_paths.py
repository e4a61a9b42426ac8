"""Which files a scene file may name, where they are found, and what its hash covers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.asset_folders import AssetFolders, asset_folders
from engine.scene.load import load_scene

ONE = '[files]\none = "one.glb"\n[[objects]]\nfile = "one"\n'


def test_the_hash_covers_the_scene_file_and_all_its_models(scene_file: Any, tmp_path: Path) -> None:
    text = '[files]\na = "one.glb"\nb = "two.gltf"\n[[objects]]\nfile = "a"\n'
    buffer = np.arange(9, dtype="<f4").tobytes()
    document = (
        '{"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],'
        '"meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "accessors": ['
        '{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": 3}], "bufferViews": ['
        '{"buffer": 0, "byteLength": 36}], "buffers": [{"byteLength": 36, "uri": "two.bin"}]}'
    )
    (tmp_path / "two.gltf").write_text(document)
    (tmp_path / "two.bin").write_bytes(buffer)
    path = scene_file(text)
    hashes = [load_scene(path).sha256]
    assert load_scene(path).sha256 == hashes[0] and len(hashes[0]) == 64
    for change in (
        lambda: (tmp_path / "two.bin").write_bytes(buffer[:-1] + b"\x42"),
        lambda: (tmp_path / "two.gltf").write_text(document + " "),
        lambda: path.write_text(text + "# one more"),
        lambda: (tmp_path / "one.glb").write_bytes(
            (tmp_path / "one.glb").read_bytes().replace(b'"tri"', b'"try"')
        ),
    ):
        change()
        hashes.append(load_scene(path).sha256)
    assert len(set(hashes)) == 5


def test_asset_folders_are_searched_and_named(scene_file: Any, tmp_path: Path) -> None:
    models = tmp_path / "models" / "deep"
    models.mkdir(parents=True)
    (models / "far.glb").write_bytes((tmp_path / "one.glb").read_bytes())
    text = '[files]\na = "deep/far.glb"\nb = "kit:far.glb"\n[[objects]]\nfile = "a"\n'
    folders = asset_folders([str(tmp_path / "models"), f"kit={models}"])
    assert load_scene(scene_file(text), folders).triangle_count == 1
    with pytest.raises(UserError, match=r"files\.b is 'kit:\.\.\.'.*--assets kit=FOLDER"):
        load_scene(scene_file(text), asset_folders([str(tmp_path / "models")]))
    with pytest.raises(UserError, match=r"files\.a is 'deep/far.glb', and there is no such file"):
        load_scene(scene_file(text))
    with pytest.raises(UserError, match=r"--assets kit=gone: gone is no folder"):
        asset_folders(["kit=gone"])


@pytest.mark.parametrize("way", ["../one.glb", "absolute", "link.glb", "sub/../../one.glb"])
def test_paths_stay_inside_unless_a_flag_allows_more(
    scene_file: Any, tmp_path: Path, way: str
) -> None:
    inner = tmp_path / "inner"
    (inner / "sub").mkdir(parents=True)
    (inner / "link.glb").symlink_to(tmp_path / "one.glb")
    text = str(tmp_path / "one.glb") if way == "absolute" else way
    path = scene_file(ONE.replace("one.glb", text), "inner/scene.toml")
    with pytest.raises(
        UserError, match=r"files\.one refers to .*outside of.*--allow-outs"
    ) as caught:
        load_scene(path)
    assert caught.value.exit_code == 2
    assert load_scene(path, AssetFolders(allow_outside=True)).triangle_count == 1
    # an asset folder makes the same file an inner one, by whatever way
    assert load_scene(path, AssetFolders(searched=(tmp_path,))).triangle_count == 1


@pytest.mark.parametrize("kind", ["gltf", "obj"])
def test_what_a_model_refers_to_stays_inside_too(
    scene_file: Any, tmp_path: Path, kind: str
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    if kind == "gltf":
        (inner / "out.gltf").write_text(
            '{"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],'
            '"meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "accessors": [{'
            '"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": 3}], "bufferViews":'
            '[{"buffer": 0, "byteLength": 36}], "buffers": [{"byteLength": 36, "uri": "../x"}]}'
        )
        (tmp_path / "x").write_bytes(np.arange(9, dtype="<f4").tobytes())
    else:
        (inner / "out.obj").write_text(
            "mtllib ../x.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
        )
        (tmp_path / "x.mtl").write_text("newmtl red\nKd 1 0 0\n")
    path = scene_file(f'[files]\no = "out.{kind}"\n[[objects]]\nfile = "o"\n', "inner/scene.toml")
    with pytest.raises(UserError, match=r"out\..*: refers to \.\./x.*outside of.*--allow-outside"):
        load_scene(path)
    assert load_scene(path, AssetFolders(allow_outside=True)).triangle_count == 1
