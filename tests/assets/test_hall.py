"""The embedded scene: what the generator promises about assets/hall.glb."""

from __future__ import annotations

import importlib
import io
import json
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

HALL = Path(__file__).resolve().parents[2] / "assets" / "hall.glb"
COMPONENT = {5121: np.uint8, 5123: np.uint16, 5125: np.uint32, 5126: np.float32}
WIDTH = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}


@dataclass(frozen=True, slots=True)
class Glb:
    """A GLB read with nothing but json and struct."""

    json: dict[str, Any]
    blob: bytes

    def array(self, index: int) -> np.ndarray:
        accessor = self.json["accessors"][index]
        view = self.json["bufferViews"][accessor["bufferView"]]
        start = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        width = WIDTH[accessor["type"]]
        values = np.frombuffer(
            self.blob, COMPONENT[accessor["componentType"]], accessor["count"] * width, start
        )
        return values.reshape(-1, width)

    def image(self, index: int) -> np.ndarray:
        view = self.json["bufferViews"][self.json["images"][index]["bufferView"]]
        data = self.blob[view["byteOffset"] : view["byteOffset"] + view["byteLength"]]
        return np.asarray(Image.open(io.BytesIO(data)))

    def primitives(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for mesh in self.json["meshes"]:
            for primitive in mesh["primitives"]:
                yield mesh["name"], primitive

    def material(self, primitive: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.json["materials"][primitive["material"]]
        return found


def parse(data: bytes) -> Glb:
    magic, version, length = struct.unpack("<4sII", data[:12])
    assert (magic, version, length) == (b"glTF", 2, len(data))
    json_bytes = struct.unpack("<I", data[12:16])[0]
    return Glb(json.loads(data[20 : 20 + json_bytes]), data[28 + json_bytes :])


@pytest.fixture(scope="module")
def hall() -> Glb:
    return parse(HALL.read_bytes())


def uses(hall: Glb) -> Counter[int]:
    return Counter(node["mesh"] for node in hall.json["nodes"] if node.get("mesh") is not None)


def treeline_extras(hall: Glb) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [
        (node, node["extras"]["treeline"])
        for node in hall.json["nodes"]
        if "treeline" in (node.get("extras") or {})
    ]


def test_the_generator_still_makes_the_committed_file(hall: Glb) -> None:
    """Decoded content, not bytes: zlib and the last bits of sin differ between machines."""
    layout = importlib.import_module("assets.hall.layout")
    writer = importlib.import_module("assets.hall.write_gltf")
    made = parse(writer.glb_bytes(layout.build_scene()))
    assert len(made.json["accessors"]) == len(hall.json["accessors"])
    for key in ("nodes", "meshes", "materials", "skins", "cameras", "scenes", "textures"):
        assert json.dumps(made.json[key], sort_keys=True) == json.dumps(
            hall.json[key], sort_keys=True
        ), key
    for index in range(len(hall.json["accessors"])):
        new, old = made.array(index), hall.array(index)
        assert new.shape == old.shape, index
        np.testing.assert_allclose(new.astype(float), old.astype(float), atol=2e-3)
    for index in range(len(hall.json["images"])):
        difference = made.image(index).astype(int) - hall.image(index).astype(int)
        assert np.abs(difference).max() <= 1


def test_two_runs_in_a_row_write_the_same_bytes() -> None:
    """The parts that draw random numbers, through the whole writer, with one painted picture."""
    data = importlib.import_module("assets.hall.scene_data")
    foliage = importlib.import_module("assets.hall.foliage")
    floor = importlib.import_module("assets.hall.floor")
    writer = importlib.import_module("assets.hall.write_gltf")

    def once() -> bytes:
        meshes = {
            "ivy": [("limestone", mesh) for _, mesh in foliage.column_ivy(14, 0.33, 3.4)],
            "floor": [("limestone", mesh) for _, mesh in floor.nave_panel(1)],
        }
        figure = data.Figure((data.Joint("root", -1, (0.0, 0.0, 0.0)),), (), {}, np.zeros(3), ())
        placements = [data.Placement("ivy", np.eye(4), "ivy")]
        scene = data.HallScene(meshes, placements, figure, np.eye(4), {})
        written: bytes = writer.glb_bytes(scene)
        return written

    assert once() == once()


def test_size_triangles_and_instancing(hall: Glb) -> None:
    assert HALL.stat().st_size < 8 << 20
    count = uses(hall)
    triangles = dict.fromkeys(range(len(hall.json["meshes"])), 0)
    for index, mesh in enumerate(hall.json["meshes"]):
        for primitive in mesh["primitives"]:
            triangles[index] += hall.json["accessors"][primitive["indices"]]["count"] // 3
    drawn = sum(triangles[mesh] * times for mesh, times in count.items())
    assert 150_000 <= drawn <= 550_000
    assert drawn > 2 * sum(triangles.values())
    by_name = {hall.json["meshes"][mesh]["name"]: times for mesh, times in count.items()}
    assert by_name["column"] >= 12
    assert by_name["arch"] >= 12
    assert by_name["floor_panel_a"] + by_name["floor_panel_b"] >= 40
    assert set(count) == set(triangles), "a mesh that no node uses"


def test_every_surface_is_clean(hall: Glb) -> None:
    for name, primitive in hall.primitives():
        attributes = primitive["attributes"]
        positions = hall.array(attributes["POSITION"])
        normals = hall.array(attributes["NORMAL"]).astype(np.float64)
        assert np.isfinite(positions).all(), name
        assert np.isfinite(hall.array(attributes["TEXCOORD_0"])).all(), name
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-4, err_msg=name)
        triangles = hall.array(primitive["indices"]).reshape(-1, 3)
        assert triangles.max() < len(positions), name
        corners = positions[triangles]
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        assert (cross != 0.0).any(axis=1).all(), f"{name}: a degenerate triangle"


def test_winding_agrees_with_the_normals(hall: Glb) -> None:
    """Leaf cards excepted: their normals lean out of the crown. Coarse statues miss a few."""
    for name, primitive in hall.primitives():
        if hall.material(primitive).get("alphaMode") == "MASK":
            continue
        attributes = primitive["attributes"]
        triangles = hall.array(primitive["indices"]).reshape(-1, 3)
        corners = hall.array(attributes["POSITION"])[triangles].astype(np.float64)
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        mean = hall.array(attributes["NORMAL"])[triangles].astype(np.float64).sum(axis=1)
        assert (np.einsum("ij,ij->i", cross, mean) > 0.0).mean() > 0.98, name


def test_fronts_face_the_visitor(hall: Glb) -> None:
    """Solids enclose a positive volume; floors look up, vaults down, walls into the hall."""

    def faces(name: str, material: str) -> tuple[np.ndarray, np.ndarray]:
        mesh = next(mesh for mesh in hall.json["meshes"] if mesh["name"] == name)
        primitive = next(p for p in mesh["primitives"] if hall.material(p)["name"] == material)
        triangles = hall.array(primitive["indices"]).reshape(-1, 3)
        corners = hall.array(primitive["attributes"]["POSITION"])[triangles].astype(np.float64)
        edges = corners[:, 1:] - corners[:, :1]
        return corners, np.cross(edges[:, 0], edges[:, 1])

    solids = [("column", "limestone"), ("urn", "bronze"), ("sphere", "chrome"), ("bench", "oak")]
    solids += [("figure", "linen"), ("planter", "glaze"), ("pedestal_tall", "limestone")]
    for name, material in solids:
        corners, cross = faces(name, material)
        assert np.einsum("ij,ij->", corners[:, 0], cross) > 0.0, name
    looking = [("floor_panel_a", "floor_dark", 1, 1.0), ("nave_vault", "plaster", 1, -1.0)]
    looking += [("aisle_vault", "plaster", 1, -1.0), ("window_bay", "ashlar", 2, 1.0)]
    looking += [("niche_bay", "ashlar", 2, 1.0), ("end_wall", "ashlar", 2, 1.0)]
    looking += [("end_wall", "glass_red", 2, 1.0), ("banner", "wool", 2, 1.0)]
    for name, material, axis, sign in looking:
        _, cross = faces(name, material)
        assert sign * cross[:, axis].sum() > 0.3 * np.linalg.norm(cross, axis=1).sum(), name
    corners, cross = faces("arch", "ashlar")  # the soffit looks at the arch's axis
    soffit = np.linalg.norm(corners[..., 1:], axis=2).max(axis=1) < 1.61
    assert soffit.sum() >= 60
    middle = corners[soffit].mean(axis=1)
    assert (np.einsum("ij,ij->i", middle[:, 1:], cross[soffit][:, 1:]) < 0.0).all()


def test_the_figure_is_skinned_and_walks(hall: Glb) -> None:
    skin = hall.json["skins"][0]
    assert len(skin["joints"]) >= 15
    bind = hall.array(skin["inverseBindMatrices"]).reshape(-1, 4, 4)
    assert len(bind) == len(skin["joints"])
    nodes = [node for node in hall.json["nodes"] if node.get("skin") is not None]
    assert [node["extras"]["treeline"]["lifetime"] for node in nodes] == ["deforming"]
    for primitive in hall.json["meshes"][nodes[0]["mesh"]]["primitives"]:
        joints = hall.array(primitive["attributes"]["JOINTS_0"])
        weights = hall.array(primitive["attributes"]["WEIGHTS_0"])
        assert joints.max() < len(skin["joints"])
        assert weights.min() >= 0.0
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-6)
    clip = hall.json["animations"][0]
    assert len(clip["channels"]) >= 10
    for channel in clip["channels"]:
        sampler = clip["samplers"][channel["sampler"]]
        times, values = hall.array(sampler["input"]), hall.array(sampler["output"])
        assert len(times) == len(values) >= 5
        assert (np.diff(times[:, 0]) > 0.0).all()
        assert channel["target"]["node"] in skin["joints"]
        np.testing.assert_allclose(values[0], values[-1], atol=1e-5)  # it loops
        if channel["target"]["path"] == "rotation":
            np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1.0, atol=1e-5)


