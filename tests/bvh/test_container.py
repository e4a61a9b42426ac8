"""The header's byte table typed by hand, and the file."""

import json
import struct
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from bvh import container
from bvh.build import BuildOptions, build_blas
from bvh.header import HEADER, unpack_header
from bvh.layout import InstanceFlags
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from engine.gpu.errors import UserError


@pytest.fixture
def scene(rng: np.random.Generator) -> SceneBvh:
    triangles = rng.random((60, 3, 3)).astype(np.float32)
    triangles[0] = 0  # degenerate
    ids = np.arange(60, dtype=np.uint32)
    first = build_blas(triangles, ids % 3, ids, np.array([True, False, True]), BuildOptions())
    empty = build_blas(triangles[:0], ids[:0], ids[:0], np.ones(0, bool), BuildOptions())
    moved = np.diag([2.0, -1.0, 0.5, 1.0])
    return assemble(
        [first, empty],
        ["mesh Ω", "empty"],
        [
            BvhInstance(0, name="one"),
            BvhInstance(1),
            BvhInstance(0, moved, 0x0F, 3, 77, InstanceFlags.FLIP_FACING, "two"),
        ],
        BuildOptions(),
    )


def test_header_bytes(scene: SceneBvh) -> None:
    base = int(scene.blas_bases[0])
    raw = scene.words.tobytes()[base : base + 128]
    stats = scene.blas_stats[0]
    assert raw[0:4] == b"TBVH"
    magic, version, kind, root = struct.unpack_from("<4I", raw, 0)
    assert (magic, version, kind, root) == (0x48564254, 1, 0, 0x15)
    size, leaf_unit, fp32, fp16 = struct.unpack_from("<4I", raw, 16)
    assert size * 64 == stats.bytes
    assert leaf_unit == 2 + 2 * stats.nodes_fp32 + stats.nodes_fp16
    assert (fp32, fp16) == (stats.nodes_fp32, stats.nodes_fp16)
    leaves, primitives, geometries, depth = struct.unpack_from("<4I", raw, 32)
    assert (leaves, primitives, geometries, depth) == (stats.blocks, 59, 3, stats.depth)
    bounds = np.array(struct.unpack_from("<6f", raw, 48), np.float32)
    assert (bounds == unpack_header(scene.blas_words(0)).bounds.reshape(-1)).all()
    assert raw[72:80] == bytes(8)
    assert struct.unpack_from("<4I", raw, 80) == (base >> 8, 0x83000000, size - 1, 0x81000000)
    assert raw[96:] == bytes(32)
    tlas = scene.words.tobytes()[:128]
    assert struct.unpack_from("<4I", tlas, 0) == (0x48564254, 1, 1, 0x15)
    assert struct.unpack_from("<2I", tlas, 36) == (2, 0)  # instances with a node, no geometry
    empty = scene.blas_words(1)
    assert np.isnan(empty[12:18].view(np.float32)).all()


def test_documented_offsets_are_the_structs() -> None:
    expected = {
        "magic": 0, "version": 4, "kind": 8, "root_pointer": 12, "size_units": 16, "leaf_unit": 20,
        "nodes_fp32": 24, "nodes_fp16": 28, "leaf_count": 32, "primitive_count": 36,
        "geometry_count": 40, "depth": 44, "bounds_min": 48, "bounds_max": 60, "fan_unit": 72,
        "fan_count": 76, "descriptor": 80, "sphere_count": 96, "reserved_1": 100,
    }  # fmt: skip
    assert HEADER.offsets == expected
    table = [line.split("|") for line in (container.__doc__ or "").splitlines() if "| u32" in line]
    table += [line.split("|") for line in (container.__doc__ or "").splitlines() if "| f32" in line]
    assert sorted(int(row[1]) for row in table) == sorted(expected.values())


