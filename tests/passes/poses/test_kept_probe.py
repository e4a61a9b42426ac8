"""The probe of a moving camera is kept while that is near where it was drawn, what is looked up in
it is seen from there, and nothing else that changes is kept with it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.scene.camera import look_at
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FrameInputs, frame_inputs
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.probe_place import ProbePlace
from tests.passes.poses.kept_layers import FACES, FALLBACK, LIT, MAPS, STILL, same, shown, whole

PROBE = FACES | LIT
DISTANCE = 0.1  # of the scene's diagonal


def make(scene: GpuScene, **options: Any) -> HybridFrame:
    settings = {**FALLBACK, "probe_distance": DISTANCE, **options}
    return HybridFrame(scene.device, scene.prepared, FrameOptions(48, 32, **settings), scene)


def walked(inputs: FrameInputs, part: float, moves: bool = True) -> FrameInputs:
    """The view from aside, by a part of DISTANCE."""
    away = part * inputs.probe_distance
    eye = inputs.camera.position + away * inputs.camera.transform[:3, 0]
    camera = look_at(eye, np.array([0.0, 0.5, 0.0]), inputs.camera.y_fov)
    return replace(inputs, camera=camera, camera_moves=moves)


@pytest.fixture(scope="module")
def scene(device: Any, room: Any) -> GpuScene:
    return GpuScene(device, room)


def test_a_probe_is_kept_near_where_it_was_drawn(scene: GpuScene) -> None:
    frame = make(scene)
    first = replace(frame.inputs, camera_moves=True)
    assert frame.run(0, inputs=first).reused == ()
    assert first.probe_distance == pytest.approx(DISTANCE * scene.prepared.diagonal)
    drawn = first.camera.position
    # From step to step it goes less than the distance: what counts is where the probe was drawn.
    for part in (0.4, 0.8, -0.9):
        near = walked(first, part)
        assert set(frame.run(0, inputs=near).reused) == MAPS | PROBE
        np.testing.assert_array_equal(frame.inputs.probe_origin, drawn)
        kept = shown(frame)
        # As if the probe had been drawn there for this picture.
        same(kept, whole(frame, replace(near, probe=drawn)))
        own = whole(frame, replace(near, camera_moves=False))
        assert (kept["probe"] != own["probe"]).any() and (kept["picture"] != own["picture"]).any()
    far = walked(first, 1.1)
    assert set(frame.run(0, inputs=far).reused) == MAPS
    np.testing.assert_array_equal(frame.inputs.probe_origin, far.camera.position)
    same(shown(frame), whole(frame, far))
    assert set(frame.run(0, inputs=walked(far, 0.9)).reused) == MAPS | PROBE
    # Back to where it began: from there the new one is too far away.
    assert set(frame.run(0, inputs=first).reused) == MAPS


def test_a_camera_at_rest_has_its_own_probe(scene: GpuScene) -> None:
    """Whatever was drawn before; further samples of a picture keep what its first one has."""
    frame = make(scene)
    first = frame.inputs
    frame.run(0)
    near = walked(first, 0.5)
    for sample in range(2):
        stats = frame.run(sample, sample + 1, inputs=near)
        assert set(stats.reused) == MAPS | PROBE
    rest = walked(first, 0.5, moves=False)
    assert set(frame.run(0, inputs=rest).reused) == MAPS
    same(shown(frame), whole(frame, rest))
    assert set(frame.run(1, 2, inputs=rest).reused) == MAPS | PROBE


@pytest.mark.parametrize("options", [{"probe_distance": 0.0}, {"probe_position": "scene"}])
def test_without_a_distance_the_probe_is_never_behind(scene: GpuScene, options: Any) -> None:
    frame = make(scene, **options)
    frame.run(0)
    near = walked(replace(frame.inputs, probe_distance=1.0), 1e-3)
    near = replace(near, probe_distance=frame.inputs.probe_distance)
    redrawn = set() if options.get("probe_position") == "scene" else PROBE
    assert set(frame.run(0, inputs=near).reused) == (MAPS | PROBE) - redrawn
    same(shown(frame), whole(frame, near))


def test_pictures_of_a_path_depend_on_the_path_alone(scene: GpuScene) -> None:
    """In any frame, whatever that drew before."""
    found = []
    for before in (None, 0.3):
        frame = make(scene)
        first = frame.inputs
        if before is not None:
            frame.run(0, inputs=walked(first, before, moves=False))
        steps = [walked(first, part, moves=part > 0) for part in (0.0, 0.7, 1.4, 2.0, 2.6)]
        drawn = [frozenset(frame.run(0, inputs=step).reused) & PROBE for step in steps]
        found.append((drawn, shown(frame)))
    (redrawn, pictures), (again, others) = found
    assert redrawn == again == [frozenset(), PROBE, frozenset(), PROBE, frozenset()]
    same(pictures, others)


def test_what_moves_is_drawn_into_a_kept_probe(figure: Any) -> None:
    frame = figure.frame(figure.scene, "object", **FALLBACK, probe_distance=DISTANCE)
    first = replace(frame.inputs, clip=figure.clip, time=0.0)
    frame.run(0, inputs=first)
    before = shown(frame)
    moment = replace(walked(first, 0.5), time=0.7)
    stats = frame.run(0, inputs=moment)
    assert STILL <= set(stats.reused) and "probe/light" not in stats.reused
    np.testing.assert_array_equal(frame.inputs.probe_origin, first.camera.position)
    found = shown(frame)
    same(found, whole(frame, replace(moment, probe=first.camera.position)))
    assert (found["probe"] != before["probe"]).any()


def test_what_is_hidden_is_in_no_kept_probe(device: Any, room: Any) -> None:
    prepared = prepare(room.scene, BuildOptions(builder="lbvh", reinsertion=0), "object")
    frame = make(GpuScene(device, prepared))
    first = frame.inputs
    frame.run(0)
    frame.scene.set_hidden({3})
    near = walked(first, 0.5)
    assert frame.run(0, inputs=near).reused == ()
    same(shown(frame), whole(frame, replace(near, probe=first.camera.position)))


def test_places(scene: GpuScene) -> None:
    inputs = replace(frame_inputs(scene.prepared, FrameOptions(8, 8)), probe_distance=2.0)

    def at(x: float, moves: bool = True, probe: Any = None) -> FrameInputs:
        camera = look_at(np.array([x, 1.0, 4.0]), np.zeros(3), 0.9)
        return replace(inputs, camera=camera, camera_moves=moves, probe=probe)

    place = ProbePlace()
    fixed = np.array([9.0, 9.0, 9.0])
    path = [at(0), at(2.0), at(2.1), at(0.2), at(0.0), at(0.5, moves=False), at(2.4), at(2.6)]
    found = [place.choose(step)[0] for step in path]
    assert found == [0, 0, 2.1, 2.1, 0.0, 0.5, 0.5, 2.6]
    assert place.choose(at(2.6, probe=fixed)) is fixed
    assert place.choose(at(2.6))[0] == 2.6
