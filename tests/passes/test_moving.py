"""Frames of scenes that move: what rays and rasteriser see is the scene as it would be built in
that pose, whatever was drawn before."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.rebuild_policy import PolicyOptions, RebuildPolicy
from bvh.validate import validate
from engine.gpu.errors import UserError
from engine.scene.camera import look_at
from engine.scene.light import RectLight
from engine.scene.load import load_scene
from engine.scene.pose import posed, timeline
from engine.scene.records import VERTEX
from engine.scene.scene import Instance, Scene
from engine.scene.upload import pack_scene
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare
from passes.rebuilding import rebuild_options
from passes.twins.read_back import read_resources

SIZE = (96, 54)
FAST = BuildOptions(builder="lbvh", reinsertion=0)
# One triangle a block in world space: the same arithmetic whatever the tree.
EXACT = BuildOptions(builder="lbvh", reinsertion=0, nodes="fp32", leaf=1)
MOVING = [("Fox", "Run"), ("lumberjack", "Poses"), ("CesiumMilkTruck", "clip 0")]


@pytest.fixture(scope="module")
def scene_of(shared_scenes: Any) -> Callable[[str], Scene]:
    scenes: dict[str, Scene] = {}

    def load(name: str) -> Scene:
        if name not in scenes:
            scenes[name] = load_scene(shared_scenes / f"{name}.glb")
        return scenes[name]

    return load


@pytest.fixture(scope="module")
def stage(scene_of: Callable[[str], Scene], kit: Any) -> Scene:
    """The fox between a mirror that it stands on and a light: shadow and reflection on the floor
    are its own."""
    fox = scene_of("Fox")
    assert fox.animation is not None
    low, high = fox.bounds()
    size = float((high - low).max())
    middle = 0.5 * (low + high)
    corner = np.array([middle[0] - 2 * size, low[1] - 0.02 * size, middle[2] - 2 * size])
    floor = kit.quad(corner, [0, 0, 4 * size], [4 * size, 0, 0], material=len(fox.materials))
    light = RectLight(
        center=np.array([middle[0] + size, high[1] + 2 * size, middle[2]]),
        half_u=np.array([0.1 * size, 0.0, 0.0]),
        half_v=np.array([0.0, 0.0, 0.1 * size]),
        radiance=np.full(3, 200.0),
    )
    eye = middle + size * np.array([1.4, 1.1, 1.2])
    return replace(
        fox,
        name="stage",
        materials=(*fox.materials, kit.mirror(base_color=(0.7, 0.7, 0.7, 1.0), roughness=0.1)),
        meshes=(*fox.meshes, floor),
        instances=(*fox.instances, Instance("floor", len(fox.meshes), np.eye(4))),
        camera=look_at(eye, middle, fox.camera.y_fov),
        light=light,
        animation=replace(fox.animation, instance_nodes=(*fox.animation.instance_nodes, 0)),
    )


def make_frame(
    device: Any, scene: Scene | PreparedScene, on_gpu: GpuScene | None = None, **options: Any
) -> HybridFrame:
    prepared = scene if isinstance(scene, PreparedScene) else prepare(scene, FAST)
    return HybridFrame(device, prepared, FrameOptions(*SIZE, **options), on_gpu)


def show(frame: HybridFrame, clip: str | None, time: float = 0.0, **more: Any) -> FrameStats:
    """Draws the scene at that time."""
    stats = frame.run(0, inputs=replace(frame.inputs, clip=clip, time=time, **more))
    assert stats.valid
    return stats


def same_pictures(a: Any, b: Any, apart: float = 0.01) -> None:
    """But for the outlines, where a rounding decides."""
    different = (np.abs(a.astype(int) - b.astype(int)) > 3).any(axis=-1)
    assert different.mean() <= apart


# -- the pose ------------------------------------------------------------------------------------


def test_hits_are_those_of_a_scene_built_in_that_pose(device: Any, stage: Scene) -> None:
    """From the same vertices, bit for bit: another tree, the same rays and the same hits."""
    prepared = prepare(stage, EXACT)
    frame = make_frame(device, prepared)
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
        other = make_frame(device, fresh)
        show(other, None)
        assert other.result_hash() == hashes[-1]
        assert (other.image() == frame.image()).all()
        for name in ("object", "primitive", "depth", "normal"):
            assert np.array_equal(frame.aov(name), other.aov(name), equal_nan=True)
    assert len(set(hashes)) == 3


@pytest.mark.parametrize(("name", "clip"), MOVING)
def test_pictures_are_those_of_a_scene_posed_on_the_cpu(
    device: Any, scene_of: Callable[[str], Scene], name: str, clip: str
) -> None:
    scene = scene_of(name)
    assert scene.animation is not None
    found = scene.animation.clip(clip)
    prepared = prepare(scene, FAST)
    frame = make_frame(device, prepared)
    show(frame, None)
    rest = frame.image()
    for part, gbuffer in ((0.35, "raster"), (0.8, "rays")):
        frame = make_frame(device, prepared, gbuffer=gbuffer)
        show(frame, clip, part * found.duration)
        other = make_frame(device, posed(scene, found, part * found.duration), gbuffer=gbuffer)
        show(other, None)
        same_pictures(frame.image(), other.image())
        assert (frame.image() != rest).any()
        assert frame.moving is not None and frame.moving.messages() == []


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_a_wheel_turns_for_raster_and_rays(
    device: Any, scene_of: Callable[[str], Scene], gbuffer: str
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
    frame = make_frame(device, prepared, gbuffer=gbuffer)
    show(frame, None)
    rest = frame.aov("primitive")
    clip = animation.clip()
    time = 0.3 * clip.duration
    show(frame, clip.name, time)
    there = posed(wheels, clip, time)
    built = replace(prepared, scene=there, bvh=prepare(there, EXACT).bvh, pack=pack_scene(there))
    other = make_frame(device, built, gbuffer=gbuffer)
    show(other, None)
    seen, expected = frame.aov("primitive"), other.aov("primitive")
    assert (seen >= 0).mean() > 0.2
    assert (seen == expected).mean() > 0.995
    assert (seen[seen >= 0] != rest[seen >= 0]).mean() > 0.5
    normals = [f.aov("normal")[(seen == expected) & (seen >= 0)] for f in (frame, other)]
    np.testing.assert_allclose(*normals, atol=2e-3)
    same_pictures(frame.image(), other.image(), 0.005)


def test_shadow_and_reflection_follow(device: Any, stage: Scene) -> None:
    """On the floor, which does not move: all that changes there came through a ray."""
    frame = make_frame(device, stage)
    pictures, floors = [], []
    for time in (0.0, 0.5):
        show(frame, "Run", time)
        names = [instance.name for instance in frame.scene.prepared.scene.instances]
        floors.append(frame.aov("object") == names.index("floor"))
        pictures.append(frame.image().astype(int))
        other = make_frame(device, posed(stage, stage.animation.clip("Run"), time))
        show(other, None)
        same_pictures(frame.image(), other.image(), 0.02)
    changed = (np.abs(pictures[0] - pictures[1]) > 20).any(axis=-1)
    assert (changed & floors[0] & floors[1]).sum() > 60


# -- time ----------------------------------------------------------------------------------------


def test_a_clip_repeats_or_stays(device: Any, scene_of: Callable[[str], Scene]) -> None:
    frame = make_frame(device, scene_of("Fox"))
    duration = frame.timeline()[2].duration

    def at(time: float, loop: bool = True) -> str:
        show(frame, "Run", time, loop=loop)
        return frame.result_hash()

    start, middle, end = at(0.0), at(0.25), at(duration)
    assert start != middle
    assert at(-7.0) == at(-7.0, loop=False) == start
    assert at(duration + 0.25, loop=False) == at(1e300, loop=False) == end
    again = (duration + 0.25) % duration
    assert again == pytest.approx(0.25) and at(duration + 0.25) == at(again) != end
    at(1e300)
    for bad in (np.inf, np.nan):
        with pytest.raises(UserError, match="finite"):
            at(bad)
    assert at(0.0) == start


def test_equal_times_are_equal_frames(device: Any, stage: Scene) -> None:
    frame = make_frame(device, stage)
    seen = []
    for _ in range(3):
        for time in (0.2, 0.7):
            show(frame, "Run", time)
            seen.append((time, frame.result_hash(), frame.image().tobytes()))
    assert len(set(seen)) == 2


def test_without_a_clip_nothing_is_touched(device: Any, stage: Scene) -> None:
    prepared = prepare(stage, FAST)
    frame, untouched = make_frame(device, prepared), make_frame(device, prepared)
    show(untouched, None, 3.0)
    for update in ("refit", "rebuild"):
        frame = make_frame(device, prepared, update=update)
        show(frame, "Run", 0.4)
        assert frame.result_hash() != untouched.result_hash()
        show(frame, None)
        assert frame.result_hash() == untouched.result_hash()
        assert frame.bvh() is prepared.bvh
        for name in ("bvh", "tables", "geometry", "parents"):
            held = np.ascontiguousarray(frame.scene.arrays[name]).view(np.uint32).reshape(-1)
            assert (device.read(frame.scene.buffers[name], count=len(held)) == held).all()


def test_frames_of_one_scene_at_different_times(device: Any, stage: Scene) -> None:
    """Each poses the scene as it begins; a further sample knows that another did."""
    prepared = prepare(stage, FAST)
    on_gpu = GpuScene(device, prepared)
    a, b = (make_frame(device, prepared, on_gpu) for _ in range(2))
    alone = []
    for time in (0.2, 0.7):
        show(a, "Run", time)
        a.run(1, 2)
        alone.append((a.result_hash(), a.image().tobytes()))
    show(a, "Run", 0.2)
    words = a.bvh_words()
    show(b, "Run", 0.7)
    assert (b.bvh_words() != words).any() and (a.bvh_words() == words).all()
    a.run(1, 2)
    assert (a.result_hash(), a.image().tobytes()) == alone[0]
    b.run(1, 2)
    assert (b.result_hash(), b.image().tobytes()) == alone[1]


def test_frames_in_parts_between_each_other(device: Any, stage: Scene) -> None:
    prepared = prepare(stage, EXACT)
    on_gpu = GpuScene(device, prepared)
    updates = ("refit", "rebuild", "refit")
    frames = [make_frame(device, prepared, on_gpu, update=update) for update in updates]
    poses = [("Run", 0.2), ("Run", 0.7), (None, 0.0)]
    alone = []
    for frame, (clip, time) in zip(frames, poses, strict=True):
        show(frame, clip, time)
        alone.append((frame.result_hash(), frame.image().tobytes()))
    steps = {i: f.steps(inputs=f.inputs, budget_ms=1.0) for i, f in enumerate(frames)}
    between = {}
    taken = 0
    while steps:
        for i in list(steps):
            taken += 1
            stats = next(steps[i])
            if stats is not None:
                assert stats.valid
                between[i] = (frames[i].result_hash(), frames[i].image().tobytes())
                del steps[i]
    assert taken > 12 and [between[i] for i in range(3)] == alone


def test_a_frame_that_goes_on_holds_its_pose(device: Any, stage: Scene) -> None:
    prepared = prepare(stage, FAST)
    frame = make_frame(device, prepared)
    show(frame, "Run", 0.2)
    moving, before = frame.moving, frame.bvh_words()
    assert moving is not None
    show(frame, "Walk", 0.5)
    assert (frame.bvh_words() != before).any()
    moving.hold("Run", 0.2, loop=True)
    assert (frame.scene.bvh().words == before).all()
    moving.hold(None, 0.0, loop=True)
    assert frame.scene.bvh() is prepared.bvh
    assert frame.bvh() is not prepared.bvh


# -- how trees follow ----------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["refit", "rebuild"])
def test_the_validator_accepts_what_the_gpu_wrote(device: Any, stage: Scene, update: str) -> None:
    frame = make_frame(device, stage, update=update)
    for time in (0.1, 0.6):
        show(frame, "Run", time)
        bvh = frame.bvh()
        assert validate(bvh) == []
        assert (frame.bvh_words() == bvh.words).all()
        assert (bvh.words[: len(frame.scene.prepared.bvh.words)] != frame.scene.arrays["bvh"]).any()


def test_refits_and_builds_give_the_same_hits(device: Any, stage: Scene) -> None:
    prepared = prepare(stage, EXACT)
    frames = [make_frame(device, prepared, update=u) for u in ("refit", "rebuild")]
    for time in (0.1, 0.6):
        pictures = []
        for frame in frames:
            show(frame, "Run", time)
            pictures.append(frame.image())
        (ours,), (theirs,) = ([f.moving.decisions[0].action] for f in frames if f.moving)
        assert (ours, theirs) == ("refit", "rebuild")
        assert frames[0].result_hash() == frames[1].result_hash()
        assert (pictures[0] == pictures[1]).all()
    names = [{item.name for item in frame.passes} for frame in frames]
    assert "update/build" not in names[0] and "update/refit" not in names[1]


def with_holes(stage: Scene, squares: int) -> Scene:
    """The fox with holes: every other square of its texture, so many across; of one that is all."""
    pixels = stage.textures[0].pixels.copy()
    row, column = np.indices(pixels.shape[:2]) * squares // len(pixels)
    pixels[(row + column) % 2 == 0, 3] = 0
    coat = replace(stage.materials[0], alpha_mode="MASK", base_color_texture=0)
    return replace(
        stage,
        textures=(replace(stage.textures[0], pixels=pixels), *stage.textures[1:]),
        materials=(coat, *stage.materials[1:]),
    )


def test_holes_stay_where_they_are_when_a_tree_is_built_anew(device: Any, stage: Scene) -> None:
    scene = with_holes(stage, 6)
    hashes, asked = set(), []
    for opacity in ("material", "triangle"):
        prepared = prepare(scene, replace(EXACT, opacity=opacity))
        assert opacity == "material" or min(prepared.opacity_counts().values()) > 10
        for update in ("refit", "rebuild"):
            frame = make_frame(device, prepared, update=update, count=True)
            asked.append(show(frame, "Run", 0.6).rays["shadow"].any_hits)
            hashes.add(frame.result_hash())
            assert validate(frame.bvh()) == []
    assert len(hashes) == 1
    assert 0 < asked[2] < 0.8 * asked[0] and 0 < asked[3] < 0.8 * asked[1]


def test_what_is_all_hole_moves_unseen(device: Any, stage: Scene) -> None:
    prepared = prepare(with_holes(stage, 1), EXACT)
    assert prepared.opacity_counts()["mixed"] == 0
    for update in ("refit", "rebuild"):
        frame = make_frame(device, prepared, update=update)
        show(frame, "Run", 0.6)
        fox = [i.name.startswith("fox") for i in prepared.scene.instances].index(True)
        assert not (frame.aov("object") == fox).any() and validate(frame.bvh()) == []


def test_a_scene_refits_the_prepared_tree_after_others_built(device: Any, stage: Scene) -> None:
    prepared = prepare(stage, FAST)
    on_gpu = GpuScene(device, prepared)
    refits = make_frame(device, prepared, on_gpu)
    builds = make_frame(device, prepared, on_gpu, update="rebuild")
    show(refits, "Run", 0.3)
    words = refits.bvh_words()
    show(builds, "Run", 0.6)
    assert len(builds.bvh_words()) > len(words)
    show(refits, "Run", 0.3)
    assert (refits.bvh_words() == words).all()


def test_the_policy_refits_until_the_tree_is_bad(device: Any, stage: Scene) -> None:
    frame = make_frame(device, stage, update="policy")
    moving = frame.moving
    assert moving is not None
    moving.policy = RebuildPolicy(PolicyOptions(least_frames=2, most_frames=3))
    actions, counts = [], []
    for i in range(7):
        show(frame, "Run", 0.1 * i)
        (decision,) = moving.decisions
        actions.append(decision.action)
        counts += moving.refits_since_build.values()
        assert validate(frame.bvh()) == []
    assert actions == ["refit", "refit", "rebuild", "refit", "refit", "rebuild", "refit"]
    assert counts == [1, 2, 0, 1, 2, 0, 1]
    show(frame, "Run", 0.1 * 6)
    assert moving.decisions[0].action == "keep"
    assert list(moving.refits_since_build.values()) == [1]


def test_sah_is_measured_frames_late_and_decides(device: Any, stage: Scene) -> None:
    frame = make_frame(device, stage, update="policy")
    moving = frame.moving
    assert moving is not None
    for i in range(8):
        show(frame, "Run", 0.1 * i)
    (tracker,) = moving.policy.trackers.values()
    (sah,) = moving.sah().values()
    assert 0.5 < tracker.sah / tracker.built_sah < 2
    assert sah == pytest.approx(tracker.sah, rel=0.2)
    tracker.built_sah = 0.1 * tracker.sah
    show(frame, "Run", 0.9)
    assert moving.decisions[0].action == "rebuild" and moving.decisions[0].reason.startswith("SAH")


def test_builds_are_what_the_frames_kernels_know(stage: Scene) -> None:
    prepared = prepare(stage, replace(FAST, leaf=4, pairing="best")).bvh
    assert rebuild_options(prepared) == replace(FAST, leaf=4)
    still = [replace(stats, nodes_fp16=0) for stats in prepared.blas_stats]
    assert rebuild_options(replace(prepared, blas_stats=tuple(still))).nodes == "fp32"
    pairs = prepare(stage, FAST).bvh
    fans = replace(pairs, options=replace(FAST, leaf=4))
    assert rebuild_options(fans).leaf == 2
    splits = replace(prepared, options=replace(FAST, builder="spatial", leaf=4))
    assert rebuild_options(splits).leaf == 2


def test_seams_that_part_get_blocks_of_one_triangle(device: Any, stage: Scene) -> None:
    """Two triangles that meet at rest over vertices with other weights share no block."""
    assert stage.animation is not None
    (skinned,) = stage.animation.skinned
    joints = skinned.joints.copy()
    joints[:, 0] = np.arange(len(joints)) // 3 % 8  # each triangle of Fox has its own vertices
    weights = np.zeros_like(skinned.weights)
    weights[:, 0] = 1.0
    torn = replace(skinned, joints=joints, weights=weights)
    scene = replace(stage, animation=replace(stage.animation, skinned=(torn,)))
    prepared = prepare(scene, FAST)
    fox = prepared.bvh.blas_names.index(stage.meshes[0].name)
    assert prepared.bvh.blas_stats[fox].pairs == 0
    assert prepare(stage, FAST).bvh.blas_stats[fox].pairs > 0
    frame = make_frame(device, prepared, update="policy")
    show(frame, "Run", 0.5)
    assert validate(frame.bvh()) == []


# -- what a moving frame is to others ------------------------------------------------------------


def test_rigid_only_has_one_pass_and_keeps_masks(
    device: Any, scene_of: Callable[[str], Scene]
) -> None:
    truck = scene_of("CesiumMilkTruck")
    hidden = tuple(
        replace(item, mask=0 if item.name == "Wheels#2" else item.mask) for item in truck.instances
    )
    frames = [make_frame(device, replace(truck, instances=x)) for x in (truck.instances, hidden)]
    for frame in frames:
        assert [p.name for p in frame.passes if p.name.startswith("update")] == ["update/tlas"]
        show(frame, "clip 0", 0.5)
        assert frame.moving is not None and frame.moving.decisions == []
        assert validate(frame.bvh()) == []
    shown, less = (f.bvh() for f in frames)
    masks = [[x.mask for x in bvh.instances] for bvh in (shown, less)]
    assert 0 in masks[1] and 0 not in masks[0]
    assert (shown.tlas_words != less.tlas_words).any()


def test_instances_are_hidden_and_shown_in_a_pose(
    device: Any, scene_of: Callable[[str], Scene]
) -> None:
    frame = make_frame(device, scene_of("CesiumMilkTruck"))
    show(frame, "clip 0", 0.5)
    words = frame.bvh_words()
    for _ in range(2):
        frame.scene.set_hidden({0})
        assert validate(frame.bvh()) == [] and (frame.bvh_words() != words).sum() == 1
        frame.scene.set_hidden(())
        assert (frame.bvh_words() == words).all()


def test_static_scenes_have_no_update(device: Any, kit: Any) -> None:
    frame = make_frame(device, kit.room())
    assert not any(p.name.startswith("update") for p in frame.passes)
    assert frame.moving is None and frame.timeline() == ()
    assert "parents" not in frame.scene.buffers
    with pytest.raises(UserError, match="nothing moves"):
        show(frame, "Run")


def test_time_line(scene_of: Callable[[str], Scene]) -> None:
    spans = timeline(scene_of("Fox"))
    assert [span.name for span in spans] == ["Survey", "Walk", "Run"]
    assert [span.duration for span in spans] == pytest.approx([3.41667, 0.70833, 1.15833], abs=1e-4)
    assert all(span.start == 0 for span in spans)


def test_twins_draw_the_pose(device: Any, stage: Scene) -> None:
    frame = make_frame(device, stage, gbuffer="rays")
    show(frame, "Run", 0.5)
    twins = frame.run_cpu("gbuffer")
    drawn = read_resources(frame.data, frame.inputs)
    assert (twins["bvh"] == drawn["bvh"]).all() and (drawn["bvh"] == frame.bvh_words()).all()
    assert (twins["ids"] == drawn["ids"]).all(axis=-1).mean() > 0.999


def test_unknown_names(device: Any, stage: Scene) -> None:
    frame = make_frame(device, stage)
    with pytest.raises(UserError, match="'Survey', 'Walk', 'Run'"):
        show(frame, "Fly")
    with pytest.raises(UserError, match="refit, rebuild, policy"):
        FrameOptions(*SIZE, update="never")