def test_the_default_pose_stands_on_the_floor_with_its_arms_down() -> None:
    motion = importlib.import_module("assets.hall.motion")
    figure = importlib.import_module("assets.hall.figure")
    skin = motion.skin_matrices(motion.STANDING, motion._grounded(motion.STANDING))
    place = {
        joint.name: (skin[index] @ np.array([*joint.position, 1.0]))[:3]
        for index, joint in enumerate(figure.JOINTS)
    }
    for side in ("left", "right"):
        assert 0.02 < place[f"foot_{side}"][1] < 0.2
        assert place[f"hand_{side}"][1] < place["hips"][1] + 0.08
        assert abs(place[f"hand_{side}"][0]) < 0.4
    assert 1.45 < place["head"][1] < 1.7


def test_leaves_are_alpha_tested_with_a_painted_texture(hall: Glb) -> None:
    masked = [
        material for material in hall.json["materials"] if material.get("alphaMode") == "MASK"
    ]
    assert masked and all(material["alphaCutoff"] == 0.5 for material in masked)
    assert all(material["doubleSided"] for material in masked)
    texture = masked[0]["pbrMetallicRoughness"]["baseColorTexture"]["index"]
    alpha = hall.image(hall.json["textures"][texture]["source"])[..., 3]
    assert 0.30 < (alpha >= 128).mean() < 0.45
    assert ((alpha > 0) & (alpha < 255)).mean() > 0.005, "no antialiased rim"
    count = uses(hall)
    leaves = {
        index
        for index, mesh in enumerate(hall.json["meshes"])
        if any(hall.material(primitive) in masked for primitive in mesh["primitives"])
    }
    assert len(leaves) >= 3
    assert sum(count[index] for index in leaves) >= 10


