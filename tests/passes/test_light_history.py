"""Light that is remembered over frames: what a picture at rest converges to, what is found again as
things move, and what is not."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from engine.gpu.errors import UserError
from engine.scene.animation import Animation, Clip
from engine.scene.camera import Camera, look_at
from engine.scene.channel import Channel
from engine.scene.material import Material
from engine.scene.mesh import Mesh, make_mesh
from engine.scene.scene import Scene
from passes.display import DisplayPass
from passes.display_records import DISPLAY_UNIFORMS
from passes.gpu_scene import GpuScene
from passes.hybrid import FrameOptions, HybridFrame
from passes.light_history import LIGHTS, filter_bytes
from passes.prepare import PreparedScene, prepare
from passes.twins.display_filtered import display_filtered
from passes.twins.display_history import display_history
from passes.twins.read_back import read_resources

SIZE = (44, 32)
FAST = BuildOptions(builder="lbvh", reinsertion=0)
FOUND = 0.02  # frames, of a length that bilinear weights and halves round


@pytest.fixture(scope="module")
def make(device: Any) -> Callable[..., HybridFrame]:
    """make(scene, **FrameOptions fields): a frame whose primary rays are traced."""
    on_gpu: dict[int, tuple[PreparedScene, GpuScene]] = {}

    def maker(scene: Scene | PreparedScene, **options: Any) -> HybridFrame:
        if id(scene) not in on_gpu:
            prepared = scene if isinstance(scene, PreparedScene) else prepare(scene, FAST)
            on_gpu[id(scene)] = prepared, GpuScene(device, prepared)
        prepared, placed = on_gpu[id(scene)]
        settings = FrameOptions(*SIZE, gbuffer="rays", **options)
        return HybridFrame(device, prepared, settings, placed)

    return maker


def shifted(camera: Camera, *by: float) -> Camera:
    """Moved in its own space: right, up, back."""
    matrix = np.eye(4)
    matrix[:3, 3] = by
    return replace(camera, transform=camera.transform @ matrix)


def error(picture: Any, reference: Any) -> float:
    """Root of the mean square, of the reference's mean."""
    return float(np.sqrt(np.mean((picture - reference) ** 2)) / reference.mean())


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


def comb(kit: SimpleNamespace, material: int) -> Mesh:
    """Upright bars, a few pixels wide, as one mesh."""
    bars = [kit.quad((-2.2 + 0.35 * i, 0, -0.6), (0.1, 0, 0), (0, 0.5, 0)) for i in range(5)]
    points = np.concatenate([bar.positions for bar in bars])
    faces = np.concatenate([bar.triangles + 4 * i for i, bar in enumerate(bars)])
    return make_mesh("bars", points, faces, material)


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


def relative_error(picture: Any, reference: Any) -> float:
    """Relative MSE, as treeline/image_error.py has it."""
    return float(np.mean((picture - reference) ** 2 / (reference**2 + 0.01)))


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
            np.mean([relative_error(picture[seen], reference[seen]) for picture in pictures])
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