def test_round_trip(scene: SceneBvh, tmp_path: Path) -> None:
    path = tmp_path / "ein Ordner é" / "scene.npz"
    container.save(path, scene, {"scene": "hall"})
    back = container.load(path)
    assert (back.words == scene.words).all()
    assert (back.parents == scene.parents).all()
    assert back.blas_names == scene.blas_names
    assert back.blas_stats == scene.blas_stats
    assert back.options == scene.options
    assert (back.blas_bases == scene.blas_bases).all()
    for a, b in zip(back.instances, scene.instances, strict=True):
        assert (a.transform == b.transform).all()
        for field in fields(a):
            if field.name != "transform":
                assert getattr(a, field.name) == getattr(b, field.name)
    with np.load(path) as saved:
        assert json.loads(str(saved["context"])) == {"scene": "hall"}
    assert [p.name for p in path.parent.iterdir()] == ["scene.npz"]


def test_an_empty_scene_round_trips(tmp_path: Path) -> None:
    scene = assemble([], [], [])
    container.save(tmp_path / "nothing.npz", scene)
    back = container.load(tmp_path / "nothing.npz")
    assert back.instances == ()
    assert (back.words == scene.words).all()


def _refused(path: Path, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        container.load(path)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_damaged_and_foreign_files(scene: SceneBvh, tmp_path: Path) -> None:
    good = tmp_path / "good.npz"
    container.save(good, scene)
    raw = good.read_bytes()
    bad = tmp_path / "bad.npz"
    _refused(tmp_path / "missing.npz", "no such file")
    _refused(tmp_path, "cannot read|not a Treeline")
    for content in (b"", b"hello", raw[: len(raw) // 2], raw[:200] + raw[400:]):
        bad.write_bytes(content)
        _refused(bad, "damaged|not a Treeline")
    flipped = bytearray(raw)
    flipped[raw.index(scene.words[32:64].tobytes())] ^= 0xFF  # the zip's checksum notices
    bad.write_bytes(flipped)
    _refused(bad, "damaged")
    np.savez(bad, rays=np.zeros(3))
    _refused(bad, "not a Treeline BVH file")
    np.save(tmp_path / "plain.npy", np.zeros(3))
    (tmp_path / "plain.npy").rename(bad)
    _refused(bad, "not a Treeline")
    np.savez(bad, format=np.array([{"a": 1}], object), allow_pickle=True)
    _refused(bad, "not a Treeline|damaged")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", np.array(2), "version 2, this reads 1"),
        ("words", None, "'words' is missing"),
        ("words", np.zeros(64, np.float32), "'words' has type"),
        ("words", np.zeros(64, np.uint32), "parent links|magic"),
        ("blas_bases", np.array([64, 128], np.uint32), "magic"),
        ("instance_blas", np.array([0, 9, 0], np.uint32), "BLAS 9"),
        ("instance_mask", np.zeros(2, np.uint32), "differ in length"),
        ("instance_transforms", np.zeros((3, 3, 4)), "transforms of shape"),
        ("blas_stats", np.array(["{}", "{}"]), "statistics"),
        ("options", np.array("{"), "damaged"),
        ("options", np.array('{"builder": "other"}'), "unknown builder"),
    ],
)
def test_wrong_content(
    scene: SceneBvh, tmp_path: Path, key: str, value: np.ndarray | None, message: str
) -> None:
    path = tmp_path / "scene.npz"
    container.save(path, scene)
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if value is None:
        del arrays[key]
    else:
        arrays[key] = value
    np.savez(path, **arrays)
    _refused(path, message)


def test_unwritable_places(scene: SceneBvh, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "scene.npz", tmp_path, Path("/proc/none/scene.npz")):
        with pytest.raises(UserError, match="cannot write"):
            container.save(place, scene)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_an_interrupted_write_leaves_the_old_file(
    scene: SceneBvh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scene.npz"
    path.write_bytes(b"old")

    def interrupt(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupt)
    with pytest.raises(KeyboardInterrupt):
        container.save(path, scene)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["scene.npz"]


def test_the_file_is_a_plain_zip(scene: SceneBvh, tmp_path: Path) -> None:
    container.save(tmp_path / "scene.npz", scene)
    names = zipfile.ZipFile(tmp_path / "scene.npz").namelist()
    documented = {"format", "version", *container._SHAPES}
    assert {name.removesuffix(".npy") for name in names} == documented
