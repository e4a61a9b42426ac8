"""Frames of a scene with morph targets, from a file that the test writes: they show what the scene
would be if it were built in that pose, with and without a skin."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.validate import validate
from engine.scene.camera import look_at
from engine.scene.light import RectLight
from engine.scene.load import load_scene
from engine.scene.pose import moves, posed, timeline
from engine.scene.records import VERTEX
from engine.scene.scene import Instance, Scene
from engine.scene.upload import decode_normals
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare

CELLS = 8
FAST = BuildOptions(builder="lbvh", reinsertion=0)
EXACT = BuildOptions(builder="lbvh", reinsertion=0, nodes="fp32", leaf=1)
TIMES = np.array([0, 1, 2], np.float32)
KEYS = np.array([[0, 0], [1.5, -0.5], [-0.5, 1]], np.float32)


class _Document:
    """A .gltf with its arrays inside."""

    def __init__(self) -> None:
        self.json: dict[str, Any] = {"accessors": [], "bufferViews": []}
        self.blob = b""

    def array(self, values: Any, dtype: str = "<f4") -> int:
        """The accessor of [n] or [n, width] numbers."""
        rows = np.asarray(values, dtype)
        view = {"buffer": 0, "byteOffset": len(self.blob), "byteLength": rows.nbytes}
        self.blob += rows.tobytes() + bytes(-rows.nbytes % 4)
        kinds = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}
        kind = kinds[rows.shape[1] if rows.ndim > 1 else 1]
        code = {"<f4": 5126, "<u1": 5121}[dtype]
        at = len(self.json["accessors"])
        item = {"bufferView": at, "componentType": code, "type": kind, "count": len(rows)}
        self.json["bufferViews"].append(view)
        self.json["accessors"].append(item)
        return at

    def write(self, path: Path, **parts: Any) -> Path:
        data = "data:application/octet-stream;base64," + base64.b64encode(self.blob).decode()
        buffers = [{"byteLength": len(self.blob), "uri": data}]
        whole = {"asset": {"version": "2.0"}, "buffers": buffers, **self.json, **parts}
        path.write_text(json.dumps(whole))
        return path


def _face(path: Path, skinned: bool, move: Any = (0.0, 0.0, 0.0)) -> Path:
    """A square sheet, every triangle with vertices of its own. One target bulges it, the other
    shears it; with a skin its upper half turns, too."""
    file = _Document()
    i, j = (grid.ravel() for grid in np.meshgrid(*2 * [np.arange(CELLS)], indexing="ij"))
    around = np.array([[0, 0], [1, 0], [1, 1], [0, 0], [1, 1], [0, 1]])
    x, y = ((np.stack([i, j], 1)[:, None] + around).reshape(-1, 2) * 2 / CELLS - 1).T
    flat = np.zeros_like(x)
    bulge = np.exp(-3 * (x * x + y * y))
    attributes = {
        "POSITION": file.array(np.stack([x, y, flat], 1)),
        "NORMAL": file.array(np.stack([flat, flat, flat + 1], 1)),
    }
    slope = np.stack([6 * x * bulge, 6 * y * bulge, flat], 1)
    targets = [
        {"POSITION": file.array(np.stack([flat, flat, bulge], 1)), "NORMAL": file.array(slope)},
        {"POSITION": file.array(np.stack([0.5 * y, flat, 0.3 * x * y], 1))},
    ]
    nodes: list[dict[str, Any]] = [{"mesh": 0, "name": "face", "translation": list(move)}]
    samplers = [{"input": file.array(TIMES), "output": file.array(KEYS.reshape(-1))}]
    channels = [{"sampler": 0, "target": {"node": 0, "path": "weights"}}]
    parts: dict[str, Any] = {}
    if skinned:
        up = np.clip(y + 0.5, 0, 1)
        attributes["JOINTS_0"] = file.array([[0, 1, 0, 0]] * len(x), "<u1")
        attributes["WEIGHTS_0"] = file.array(np.stack([1 - up, up, flat, flat], 1))
        nodes[0]["skin"] = 0
        nodes += [{"name": "low"}, {"name": "high"}]
        parts["skins"] = [{"joints": [1, 2]}]
        half = np.array([0.0, 0.3, -0.2])
        turns = np.stack([np.sin(half), 0 * half, 0 * half, np.cos(half)], 1)
        samplers.append({"input": file.array(TIMES), "output": file.array(turns)})
        channels.append({"sampler": 1, "target": {"node": 2, "path": "rotation"}})
    return file.write(
        path,
        meshes=[{"primitives": [{"attributes": attributes, "targets": targets}]}],
        nodes=nodes,
        scenes=[{"nodes": list(range(len(nodes)))}],
        scene=0,
        animations=[{"name": "talk", "samplers": samplers, "channels": channels}],
        **parts,
    )


def _stage(face: Scene, kit: Any) -> Scene:
    """Upright before a mirror on the floor, lit from the front."""
    floor = kit.quad((-4, -1.2, 4), (8, 0, 0), (0, 0, -8), material=len(face.materials))
    light = RectLight(
        np.array([1.0, 3.0, 3.0]), np.array([0.3, 0, 0]), np.array([0, 0.2, -0.2]), np.full(3, 60.0)
    )
    assert face.animation is not None
    return replace(
        face,
        materials=(*face.materials, kit.mirror(base_color=(0.7, 0.7, 0.7, 1.0), roughness=0.1)),
        meshes=(*face.meshes, floor),
        instances=(*face.instances, Instance("floor", len(face.meshes), np.eye(4))),
        camera=look_at(np.array([1.5, 1.0, 4.5]), np.array([0, -0.3, 0]), 0.8),
        light=light,
        animation=replace(face.animation, instance_nodes=(*face.animation.instance_nodes, 0)),
    )


@pytest.fixture(params=["morphed", "morphed and skinned"])
def stage(request: Any, tmp_path: Path, kit: Any) -> Scene:
    path = _face(tmp_path / "face.gltf", request.param == "morphed and skinned")
    return _stage(load_scene(path), kit)


def _frame(device: Any, scene: Scene | PreparedScene, **options: Any) -> HybridFrame:
    prepared = scene if isinstance(scene, PreparedScene) else prepare(scene, FAST)
    return HybridFrame(device, prepared, FrameOptions(64, 48, **options))


def _show(frame: HybridFrame, clip: str | None, time: float = 0.0) -> None:
    assert frame.run(0, inputs=replace(frame.inputs, clip=clip, time=time)).valid


def _vertices(device: Any, frame: HybridFrame) -> Any:
    words = device.read(frame.scene.buffers["geometry"])[frame.scene.bases[2] :]
    count = len(frame.scene.prepared.pack.vertices)
    return words[: VERTEX.size // 4 * count].view(VERTEX.dtype)


def _number(prepared: PreparedScene) -> int:
    """The face's BLAS."""
    return next(i.blas for i in prepared.bvh.instances if i.name == "face")


