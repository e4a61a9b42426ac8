"""Fox.glb, whose triangles share no vertex: read with struct and json, posed here in double
precision; its vertices, shadow and reflection in frames are those of that pose."""

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from bvh.build import BuildOptions
from engine.scene.camera import look_at
from engine.scene.load import load_scene
from engine.scene.scene import Instance, Scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.prepare import prepare

SIZE = (64, 48)
FAST = BuildOptions("lbvh", reinsertion=0)
CLIP, TIME = "Run", 0.43


class Document:
    """A .glb's JSON and arrays."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        (size,) = struct.unpack_from("<I", data, 12)
        self.json = json.loads(data[20 : 20 + size])
        self.blob = data[28 + size :]

    def array(self, index: int) -> Any:
        """[count, width] float64 of an accessor that is not interleaved."""
        item = self.json["accessors"][index]
        view = self.json["bufferViews"][item["bufferView"]]
        width = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}[item["type"]]
        kind = np.dtype({5121: "<u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}[item["componentType"]])
        start = view.get("byteOffset", 0) + item.get("byteOffset", 0)
        stride = view.get("byteStride", width * kind.itemsize)
        rows = np.ndarray((item["count"], width), kind, self.blob, start, (stride, kind.itemsize))
        return rows.astype(np.float64)

    def posed(self, clip: str, time: float) -> Any:
        """[v, 3] the first skinned mesh in the world."""
        nodes = [dict(node) for node in self.json["nodes"]]
        animation = next(a for a in self.json["animations"] if a["name"] == clip)
        for channel in animation["channels"]:
            sampler = animation["samplers"][channel["sampler"]]
            assert sampler.get("interpolation", "LINEAR") == "LINEAR"
            times = self.array(sampler["input"])[:, 0]
            values, way = self.array(sampler["output"]), channel["target"]["path"]
            at = np.clip(time, times[0], times[-1])
            if way == "rotation":
                value = Slerp(times, Rotation.from_quat(values))(at).as_quat()
            else:
                value = np.array([np.interp(at, times, column) for column in values.T])
            nodes[channel["target"]["node"]][way] = value
        parents = {c: i for i, node in enumerate(nodes) for c in node.get("children", [])}

        def world(index: int) -> Any:
            node, local = nodes[index], np.eye(4)
            turn = Rotation.from_quat(node.get("rotation", (0, 0, 0, 1))).as_matrix()
            local[:3, :3] = turn * np.asarray(node.get("scale", (1, 1, 1)))
            local[:3, 3] = node.get("translation", (0, 0, 0))
            return world(parents[index]) @ local if index in parents else local

        skin = self.json["skins"][0]
        bind = self.array(skin["inverseBindMatrices"]).reshape(-1, 4, 4).transpose(0, 2, 1)
        joints = np.stack([world(joint) for joint in skin["joints"]]) @ bind
        (primitive,) = self.json["meshes"][0]["primitives"]
        assert "indices" not in primitive
        attributes = {name: self.array(i) for name, i in primitive["attributes"].items()}
        weights = attributes["WEIGHTS_0"] / attributes["WEIGHTS_0"].sum(axis=1, keepdims=True)
        matrices = joints[attributes["JOINTS_0"].astype(int)]
        points = np.c_[attributes["POSITION"], np.ones(len(weights))]
        return np.einsum("vk,vkab,vb->va", weights, matrices, points)[:, :3]


@pytest.fixture(scope="module")
def path(shared_scenes: Path) -> Path:
    return shared_scenes / "Fox.glb"


@pytest.fixture(scope="module")
def stage(path: Path, kit: Any) -> Scene:
    """The fox on a floor that shows its shadow and mirrors it."""
    fox = load_scene(path)
    low, high = fox.bounds()
    size, middle = float((high - low).max()), 0.5 * (low + high)
    corner = np.array([middle[0] - size, low[1] - 0.02 * size, middle[2] - size])
    number = len(fox.meshes)
    floor = kit.quad(corner, (0, 0, 2 * size), (2 * size, 0, 0), len(fox.materials))
    light = kit.lamp(middle + size * np.array([0.6, 1.5, 0.3]), 0.05 * size, (-0.4, -1, -0.2))
    assert fox.animation is not None
    return replace(
        fox,
        materials=(*fox.materials, kit.grey(0.7, metallic=0.5, roughness=0.2)),
        meshes=(*fox.meshes, floor),
        instances=(*fox.instances, Instance("floor", number, np.eye(4))),
        camera=look_at(middle + size * np.array([0.9, 0.8, 0.7]), middle, 0.8),
        light=replace(light, radiance=(4e4, 4e4, 4e4)),
        animation=replace(fox.animation, instance_nodes=(*fox.animation.instance_nodes, 0)),
    )


@pytest.mark.parametrize("update", ["refit", "rebuild"])
def test_shadow_and_reflection_are_those_of_the_pose(
    device: Any, stage: Scene, path: Path, figure: Any, same_frames: Any, update: str
) -> None:
    posed = Document(path).posed(CLIP, TIME)
    assert len(posed) == 3 * len(stage.meshes[0].triangles) == len(stage.meshes[0].positions)
    moving = HybridFrame(device, prepare(stage, FAST, "object"), FrameOptions(*SIZE, update=update))
    assert moving.run(0, inputs=replace(moving.inputs, clip=CLIP, time=TIME)).valid
    name = stage.instances[0].name
    reach = np.abs(posed).max()
    np.testing.assert_allclose(figure.vertices(moving)[name], posed, atol=1e-5 * reach)

    mesh = replace(stage.meshes[0], positions=posed.astype(np.float32))
    still = tuple(replace(item, lifetime="static") for item in stage.instances)
    scene = replace(stage, meshes=(mesh, *stage.meshes[1:]), instances=still, animation=None)
    frame = HybridFrame(device, prepare(scene, FAST, "object"), FrameOptions(*SIZE))
    assert frame.run(0).valid
    found, wanted = figure.see(moving), figure.see(frame)
    same_frames(found, wanted, 0.005)
    on_floor = (found.objects == "floor").reshape(-1)
    assert sum(n == name and on_floor[p] for p, (n, _) in found.mirrored.items()) > 30
    assert sum(not lit and on_floor[s // 2] for s, lit in found.lit.items() if s % 2 == 0) > 30