def test_materials_run_from_mirror_to_chalk(hall: Glb) -> None:
    rough = [m["pbrMetallicRoughness"]["roughnessFactor"] for m in hall.json["materials"]]
    assert min(rough) <= 0.02
    assert max(rough) == 1.0
    assert len(set(rough)) >= 8
    assert any(
        m["pbrMetallicRoughness"].get("metallicRoughnessTexture") is not None
        for m in hall.json["materials"]
    )


def test_camera_light_and_environment(hall: Glb) -> None:
    cameras = [node for node in hall.json["nodes"] if node.get("camera") is not None]
    assert len(cameras) == 1
    lens = hall.json["cameras"][cameras[0]["camera"]]["perspective"]
    assert 0.5 < lens["yfov"] < 1.2
    lights = [(node, extra["area_light"]) for node, extra in treeline_extras(hall)
              if "area_light" in extra]  # fmt: skip
    assert len(lights) == 1
    node, light = lights[0]
    matrix = np.array(node["matrix"]).reshape(4, 4).T
    np.testing.assert_allclose(-matrix[:3, 2], [0.0, -1.0, 0.0], atol=1e-6)
    height = matrix[1, 3]
    irradiance = np.mean(light["radiance"]) * np.prod(light["size"]) / height**2
    assert np.pi <= irradiance <= 2.0 * np.pi
    environment = hall.json["scenes"][0]["extras"]["treeline"]["environment"]
    for name in ("zenith", "horizon", "ground"):
        assert len(environment[name]) == 3
        assert 0.0 < max(environment[name]) < 1.0


def test_nothing_of_the_lamp_hangs_in_its_own_light(hall: Glb) -> None:
    lamp = next(mesh for mesh in hall.json["meshes"] if mesh["name"] == "lamp")
    for primitive in lamp["primitives"]:
        assert hall.array(primitive["attributes"]["POSITION"])[:, 1].min() > 0.002


def test_trimesh_reads_it() -> None:
    trimesh = pytest.importorskip("trimesh")
    scene = trimesh.load(HALL, process=False)
    assert len(scene.graph.nodes_geometry) > 200
    assert np.isfinite(scene.bounds).all()
