"""Light that is remembered over frames: what a picture at rest converges to, what begins anew, and
the option."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.gpu.errors import UserError
from engine.scene.camera import look_at
from passes.display import DisplayPass
from passes.display_records import DISPLAY_UNIFORMS
from passes.hybrid import FrameOptions, HybridFrame
from passes.light_history import LIGHTS, filter_bytes
from passes.prepare import PreparedScene, prepare
from passes.twins.display_filtered import display_filtered
from passes.twins.display_history import display_history
from passes.twins.read_back import read_resources
from tests.passes.history.remembered import SIZE, shifted

# -- at rest -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["pictures", "samples", "both"])
def test_at_rest_it_is_the_plain_mean(
    make: Callable[..., HybridFrame], room: PreparedScene, how: str
) -> None:
    """Frame by frame, as further samples of a picture, and as these after those; ambient occlusion
    included. A mean has no bias; what halves round is all that may differ."""
    frames = 12
    plain = make(room, occlusion=True)
    assert plain.render(frames).valid
    frame = make(room, occlusion=True, history=64)
    for index in range(frames):
        first = {"pictures": index, "samples": 0, "both": min(index, 6)}[how]
        assert frame.run(index, 1 + index - first).valid
    expected, found = plain.radiance(), frame.radiance()
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)
    assert abs(found.mean() / expected.mean() - 1) < 5e-4
    length = frame.aov("history_direct")[frame.aov("object") >= 0]
    assert (length == frames - 1).all()
    # So that the comparison says something: a few samples less are another picture.
    plain.render(frames - 2)
    assert np.abs(plain.radiance() - expected).max() > 0.02


def test_what_is_remembered_fades(make: Callable[..., HybridFrame], room: PreparedScene) -> None:
    """The newest of `history` frames counts one part of so many."""
    frame, single = make(room, history=2), make(room)
    mean: Any = 0.0
    for index in range(4):
        frame.run(index)
        single.run(index)
        mean = single.radiance() if index == 0 else 0.5 * (mean + single.radiance())
    np.testing.assert_allclose(frame.radiance(), mean, rtol=2e-3, atol=1e-3)
    assert (frame.aov("history_direct")[frame.aov("object") >= 0] == 1).all()


def test_a_frame_drawn_once_more_takes_its_place(
    make: Callable[..., HybridFrame], room: PreparedScene
) -> None:
    once, often = make(room, history=8), make(room, history=8)
    for index in range(3):
        once.run(index)
        for _ in range(1 + index):
            often.run(index)
    for _ in often.steps(3, budget_ms=0.01):
        break  # left: no picture came of it
    assert once.run(3).valid and often.run(3).valid
    assert once.radiance().tobytes() == often.radiance().tobytes()


def test_the_same_frames_give_the_same_bits(
    make: Callable[..., HybridFrame], room: PreparedScene
) -> None:
    found = []
    for _ in range(2):
        frame = make(room, history=8, denoiser=2)
        for index in range(4):
            camera = shifted(room.scene.camera, 0.05 * index)
            frame.run(index, inputs=replace(frame.inputs, camera=camera))
        found.append(frame.radiance().tobytes())
    assert found[0] == found[1]


# -- what begins anew --------------------------------------------------------------------------


def test_lost_continuity_is_told(make: Callable[..., HybridFrame], room: PreparedScene) -> None:
    frame = make(room, history=8)
    camera, light = room.scene.camera, room.scene.light
    away = look_at(camera.position, 2 * camera.position - np.zeros(3), camera.y_fov)
    told = [
        ({}, "first picture"),
        ({}, ""),
        ({"camera": shifted(camera, 0.1)}, ""),
        ({"camera": away}, "camera cut"),
        ({"camera": shifted(away, 100.0)}, "camera cut"),
        ({"light": replace(light, radiance=(1.0, 1.0, 1.0))}, "other light"),
        ({"roughness_cutoff": 0.3}, "other rays"),
        ({"previous_camera": camera}, "motion is from another view"),
    ]
    for index, (changes, reason) in enumerate(told):
        inputs = replace(frame.inputs, previous_camera=None)
        stats = frame.run(index, inputs=replace(inputs, **changes))
        assert stats.history_lost == reason, changes
        if reason:
            assert not frame.aov("history_direct").any()
    assert frame.run(9, 2, replace(frame.inputs, camera=camera)).history_lost.startswith("a sample")
    assert frame.history_losses["camera cut"] == 2 and "" not in frame.history_losses
    assert sum(frame.history_losses.values()) == len(told) - 2 + 1


def test_what_is_hidden_leaves_no_shadow(make: Callable[..., HybridFrame], kit: Any) -> None:
    """The light on a floor is what it is without the board that was hidden, from the next frame
    on, and with it again once that is shown."""
    floor = kit.quad((-6, 0, 6), (12, 0, 0), (0, 0, -12))
    board = kit.quad((-1, 2, 1), (2, 0, 0), (0, 0, -2), 1)
    lamp = kit.lamp((0, 5, 0), 0.2, radiance=(200.0,) * 3)
    scene = kit.scene([floor, board], [kit.grey(0.8), kit.grey(0.5)], eye=(0, 1.5, 6), light=lamp)
    prepared = prepare(scene, BuildOptions(builder="lbvh", reinsertion=0), "object")
    frame, plain = make(prepared, history=16), make(prepared)
    for index in range(4):
        frame.run(index)
    pictures = []
    for hidden in ({1}, set()):
        frame.scene.set_hidden(hidden)
        assert frame.run(9).history_lost == "other instances are hidden"
        plain.run(9)
        pictures.append(plain.radiance())
        np.testing.assert_allclose(frame.radiance(), pictures[-1], rtol=2e-3, atol=1e-4)
        assert frame.run(10).history_lost == ""
    assert pictures[0].mean() > 1.1 * pictures[1].mean()


def test_a_frame_that_missed_rays_is_not_remembered(
    make: Callable[..., HybridFrame], room: PreparedScene
) -> None:
    frame = make(room, history=8, queue_fraction=0.05)
    assert not frame.run(0).valid
    stats = frame.run(1)
    while not stats.valid:
        stats = frame.run(1)
    assert stats.history_lost == "the frame before missed rays"
    assert not frame.aov("history_direct").any()
    assert frame.run(2).history_lost == ""


# -- the option --------------------------------------------------------------------------------


def test_off_there_is_nothing_of_it(make: Callable[..., HybridFrame], room: PreparedScene) -> None:
    frame = make(room)
    names = [item.name for item in frame.passes]
    assert not [n for n in names if n.startswith(("light", "history", "denoise", "motion"))]
    used = filter_bytes(replace(frame.options, history=1, denoiser=2))
    assert used and not set(used) & set(frame.data.resources)
    assert not [o.name for o in frame.outputs() if o.light or o.name == "motion"]
    assert frame.run(0).history_lost == "" and frame.history_losses == {}
    with pytest.raises(UserError, match="unknown aov 'history_direct'"):
        frame.aov("history_direct")


def test_passes_and_outputs_by_option(make: Callable[..., HybridFrame], kit: Any) -> None:
    scene = kit.scene([kit.box()])
    both = make(scene, history=4, denoiser=2)
    names = [item.name for item in both.passes]
    assert names[names.index("light/direct") + 1 :] == [
        *("history/direct", "history/reflection", "denoise/reflection/0", "denoise/reflection/1"),
        *("denoise/direct/0", "denoise/direct/1", "composite"),
    ]
    assert "motion" in names
    alone = [item.name for item in make(scene, denoiser=1).passes]
    assert {"denoise/direct/samples", "denoise/direct/0"} < set(alone) and "motion" not in alone
    shown = {o.name for o in both.outputs()}
    assert shown > {f"{kind}_{light}" for kind in ("history", "filtered") for light in LIGHTS}


def test_outputs_are_shown_as_their_twins_say(
    make: Callable[..., HybridFrame], room: PreparedScene
) -> None:
    frame = make(room, history=8)
    for index in range(4):
        frame.run(index)
    display = DisplayPass(frame.device, *SIZE)
    arrays = read_resources(frame.data, frame.inputs)
    uniforms = np.zeros((), DISPLAY_UNIFORMS.dtype)
    uniforms["high"] = 4.0
    for light in LIGHTS:
        shown = np.zeros((*SIZE[::-1], 4), np.uint8)
        history = arrays[f"{light}_history"]
        display_history(arrays["frame"], uniforms, arrays["filter_view"], history, shown)
        display.show(frame, f"history_{light}", value_range=(0.0, 4.0))
        picture = display.read_picture()
        assert np.abs(picture.astype(int) - shown[..., :3]).max() <= 1
        assert picture.max() == 191  # three of four
        display_filtered(arrays["frame"], arrays[f"{light}_filtered"], shown)
        display.show(frame, f"filtered_{light}")
        assert np.abs(display.read_picture().astype(int) - shown[..., :3]).max() <= 1
    y, x = np.argwhere(frame.aov("history_direct") == 3)[0]
    assert display.read_value(frame, "history_direct", int(x), int(y)) == "3 frames"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"history": -1}, "history is 0 to 256 frames, not -1"),
        ({"history": 257}, "history is 0 to 256 frames, not 257"),
        ({"denoiser": 6}, "the denoiser has 0 to 5 rounds, not 6"),
    ],
)
def test_values_that_there_are_not(options: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        FrameOptions(8, 8, **options)
