"""Boxes of what moves hold it in every pose; views see what has a corner in them, and those that
see nothing move are kept."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.scene.pose import posed
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FRAME_UNIFORMS, frame_inputs
from passes.hybrid import HybridFrame
from passes.mover_boxes import MoverBoxes
from passes.raster_views import light_views, probe_views
from passes.view_culling import ObjectBoxes, PosedBoxes, frusta, moving_objects
from tests.passes.poses.kept_layers import FACES, FALLBACK, MAPS, STILL, same, shown

TIMES = (0.2, 0.9, 1.9)


@pytest.fixture(scope="module")
def scene(figure: Any) -> Scene:
    """Whose tube bends and does not bulge: of what is morphed no box is known."""
    found: Scene = figure.scene
    assert found.animation is not None
    (tube,) = found.animation.skinned
    animation = replace(found.animation, skinned=(replace(tube, morph=None),))
    return replace(found, animation=animation)


def test_what_moves_is_in_its_box(scene: Scene, figure: Any, rng: np.random.Generator) -> None:
    animation = scene.animation
    assert animation is not None
    boxes = MoverBoxes(scene, moving_objects(scene))
    names = [scene.instances[i].name for i in boxes.objects]
    assert (
        len(names) == 4 and sum(scene.instances[i].lifetime == "rigid" for i in boxes.objects) == 3
    )
    clip = animation.clip(figure.clip)
    slack = []
    for time in rng.uniform(0, 2, 12):
        center, half = boxes.boxes(animation.worlds(clip, time, loop=False))
        there = posed(scene, clip, time, loop=False)
        for place, number in enumerate(boxes.objects):
            instance = there.instances[number]
            at = there.meshes[instance.mesh].positions @ instance.transform[:3, :3].T
            at = at + instance.transform[:3, 3]
            reach = np.abs(at - center[place]).max(axis=0)
            assert (reach <= half[place] + 1e-5).all(), (names[place], time)
            slack.append(np.prod(np.ptp(at, axis=0) / 2) / np.prod(half[place]))
    assert np.median(slack) > 0.3  # they are no larger than they need be
    # In no other pose is it there.
    center, half = boxes.boxes(animation.worlds(clip, 0.5, loop=False))
    other, _ = boxes.boxes(animation.worlds(clip, 1.0, loop=False))
    assert (np.abs(other - center) > 0.05).any(axis=1).all()


def test_views_see_whatever_has_a_corner_in_them(room: Any, rng: np.random.Generator) -> None:
    """From random points, by the views' own matrices; and not everything."""
    scene, boxes = room.scene, ObjectBoxes(room)
    low, high = room.bounds
    picture = np.zeros((), FRAME_UNIFORMS.dtype)
    at = [
        scene.meshes[i.mesh].positions @ i.transform[:3, :3].T + i.transform[:3, 3]
        for i in scene.instances
    ]
    found = []
    for origin in rng.uniform(low, high, (8, 3)):
        lamp = replace(scene.light, center=origin)
        cube = probe_views(replace(frame_inputs(room, FrameOptions(8, 8)), probe=origin))
        for view in (*cube, *light_views(lamp)):
            seen = boxes.still(frusta([view]))[0]
            matrix = view.record(picture, 8)["view_projection"].astype(np.float64)
            for number in np.flatnonzero(~boxes.move):
                x, y, _, w = matrix[:, :3] @ at[number].T + matrix[:, 3:]
                inside = (w > 0) & (np.maximum(np.abs(x), np.abs(y)) < w)
                assert seen[number] or not inside.any(), (number, view)
                found.append((bool(seen[number]), bool(inside.any())))
    by_box, by_corner = np.array(found).mean(axis=0)
    assert 0.1 < by_corner <= by_box < 0.8


def test_of_what_is_morphed_no_box_is_known(figure: Any) -> None:
    found = MoverBoxes(figure.scene, moving_objects(figure.scene))
    lifetimes = [figure.scene.instances[i].lifetime for i in found.objects]
    assert lifetimes == ["rigid"] * 3


def test_views_that_see_nothing_move_are_kept(
    scene: Scene, figure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the pictures are those of frames that draw everything that moves into every view."""
    eye = np.array([0.4, 0.7, 2.6])
    frame = figure.frame(scene, "object", **FALLBACK)
    inputs = replace(frame.inputs, clip=figure.clip, time=0.0, probe=eye)
    frame.run(0, inputs=inputs)
    frames = []
    for time in TIMES:
        stats = frame.run(0, inputs=replace(inputs, time=time))
        frames.append((set(stats.reused), shown(frame)))
    kept = [len(reused & (MAPS | FACES)) for reused, _ in frames]
    assert all(STILL <= reused for reused, _ in frames)
    assert max(kept) >= 4 and min(kept) < len(MAPS | FACES)
    assert all("probe/light" not in reused for reused, _ in frames)

    def everywhere(self: PosedBoxes, views: Any) -> Any:
        return np.repeat(self.move[None], len(views.origins), axis=0)

    monkeypatch.setattr(PosedBoxes, "seen", everywhere)
    other = HybridFrame(frame.device, frame.scene.prepared, frame.options, frame.scene)
    for time, (_, found) in zip(TIMES, frames, strict=True):
        stats = other.run(0, inputs=replace(inputs, time=time))
        assert set(stats.reused) <= STILL
        same(found, shown(other))