def test_it_moves(stage: Scene) -> None:
    assert moves(stage) and not stage.notes
    assert [i.lifetime for i in stage.instances] == ["deforming", "static"]
    assert [(span.name, span.duration) for span in timeline(stage)] == [("talk", 2.0)]


def test_frames_are_those_of_the_scene_in_that_pose(device: Any, stage: Scene) -> None:
    """Vertices are the CPU's; from those very vertices, a scene built anew gives the same hits and
    the same picture, bit for bit."""
    assert stage.animation is not None
    prepared = prepare(stage, EXACT)
    frame = _frame(device, prepared)
    assert [p.name for p in frame.passes if "update" in p.name][:2] == [
        "update/skin",
        "update/refit",
    ]
    hashes, pictures = set(), []
    for time in (0.0, 0.6, 1.7):
        _show(frame, "talk", time)
        vertices = _vertices(device, frame)
        first = sum(len(m.positions) for m in prepared.scene.meshes[: _face_mesh(prepared)])
        face = prepared.scene.meshes[_face_mesh(prepared)]
        there = posed(prepared.scene, stage.animation.clip(), time)
        exact = there.meshes[_face_mesh(prepared)]
        mine = vertices[first : first + len(face.positions)]
        np.testing.assert_allclose(mine["position"], exact.positions, atol=1e-6)
        normals = decode_normals(mine["normal"].copy())
        assert (np.einsum("ij,ij->i", normals, exact.normals) > 1 - 1e-6).all()
        built = replace(exact, positions=mine["position"].copy())
        whole = tuple(built if m is face else m for m in prepared.scene.meshes)
        fresh = prepare(replace(prepared.scene, meshes=whole), EXACT)
        fresh = replace(fresh, pack=replace(fresh.pack, vertices=vertices))
        other = _frame(device, fresh)
        _show(other, None)
        assert other.result_hash() == frame.result_hash()
        assert (other.image() == frame.image()).all()
        hashes.add(frame.result_hash())
        pictures.append(frame.image())
    assert len(hashes) == 3 and (pictures[0] != pictures[1]).any()
    assert frame.moving is not None and frame.moving.messages() == []


