"""Light that is remembered while the camera or the scene moves: what is found again, and what is
not."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.scene.animation import Animation, Clip
from engine.scene.channel import Channel
from engine.scene.material import Material
from engine.scene.mesh import Mesh, make_mesh
from engine.scene.scene import Scene
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene
from tests.passes.history.remembered import FOUND, SIZE, error, shifted
from tests.passes.relative_mse import relative_mse

# -- as the camera moves -----------------------------------------------------------------------


def test_a_camera_that_moves_keeps_what_it_saw(
    make: Callable[..., HybridFrame], room: PreparedScene
) -> None:
    """Sideways, up and forwards: what stays in sight is remembered, and nearer to the truth. Not so
    in a curved mirror, whose images move otherwise: they stay as sharp as one sample is."""
    scene = room.scene
    frame, frames = make(room, history=32), 10
    for index in range(frames):
        camera = shifted(scene.camera, 0.04 * index, 0.02 * index, -0.05 * index)
        stats = frame.run(index, inputs=replace(frame.inputs, camera=camera))
        assert stats.valid and stats.history_lost == ("" if index else "first picture")
    covered = frame.aov("object") >= 0
    length = frame.aov("history_direct")[covered]
    assert (length > frames - 1 - FOUND).mean() > 0.75
    ball = frame.aov("object") == 2
    assert ball.sum() > 30 and (frame.aov("history_reflection")[ball] == 0).mean() > 0.9
    assert (frame.aov("history_reflection")[frame.aov("object") == 0] > 5).mean() > 0.5
    truth, single = make(room), make(room)
    truth.inputs = single.inputs = frame.inputs
    truth.render(64, 1000)
    single.run(7)
    reference = truth.radiance()
    noise = error(single.radiance(), reference)
    assert error(frame.radiance(), reference) < 0.8 * noise
    assert abs(frame.radiance().mean() / reference.mean() - 1) < 0.005


def test_a_mirrors_image_is_found_where_it_was_seen(
    make: Callable[..., HybridFrame], kit: SimpleNamespace
) -> None:
    """A wall of stripes in a mirror: its image lies behind the mirror, and moves less than that."""
    stripes = kit.quad((-8, -8, 10), (0, 16, 0), (16, 0, 0), 1, cells=12)
    shades = np.zeros((len(stripes.positions), 4), np.uint8)
    shades[:] = np.where(np.arange(13) % 2, 250, 40).repeat(13)[:, None]
    stripes = replace(stripes, colors=shades)
    scene = kit.scene(
        [kit.quad((-3, -3, 0), (6, 0, 0), (0, 6, 0)), stripes],
        [kit.mirror(), kit.grey(0.9)],
        eye=(0, 0, 5),
        light=kit.lamp((0, 0, 4), 1.0, facing=(0, 0, 1), radiance=(9, 9, 9)),
        sky=(0.6, 0.6, 0.6),
    )
    frame = make(scene, history=32)
    for index in range(8):
        camera = shifted(scene.camera, 0.11 * index)
        frame.run(index, inputs=replace(frame.inputs, camera=camera))
    truth = make(scene)
    truth.inputs = frame.inputs
    truth.render(32, 1000)
    mirror = frame.aov("object") == 0
    assert (frame.aov("history_reflection")[mirror] == 3).mean() > 0.95  # an image that sharp
    # Stripes that lag behind would be off by their contrast, a third of their mean.
    assert error(frame.radiance(), truth.radiance()) < 0.07


def comb(kit: SimpleNamespace, material: int) -> Mesh:
    """Upright bars, a few pixels wide, as one mesh."""
    bars = [kit.quad((-2.2 + 0.35 * i, 0, -0.6), (0.1, 0, 0), (0, 0.5, 0)) for i in range(5)]
    points = np.concatenate([bar.positions for bar in bars])
    faces = np.concatenate([bar.triangles + 4 * i for i, bar in enumerate(bars)])
    return make_mesh("bars", points, faces, material)


def test_while_the_camera_moves_it_beats_no_history_on_each_surface(
    make: Callable[..., HybridFrame], kit: SimpleNamespace
) -> None:
    """A rough floor with shadows, a mirror, a ball of brass whose highlight moves over it, and bars
    in front of each other: what stays behind, or was a neighbour's, costs more than it brings."""
    parts = {
        "floor": (kit.quad((-5, 0, 3), (10, 0, 0), (0, 0, -7)), kit.grey(0.8)),
        "mirror": (kit.quad((-3, 0, -2.5), (6, 0, 0), (0, 2.5, 0), 1), kit.mirror()),
        "ball": (
            kit.sphere((1.3, 0.8, 0.4), 0.8, 2, rings=24),
            Material("brass", (0.9, 0.6, 0.3, 1.0), 1.0, 0.24),
        ),
        "bars": (comb(kit, 3), kit.grey(0.5)),
    }
    scene = kit.scene(
        [mesh for mesh, _ in parts.values()],
        [material for _, material in parts.values()],
        eye=(0.3, 1.6, 4.5),
        target=(0.0, 0.7, 0.0),
        light=kit.lamp((1.5, 4.0, 1.0), 0.6, radiance=(12, 11, 9)),
        sky=(0.1, 0.12, 0.15),
    )
    single, truth = make(scene), make(scene)
    truth.render(64, 1000)
    reference, objects = truth.radiance(), truth.aov("object")
    alone, moved = [], []
    for seed in range(3):
        frame = make(scene, history=16)
        for back in reversed(range(12)):
            camera = shifted(scene.camera, 0.05 * back, 0.01 * back, 0.04 * back)
            frame.run(12 - back, inputs=replace(frame.inputs, camera=camera, seed=100 + seed))
        moved.append(frame.radiance())
    for index in range(8):
        single.run(50 + index)
        alone.append(single.radiance())
    ratio = {}
    for number, name in enumerate(parts):
        seen = objects == number
        noise, found = (
            np.mean([relative_mse(picture[seen], reference[seen]) for picture in pictures])
            for pictures in (alone, moved)
        )
        ratio[name] = found / noise
    assert ratio["floor"] < 0.2 and ratio["mirror"] < 0.9
    assert ratio["ball"] < 0.6 and ratio["bars"] < 1.0


