"""The figure in frames: where it is seen, mirrored and in the way of light. Rays are met with its
triangles one by one, by arithmetic that is not under test."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.rays import MISS_ID
from engine.scene.camera import look_at
from engine.scene.load import load_scene
from engine.scene.records import VERTEX
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.rays import REFLECTION, SHADOW
from tests.passes.poses.figure import CLIP, END, bodies, write_moving, write_still

SIZE = (56, 42)
FAST = BuildOptions(builder="lbvh", reinsertion=0)


# -- rays, one by one ----------------------------------------------------------------------------


def first_hits(origin: Any, direction: Any, corners: Any, reach: Any = np.inf) -> tuple[Any, ...]:
    """Of rays [n, 3] and triangles [m, 3, 3], by Cramer's rule: the nearest triangle of each (-1:
    none), its t, and whether a rounding could not change that."""
    a, b, c = (corners[None, :, i] for i in range(3))
    e1, e2, s = b - a, c - a, origin[:, None] - a
    p, q = np.cross(direction[:, None], e2), np.cross(s, e1)
    det = np.einsum("nmk,nmk->nm", p, np.broadcast_to(e1, p.shape))
    det = np.where(np.abs(det) < 1e-30, np.nan, det)
    u = np.einsum("nmk,nmk->nm", p, s) / det
    v = np.einsum("nmk,nk->nm", q, direction) / det
    t = np.einsum("nmk,nmk->nm", q, np.broadcast_to(e2, q.shape)) / det
    inside = np.minimum(np.minimum(u, v), 1 - u - v)
    length = np.linalg.norm(direction, axis=1)[:, None]
    # Rays start a rounding off the surface that they come from: that one is behind them.
    ahead = (t * length > 1e-4) & (t < reach)
    hit = ahead & (inside > 0)
    far = np.where(hit, t, np.inf)
    nearest = far.argmin(axis=1)
    t_hit = far.min(axis=1)
    edge = ahead & (np.abs(inside) < 1e-3) & (t <= t_hit[:, None] * (1 + 1e-6))
    certain = ~edge.any(axis=1)
    return np.where(np.isfinite(t_hit), nearest, -1), t_hit, certain


def light_points(scene: Scene, rays: Any) -> Any:
    """[n, 3] where on the light shadow rays end."""
    code = rays["light_uv"]
    s = 2 * np.stack([code & 0xFFFF, code >> 16], 1) / 65535.0 - 1
    return scene.light.center + s[:, :1] * scene.light.half_u + s[:, 1:] * scene.light.half_v


# -- frames --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """A frame by names: what each pixel shows [h, w], its depth, what each reflection ray met (by
    pixel) and at which t, and whether each shadow ray arrived (by slot)."""

    objects: Any
    depth: Any
    mirrored: dict[int, tuple[str, float]]
    lit: dict[int, bool]
    picture: Any


def see(frame: HybridFrame) -> Seen:
    names = np.array([i.name for i in frame.scene.prepared.scene.instances] + [""])
    data = frame.data
    rays = data.read_records(REFLECTION)
    hits = data.read_results(REFLECTION, rays)
    met = names[np.where(hits["object"] == MISS_ID, -1, hits["object"].astype(np.int64))]
    shadows = data.read_records(SHADOW)
    lit = data.read_results(SHADOW, shadows) == 1
    return Seen(
        names[frame.aov("object")],
        frame.aov("depth"),
        {int(p): (str(n), float(t)) for p, n, t in zip(rays["pixel"], met, hits["t"], strict=True)},
        dict(zip(shadows["slot"].tolist(), lit.tolist(), strict=True)),
        frame.image().astype(int),
    )


def vertices(frame: HybridFrame) -> dict[str, Any]:
    """[v, 3] of every object, in the world: vertex records through transforms, both as they lie on
    the GPU."""
    device, prepared = frame.scene.device, frame.scene.prepared
    words = device.read(frame.scene.buffers["geometry"])[frame.scene.bases[2] :]
    count = len(prepared.pack.vertices)
    stored = words[: VERTEX.size // 4 * count].view(VERTEX.dtype)["position"].astype(np.float64)
    objects = device.read(
        frame.scene.buffers["tables"], prepared.pack.objects.dtype, count=len(prepared.pack.objects)
    )
    firsts = np.cumsum([0, *(len(mesh.positions) for mesh in prepared.scene.meshes)])
    found = {}
    for item, place in zip(prepared.scene.instances, objects, strict=True):
        points = stored[firsts[item.mesh] : firsts[item.mesh + 1]]
        matrix = np.asarray(place["object_to_world"], np.float64).reshape(3, 4)
        found[item.name] = points @ matrix[:, :3].T + matrix[:, 3]
    return found


def stage(scene: Scene, kit: Any) -> Scene:
    """Seen from the front, lit from above and the right: shadows fall on the floor and boxes."""
    return replace(
        scene,
        camera=look_at(np.array([1.2, 3.0, 4.6]), np.array([-0.2, 0.8, 0.2]), 0.85),
        light=kit.lamp((2.5, 5.0, 2.5), 0.2, (-0.5, -1.0, -0.5), (60, 60, 60)),
    )


@pytest.fixture(scope="session")
def figure(
    device: Any, kit: Any, new_glb: Any, tmp_path_factory: pytest.TempPathFactory
) -> SimpleNamespace:
    """`scene` moves; `still(time)` is the scene posed here; `frame(scene, **options)` is cached;
    `show(frame, time)` draws a moment; `see`, `bodies` and `first_hits` as above."""
    folder = tmp_path_factory.mktemp("figure")
    frames: dict[Any, HybridFrame] = {}
    scenes: dict[Any, Scene] = {}

    def still(time: float | None) -> Scene:
        if time not in scenes:
            path = write_still(new_glb(), folder / f"still {time}.glb", time)
            scenes[time] = stage(load_scene(path), kit)
        return scenes[time]

    def frame(scene: Scene, group: str = "object", **options: Any) -> HybridFrame:
        key = (id(scene), group, *sorted(options.items()))
        if key not in frames:
            prepared = prepare(scene, FAST, group)
            frames[key] = HybridFrame(device, prepared, FrameOptions(*SIZE, **options))
        return frames[key]

    def show(frame: HybridFrame, time: float | None, **inputs: Any) -> HybridFrame:
        clip = None if time is None else CLIP
        moment = replace(frame.inputs, clip=clip, time=time or 0.0, **inputs)
        assert frame.run(0, inputs=moment).valid
        return frame

    return SimpleNamespace(
        scene=stage(load_scene(write_moving(new_glb(), folder / "moving.glb")), kit),
        still=still,
        frame=frame,
        show=show,
        see=see,
        stage=lambda scene: stage(scene, kit),
        bodies=bodies,
        vertices=vertices,
        first_hits=first_hits,
        light_points=light_points,
        clip=CLIP,
        end=END,
        size=SIZE,
    )


@pytest.fixture(scope="session")
def same_frames() -> Callable[..., None]:
    """same_frames(a, b, apart=): two `Seen` are one but for that part of the rays."""

    def compare(a: Seen, b: Seen, apart: float = 0.003) -> None:
        same = a.objects == b.objects
        assert (~same).mean() <= apart
        np.testing.assert_allclose(a.depth[same], b.depth[same], rtol=1e-4)
        for ours, theirs in ((a.mirrored, b.mirrored), (a.lit, b.lit)):
            both = ours.keys() & theirs.keys()
            assert len(both) >= (1 - apart) * max(len(ours), len(theirs)) > 100
            found = [ours[k] if ours is a.lit else ours[k][0] for k in both]
            wanted = [theirs[k] if theirs is b.lit else theirs[k][0] for k in both]
            assert np.mean([f != w for f, w in zip(found, wanted, strict=True)]) <= apart
        apart_pixels = (np.abs(a.picture - b.picture) > 3).any(axis=-1)
        assert apart_pixels.mean() <= 2 * apart

    return compare