def _face_mesh(prepared: PreparedScene) -> int:
    return next(i.mesh for i in prepared.scene.instances if i.name == "face")


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_pictures_are_those_of_the_cpu(device: Any, stage: Scene, gbuffer: str) -> None:
    assert stage.animation is not None
    frame = _frame(device, stage, gbuffer=gbuffer)
    _show(frame, "talk", 0.9)
    other = _frame(device, posed(stage, stage.animation.clip(), 0.9), gbuffer=gbuffer)
    _show(other, None)
    different = np.abs(frame.image().astype(int) - other.image().astype(int)) > 3
    assert different.any(axis=-1).mean() <= 0.01
    assert validate(frame.bvh()) == []


def test_weights_of_zero_are_the_file(device: Any, tmp_path: Path, kit: Any) -> None:
    scene = _stage(load_scene(_face(tmp_path / "face.gltf", False)), kit)
    frame = _frame(device, scene)
    _show(frame, None)
    before = frame.result_hash(), _vertices(device, frame).tobytes()
    _show(frame, "talk", 1.0)
    assert frame.result_hash() != before[0]
    _show(frame, "talk", 0.0)
    assert (frame.result_hash(), _vertices(device, frame).tobytes()) == before


def test_far_away_it_keeps_its_place(device: Any, tmp_path: Path, kit: Any) -> None:
    """A BLAS is recentred: its vertices are not where the node puts them."""
    scene = load_scene(_face(tmp_path / "face.gltf", False, (40.0, 0.0, 0.0)))
    assert scene.animation is not None
    prepared = prepare(scene, FAST)
    assert abs(prepared.scene.instances[0].transform[0, 3] - 40) < 1
    frame = _frame(device, prepared)
    _show(frame, "talk", 1.3)
    exact = posed(prepared.scene, scene.animation.clip(), 1.3).meshes[0].positions
    np.testing.assert_allclose(_vertices(device, frame)["position"], exact, atol=1e-6)
    assert np.abs(exact).max() < 4


def test_a_block_holds_what_targets_move_alike(stage: Scene) -> None:
    """Seams of equal displacements share blocks; where they part, no block does."""
    assert stage.animation is not None
    prepared = prepare(stage, FAST)
    assert prepared.bvh.blas_stats[_number(prepared)].pairs > 0
    (item,) = stage.animation.skinned
    assert item.morph is not None
    parting = item.morph.positions.copy()
    parting[1, :, 2] += np.arange(parting.shape[1]) // 3  # of every triangle another
    torn = replace(item, morph=replace(item.morph, positions=parting))
    animation = replace(stage.animation, skinned=(torn,))
    prepared = prepare(replace(stage, animation=animation), FAST)
    assert prepared.bvh.blas_stats[_number(prepared)].pairs == 0