# -- as the scene moves ------------------------------------------------------------------------


def make_passing_box(kit: SimpleNamespace) -> Scene:
    """A box that slides a metre above a bright floor from one end to the other in a second, seen
    from above, and its shadow."""
    scene = kit.scene(
        [kit.quad((-6, 0, 4), (12, 0, 0), (0, 0, -8)), kit.box(1)],
        [kit.grey(0.9), kit.grey(0.1)],
        eye=(0, 9, 5),
        light=kit.lamp((2.0, 8, -3), 0.5, radiance=(60, 60, 60)),
    )
    slide = Channel(
        1, "translation", "LINEAR", np.array([0.0, 1.0]), np.array([[-5.0, 1.2, 0], [5, 1.2, 0]])
    )
    animation = Animation(
        parents=np.full(2, -1),
        translations=np.array([[0, 0, 0], [-5, 1.2, 0]]),
        rotations=np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)),
        scales=np.array([[1.0, 1, 1], [0.7, 0.7, 0.7]]),
        matrices={},
        clips=(Clip("slide", 1.0, (slide,)),),
        skins=(),
        skinned=(),
        instance_nodes=(0, 1),
    )
    floor, mover = scene.instances
    start = kit.place((-5, 1.2, 0), (0.7, 0.7, 0.7))
    mover = replace(mover, lifetime="rigid", transform=start)
    return replace(scene, instances=(floor, mover), animation=animation)


def test_a_box_that_passes_leaves_no_trail(
    make: Callable[..., HybridFrame], kit: SimpleNamespace
) -> None:
    scene = make_passing_box(kit)
    frame, frames = make(scene, history=32), 14
    crossed = np.zeros(SIZE[::-1], bool)
    before: Any = None
    boxed: list[Any] = []
    uncovered_ever = 0
    for index in range(frames):
        inputs = replace(frame.inputs, clip="slide", time=index / (frames - 1))
        assert frame.run(index, inputs=inputs).valid
        objects = frame.aov("object")
        length = frame.aov("history_direct")
        if before is not None:
            uncovered = (before == 1) & (objects == 0)
            assert not length[uncovered].any()
            boxed.append(length[objects == 1])
            uncovered_ever += int(uncovered.sum())
        crossed |= objects == 1
        before = objects
    assert uncovered_ever > 100
    # What the box shows was found again, though it moves.
    assert np.concatenate(boxed[4:-4]).mean() > 2
    trail = crossed & (objects == 0)
    truth = make(scene)
    truth.inputs = frame.inputs
    truth.render(48, 1000)
    reference = truth.radiance()
    truth.run(frames - 1)
    noise = error(truth.radiance()[trail], reference[trail])
    found = frame.radiance()
    assert error(found[trail], reference[trail]) < noise
    assert abs(found[trail].mean() / reference[trail].mean() - 1) < 0.02
    # Nor does its shadow, over all the floor.
    floor = objects == 0
    assert error(found[floor], reference[floor]) < error(truth.radiance()[floor], reference[floor])
    assert abs(found[floor].mean() / reference[floor].mean() - 1) < 0.02


@pytest.mark.parametrize(("word", "change"), [(0, "depth"), (1, "normal"), (2, "object")])
def test_each_difference_alone_ends_what_is_remembered(
    make: Callable[..., HybridFrame], room: PreparedScene, word: int, change: str
) -> None:
    """In the left half of what the frame before showed one thing is another; nothing moves."""
    frame = make(room, history=8)
    frame.run(0)
    kept = frame.data.light_history
    assert kept is not None
    guide = kept.read_arrays()["guide"].reshape(2, SIZE[1], SIZE[0], 4)
    left = guide[int(kept.view["after"]) // (SIZE[0] * SIZE[1]), :, : SIZE[0] // 2, word]
    if change == "depth":
        left[:] = (left.view(np.float32) * np.float32(2.5)).view(np.uint32)
    else:
        left[:] = left + 1 if change == "object" else left ^ np.uint32(0x40004000)
    frame.device.write(kept.resources["guide"], guide)
    frame.run(1)
    covered = frame.aov("object") >= 0
    sent = covered & (frame.aov("roughness") <= frame.options.roughness_cutoff)
    for light, there in (("direct", covered), ("reflection", sent)):
        length = frame.aov(f"history_{light}")
        assert not length[:, : SIZE[0] // 2].any() and not length[~there].any()
        right = there.copy()
        right[:, : SIZE[0] // 2] = False
        assert (length[right] == 1).all() and right.sum() > 50
