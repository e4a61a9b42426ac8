"""What a scene that moves shows is what it would show if it were built in that pose."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.scene.camera import look_at
from engine.scene.pose import posed
from engine.scene.records import VERTEX
from engine.scene.scene import Scene
from engine.scene.upload import pack_scene
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from passes.prepare import prepare

FAST = BuildOptions(builder="lbvh", reinsertion=0)
# One triangle a block in world space: the same arithmetic whatever the tree.
EXACT = BuildOptions(builder="lbvh", reinsertion=0, nodes="fp32", leaf=1)
MOVING = [("Fox", "Run"), ("lumberjack", "Poses"), ("CesiumMilkTruck", "clip 0")]
Make = Callable[..., HybridFrame]
Show = Callable[..., FrameStats]


def same_pictures(a: Any, b: Any, apart: float = 0.01) -> None:
    """But for the outlines, where a rounding decides."""
    different = (np.abs(a.astype(int) - b.astype(int)) > 3).any(axis=-1)
    assert different.mean() <= apart


def test_hits_are_those_of_a_scene_built_in_that_pose(
    device: Any, stage: Scene, make_frame: Make, show: Show
) -> None:
    """From the same vertices, bit for bit: another tree, the same rays and the same hits."""
    prepared = prepare(stage, EXACT)
    frame = make_frame(prepared)
    hashes = []
    for time in (0.0, 0.31, 0.8):
        show(frame, "Run", time)
        hashes.append(frame.result_hash())
        words = device.read(frame.scene.buffers["geometry"])[frame.scene.bases[2] :]
        count = len(prepared.pack.vertices)
        vertices = words[: VERTEX.size // 4 * count].view(VERTEX.dtype)
        fox, first = stage.meshes[0], 0
        for mesh in prepared.scene.meshes:
            if mesh.name == fox.name:
                break
            first += len(mesh.positions)
        fox = replace(fox, positions=vertices["position"][first:][: len(fox.positions)].copy())
        fresh = prepare(replace(stage, meshes=(fox, *stage.meshes[1:])), EXACT)
        fresh = replace(fresh, pack=replace(fresh.pack, vertices=vertices))
        other = make_frame(fresh)
        show(other, None)
        assert other.result_hash() == hashes[-1]
        assert (other.image() == frame.image()).all()
        for name in ("object", "primitive", "depth", "normal"):
            assert np.array_equal(frame.aov(name), other.aov(name), equal_nan=True)
    assert len(set(hashes)) == 3


@pytest.mark.parametrize(("name", "clip"), MOVING)
def test_pictures_are_those_of_a_scene_posed_on_the_cpu(
    scene_of: Callable[[str], Scene], name: str, clip: str, make_frame: Make, show: Show
) -> None:
    scene = scene_of(name)
    assert scene.animation is not None
    found = scene.animation.clip(clip)
    prepared = prepare(scene, FAST)
    frame = make_frame(prepared)
    show(frame, None)
    rest = frame.image()
    for part, gbuffer in ((0.35, "raster"), (0.8, "rays")):
        frame = make_frame(prepared, gbuffer=gbuffer)
        show(frame, clip, part * found.duration)
        other = make_frame(posed(scene, found, part * found.duration), gbuffer=gbuffer)
        show(other, None)
        same_pictures(frame.image(), other.image())
        assert (frame.image() != rest).any()
        assert frame.moving is not None and frame.moving.messages() == []


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_a_wheel_turns_for_raster_and_rays(
    scene_of: Callable[[str], Scene], gbuffer: str, make_frame: Make, show: Show
) -> None:
    """Seen from close by; only the wheels are built, so that every ray that hits hits one."""
    truck = scene_of("CesiumMilkTruck")
    assert truck.animation is not None
    kept = [i for i, item in enumerate(truck.instances) if item.lifetime == "rigid"]
    animation = truck.animation.renumbered({}, kept)
    wheels = replace(truck, instances=tuple(truck.instances[i] for i in kept), animation=animation)
    low, high = wheels.bounds()
    hub = np.array(wheels.instances[0].transform[:3, 3])
    size = float(high[1] - low[1])
    side = np.array([0.5, 0.3, 1.0]) * size
    wheels = replace(wheels, camera=look_at(hub + 1.4 * side, hub, 1.0))
    prepared = prepare(wheels, EXACT)
    frame = make_frame(prepared, gbuffer=gbuffer)
    show(frame, None)
    rest = frame.aov("primitive")
    clip = animation.clip()
    time = 0.3 * clip.duration
    show(frame, clip.name, time)
    there = posed(wheels, clip, time)
    built = replace(prepared, scene=there, bvh=prepare(there, EXACT).bvh, pack=pack_scene(there))
    other = make_frame(built, gbuffer=gbuffer)
    show(other, None)
    seen, expected = frame.aov("primitive"), other.aov("primitive")
    assert (seen >= 0).mean() > 0.2
    assert (seen == expected).mean() > 0.995
    assert (seen[seen >= 0] != rest[seen >= 0]).mean() > 0.5
    normals = [f.aov("normal")[(seen == expected) & (seen >= 0)] for f in (frame, other)]
    np.testing.assert_allclose(*normals, atol=2e-3)
    same_pictures(frame.image(), other.image(), 0.005)


def test_shadow_and_reflection_follow(stage: Scene, make_frame: Make, show: Show) -> None:
    """On the floor, which does not move: all that changes there came through a ray."""
    frame = make_frame(stage)
    pictures, floors = [], []
    for time in (0.0, 0.5):
        show(frame, "Run", time)
        names = [instance.name for instance in frame.scene.prepared.scene.instances]
        floors.append(frame.aov("object") == names.index("floor"))
        pictures.append(frame.image().astype(int))
        other = make_frame(posed(stage, stage.animation.clip("Run"), time))
        show(other, None)
        same_pictures(frame.image(), other.image(), 0.02)
    changed = (np.abs(pictures[0] - pictures[1]) > 20).any(axis=-1)
    assert (changed & floors[0] & floors[1]).sum() > 60
