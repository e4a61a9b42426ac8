"""What the frame's tests share: small scenes from arrays, frames of them, faults put into shaders.

A scene of these has one material a mesh, an area light that faces along -Y unless moved, and no
light from the sky unless asked for: then everything that is seen came through a ray.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.gpu import shader
from engine.scene.camera import look_at
from engine.scene.light import Environment, RectLight
from engine.scene.load import load_scene
from engine.scene.material import Material, Texture
from engine.scene.mesh import Mesh, make_mesh
from engine.scene.scene import Instance, Scene
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene, prepare
from passes.rays import RAY_TYPES, REFLECTION, SHADOW

# Fields of FrameOptions with which a frame sends the rays of every type.
EVERY_RAY = {ray.option: True for ray in RAY_TYPES if ray.option}

BLACK = (0.0, 0.0, 0.0)
WHITE = (1.0, 1.0, 1.0)


def grey(value: float = 0.5, **changes: Any) -> Material:
    """A rough dielectric: it sends no reflection ray."""
    settings = dict(base_color=(value, value, value, 1.0), metallic=0.0, roughness=1.0)
    return Material("grey", **{**settings, **changes})


def mirror(**changes: Any) -> Material:
    """A perfect mirror: metallic, white, roughness 0."""
    return Material("mirror", **{"metallic": 1.0, "roughness": 0.0, **changes})


def quad(corner: Any, u: Any, v: Any, material: int = 0, cells: int = 1, **attributes: Any) -> Mesh:
    """A parallelogram corner + s u + t v of cells^2 * 2 triangles; uv is (s, t), the winding's
    normal cross(u, v)."""
    steps = np.linspace(0.0, 1.0, cells + 1)
    t, s = (grid.ravel() for grid in np.meshgrid(steps, steps, indexing="ij"))
    points = np.asarray(corner, float) + np.outer(s, u) + np.outer(t, v)
    i, j = (grid.ravel() for grid in np.meshgrid(*2 * [np.arange(cells)], indexing="ij"))
    a = i * (cells + 1) + j
    b, c, d = a + 1, a + cells + 2, a + cells + 1
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    uvs = attributes.pop("uvs", np.stack([s, t], 1))
    return make_mesh("quad", points, faces, material, uvs=uvs, **attributes)


def sphere(
    center: Any = (0, 0, 0),
    radius: float = 1.0,
    material: int = 0,
    rings: int = 12,
    smooth: bool = True,
) -> Mesh:
    """A UV sphere, normals outward (or none stored)."""
    theta = np.linspace(0, np.pi, rings + 1)
    phi = np.linspace(0, 2 * np.pi, 2 * rings + 1)
    t, p = (grid.ravel() for grid in np.meshgrid(theta, phi, indexing="ij"))
    unit = np.stack([np.sin(t) * np.sin(p), np.cos(t), np.sin(t) * np.cos(p)], 1)
    row = 2 * rings + 1
    i, j = (g.ravel() for g in np.meshgrid(np.arange(rings), np.arange(row - 1), indexing="ij"))
    a = i * row + j
    faces = np.concatenate(
        [np.stack([a, a + row, a + row + 1], 1), np.stack([a, a + row + 1, a + 1], 1)]
    )
    normals = unit if smooth else None
    return make_mesh("sphere", np.asarray(center) + radius * unit, faces, material, normals=normals)


def box(material: int = 0) -> Mesh:
    """The cube [-1, 1]^3, normals outward, each face with its own uv."""
    faces = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            n, u = side * np.eye(3)[axis], np.eye(3)[(axis + 1) % 3]
            v = np.cross(n, u)
            faces.append(quad(n - u - v, 2 * u, 2 * v, material))
    return make_mesh(
        "box",
        np.concatenate([f.positions for f in faces]),
        np.concatenate([f.triangles + 4 * i for i, f in enumerate(faces)]),
        material,
        uvs=np.concatenate([f.uvs for f in faces]),
    )


def place(move: Any = (0, 0, 0), scale: Any = (1, 1, 1), turn: float = 0.0) -> Any:
    """Object to world: scaled, turned by `turn` radians about a skew axis, moved."""
    axis = np.array([0.48, 0.6, 0.64])
    cross = np.cross(np.eye(3), axis)
    matrix = np.eye(4)
    rotation = np.eye(3) - np.sin(turn) * cross + (1 - np.cos(turn)) * cross @ cross
    matrix[:3, :3] = rotation @ np.diag(scale)
    matrix[:3, 3] = move
    return matrix


def make_room(sky: Any = (0.3, 0.4, 0.5)) -> Scene:
    """Everything at once: smooth and flat, rough and mirror, shared, turned, stretched and
    mirrored instances, a deforming one, alpha-tested leaves, an emitter, textures."""
    pixels = np.random.default_rng(5).integers(0, 256, (7, 6, 4)).astype(np.uint8)
    textures = [
        Texture("leaf", pixels, True, "repeat", "mirror"),
        Texture("rough", pixels[:4, :4].copy(), False, "clamp", "repeat"),
    ]
    materials = [
        Material("floor", (0.8, 0.7, 0.6, 1.0), 0.0, 0.25),
        grey(0.6),
        mirror(),
        Material("block", (0.9, 0.5, 0.3, 1.0), 0.4, 1.0, metallic_roughness_texture=1),
        Material("leaf", roughness=0.9, alpha_mode="MASK", base_color_texture=0),
        Material("lamp", roughness=0.7, emissive=(2.0, 1.5, 1.0)),
    ]
    leaf = quad((0.4, 0.0, 1.2), (2, 0, 0), (0, 1.6, 0.3), 4)
    meshes = [
        quad((-6, 0, 6), (12, 0, 0), (0, 0, -12), 0),
        quad((-6, 0, -3), (12, 0, 0), (0, 6, 0), 1),
        sphere((-1.3, 1.0, 0.0), 1.0, 2, rings=10),
        box(3),
        replace(leaf, uvs=3 * leaf.uvs - 1),
        quad((2.5, 0.1, -2.0), (0.8, 0, 0), (0, 0.8, 0), 5),
    ]
    instances = [Instance(f"object{i}", i, np.eye(4)) for i in (0, 1, 2, 4, 5)]
    instances += [
        Instance("turned", 3, place((1.6, 0.6, 0.0), (0.5, 0.4, 0.6), 0.7)),
        Instance("mirrored", 3, place((0.4, 0.5, -1.5), (-0.4, 0.5, 0.3), -0.4)),
        Instance("moving", 5, place((-4.5, 2.0, 0.0), turn=0.3), lifetime="deforming"),
    ]
    scene = make_scene(
        meshes,
        materials,
        textures=textures,
        instances=instances,
        eye=(0.5, 1.8, 6.0),
        target=(0.2, 0.8, 0.0),
        light=lamp((1.5, 4.0, 2.0), 0.4, (-0.3, -1.0, -0.4), (20, 18, 15)),
    )
    return replace(scene, environment=Environment(sky, (0.8, 0.8, 0.9), (0.2, 0.2, 0.15)))


def make_scene(
    meshes: Sequence[Mesh],
    materials: Sequence[Material] = (),
    *,
    textures: Sequence[Texture] = (),
    eye: Any = (0.0, 0.0, 5.0),
    target: Any = (0.0, 0.0, 0.0),
    up: tuple[float, float, float] = (0.0, 1.0, 0.0),
    y_fov: float = np.radians(40.0),
    light: RectLight | None = None,
    sky: Any = BLACK,
    instances: Sequence[Instance] | None = None,
) -> Scene:
    """Every mesh placed once at the origin, unless `instances` says otherwise."""
    if instances is None:
        instances = [Instance(f"{m.name}{i}", i, np.eye(4)) for i, m in enumerate(meshes)]
    return Scene(
        "test",
        tuple(meshes),
        tuple(materials) or (grey(),),
        tuple(textures),
        tuple(instances),
        replace(look_at(np.asarray(eye, float), np.asarray(target, float), y_fov, up), near=1e-6),
        light or lamp((0.0, 4.0, 0.0), 0.1),
        Environment(sky, sky, sky),
    )


def lamp(
    center: Any, half: float = 0.25, facing: Any = (0.0, -1.0, 0.0), radiance: Any = WHITE
) -> RectLight:
    """A square that emits along `facing`."""
    normal = np.asarray(facing, float) / np.linalg.norm(facing)
    u = np.cross(np.eye(3)[np.argmin(np.abs(normal))], normal)
    u /= np.linalg.norm(u)
    return RectLight(
        np.asarray(center, float), half * u, half * np.cross(normal, u), tuple(radiance)
    )


@dataclass(frozen=True)
class Drawn:
    """A frame that ran, and what its queues held, as records with their results."""

    frame: HybridFrame
    stats: FrameStats
    prepared: PreparedScene

    def aov(self, name: str) -> Any:
        return self.frame.aov(name)

    @property
    def radiance(self) -> Any:
        """[height, width, 3] linear mean of the samples."""
        data = self.frame.data
        raw = data.device.read(data.resources["accumulated"], np.float32, count=4 * data.pixels)
        raw = raw.reshape(data.height, data.width, 4)
        return raw[..., :3] / raw[..., 3:]

    @property
    def reflections(self) -> tuple[Any, Any]:
        """Reflection rays and their hits, by pixel."""
        data = self.frame.data
        rays = data.read_records(REFLECTION)
        hits = data.read_results(REFLECTION, rays)
        order = np.argsort(rays["pixel"])
        return rays[order], hits[order]

    @property
    def shadows(self) -> tuple[Any, Any]:
        """Shadow rays by slot (passes/shadow_slots.py) and whether they arrived."""
        data = self.frame.data
        rays = data.read_records(SHADOW)
        rays = rays[np.argsort(rays["slot"])]
        return rays, data.read_results(SHADOW.of(data.options), rays) == 1

    def light_points(self, rays: Any) -> Any:
        """[n, 3] the sampled points of the light, float64."""
        light = self.prepared.scene.light
        code = rays["light_uv"]
        s = 2 * np.stack([code & 0xFFFF, code >> 16], 1) / 65535.0 - 1
        return light.center + s[:, :1] * light.half_u + s[:, 1:] * light.half_v


@pytest.fixture(scope="session")
def draw(device: Any) -> Callable[..., Drawn]:
    """draw(scene, width, height, group=, build=, samples=, **FrameOptions fields) -> Drawn."""

    def drawer(
        scene: Scene | PreparedScene,
        width: int = 32,
        height: int = 32,
        *,
        group: str = "static",
        build: BuildOptions | None = None,
        samples: int = 1,
        frame_index: int = 0,
        **options: Any,
    ) -> Drawn:
        prepared = scene if isinstance(scene, PreparedScene) else prepare(scene, build, group)
        frame = HybridFrame(device, prepared, FrameOptions(width, height, **options))
        stats = frame.render(samples, frame_index)
        return Drawn(frame, stats, prepared)

    return drawer


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """The makers of small scenes."""
    return SimpleNamespace(
        scene=make_scene,
        room=make_room,
        quad=quad,
        sphere=sphere,
        box=box,
        place=place,
        lamp=lamp,
        grey=grey,
        mirror=mirror,
        every_ray=EVERY_RAY,
    )


@pytest.fixture(scope="session")
def room() -> PreparedScene:
    """`kit.room()`, prepared with the defaults."""
    return prepare(make_room())


@pytest.fixture(scope="session")
def hall() -> PreparedScene:
    """The embedded scene, prepared once a session: without reinsertion, nearly all of a build."""
    scene = load_scene(Path(__file__).resolve().parents[2] / "assets" / "hall.glb")
    return prepare(scene, BuildOptions(reinsertion=0))


@pytest.fixture
def break_shader(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """break_shader(file, right, wrong): shaders made from now on have `wrong` for `right` there."""

    def put_in(file: str, right: str, wrong: str) -> None:
        read = shader._read

        def read_broken(source: str) -> str:
            text = read(source)
            if source == file:
                assert right in text, "the fault is no longer where this test puts it"
                text = text.replace(right, wrong)
            return text

        monkeypatch.setattr(shader, "_read", read_broken)

    return put_in
