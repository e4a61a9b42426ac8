"""What the frame's tests share: small scenes from arrays, and frames of them.

A scene of these has one material a mesh, an area light that faces along -Y unless moved, and no
light from the sky unless asked for: then everything that is seen came through a ray.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.scene.camera import look_at
from engine.scene.light import Environment, RectLight
from engine.scene.material import Material, Texture
from engine.scene.mesh import Mesh, make_mesh
from engine.scene.scene import Instance, Scene
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene, prepare
from passes.rays import REFLECTION, SHADOW

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
        from bvh.gpu.trace_rays import HIT

        data = self.frame.data
        rays = data.read_records(REFLECTION)
        hits = data.device.read(data.resources[REFLECTION.results], HIT.dtype, count=len(rays))
        order = np.argsort(rays["pixel"])
        return rays[order], hits[order]

    @property
    def shadows(self) -> tuple[Any, Any]:
        """Shadow rays by slot (2 * pixel, + 1 for a reflection hit's) and whether they arrived."""
        data = self.frame.data
        rays = data.read_records(SHADOW)
        lit = data.device.read(data.resources[SHADOW.results], np.uint32, count=2 * data.pixels)
        rays = rays[np.argsort(rays["slot"])]
        return rays, lit[rays["slot"]] == 1

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
        scene=make_scene, quad=quad, sphere=sphere, lamp=lamp, grey=grey, mirror=mirror
    )
