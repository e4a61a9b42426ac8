"""How the trees of what deforms follow: refitted, or built anew."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.rebuild_policy import PolicyOptions, RebuildPolicy
from bvh.validate import validate
from engine.scene.scene import Scene
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.rebuilding import rebuild_options

FAST = BuildOptions(builder="lbvh", reinsertion=0)
# One triangle a block in world space: the same arithmetic whatever the tree.
EXACT = BuildOptions(builder="lbvh", reinsertion=0, nodes="fp32", leaf=1)
Make = Callable[..., HybridFrame]
Show = Callable[..., FrameStats]


@pytest.mark.parametrize("update", ["refit", "rebuild"])
def test_the_validator_accepts_what_the_gpu_wrote(
    stage: Scene, update: str, make_frame: Make, show: Show
) -> None:
    frame = make_frame(stage, update=update)
    for time in (0.1, 0.6):
        show(frame, "Run", time)
        bvh = frame.bvh()
        assert validate(bvh) == []
        assert (frame.bvh().words == bvh.words).all()
        assert (bvh.words[: len(frame.scene.prepared.bvh.words)] != frame.scene.arrays["bvh"]).any()


def test_refits_and_builds_give_the_same_hits(stage: Scene, make_frame: Make, show: Show) -> None:
    prepared = prepare(stage, EXACT)
    frames = [make_frame(prepared, update=u) for u in ("refit", "rebuild")]
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


def test_holes_stay_where_they_are_when_a_tree_is_built_anew(
    stage: Scene, make_frame: Make, show: Show
) -> None:
    scene = with_holes(stage, 6)
    hashes, asked = set(), []
    for opacity in ("material", "triangle"):
        prepared = prepare(scene, replace(EXACT, opacity=opacity))
        assert opacity == "material" or min(prepared.opacity_counts().values()) > 10
        for update in ("refit", "rebuild"):
            frame = make_frame(prepared, update=update, count=True)
            asked.append(show(frame, "Run", 0.6).rays["shadow"].any_hits)
            hashes.add(frame.result_hash())
            assert validate(frame.bvh()) == []
    assert len(hashes) == 1
    assert 0 < asked[2] < 0.8 * asked[0] and 0 < asked[3] < 0.8 * asked[1]


def test_what_is_all_hole_moves_unseen(stage: Scene, make_frame: Make, show: Show) -> None:
    prepared = prepare(with_holes(stage, 1), EXACT)
    assert prepared.opacity_counts()["mixed"] == 0
    for update in ("refit", "rebuild"):
        frame = make_frame(prepared, update=update)
        show(frame, "Run", 0.6)
        fox = [i.name.startswith("fox") for i in prepared.scene.instances].index(True)
        assert not (frame.aov("object") == fox).any() and validate(frame.bvh()) == []


def test_a_scene_refits_the_prepared_tree_after_others_built(
    device: Any, stage: Scene, make_frame: Make, show: Show
) -> None:
    prepared = prepare(stage, FAST)
    on_gpu = GpuScene(device, prepared)
    refits = make_frame(prepared, on_gpu)
    builds = make_frame(prepared, on_gpu, update="rebuild")
    show(refits, "Run", 0.3)
    words = refits.bvh().words
    show(builds, "Run", 0.6)
    assert len(builds.bvh().words) > len(words)
    show(refits, "Run", 0.3)
    assert (refits.bvh().words == words).all()


def test_the_policy_refits_until_the_tree_is_bad(
    stage: Scene, make_frame: Make, show: Show
) -> None:
    frame = make_frame(stage, update="policy")
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


def test_sah_is_measured_frames_late_and_decides(
    stage: Scene, make_frame: Make, show: Show
) -> None:
    frame = make_frame(stage, update="policy")
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


def test_seams_that_part_get_blocks_of_one_triangle(
    stage: Scene, make_frame: Make, show: Show
) -> None:
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
    frame = make_frame(prepared, update="policy")
    show(frame, "Run", 0.5)
    assert validate(frame.bvh()) == []
