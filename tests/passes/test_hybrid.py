"""The whole frame: it repeats, it does not depend on how the BVH was built, and it survives small
and empty cases."""

from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.rays import MISS_ID
from engine.scene.scene import Instance
from passes.prepare import prepare

SIZE = (64, 48)


# -- determinism ---------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_frame(draw: Any, room: Any) -> None:
    first, second = (draw(room, *SIZE, seed=9) for _ in range(2))
    assert first.frame.result_hash() == second.frame.result_hash()
    np.testing.assert_array_equal(first.radiance, second.radiance)


def test_a_frame_does_not_depend_on_those_before_it(draw: Any, room: Any) -> None:
    drawn = draw(room, *SIZE)
    frame, fresh = drawn.frame, drawn.frame.result_hash()
    picture = frame.image()
    frame.run(7)
    assert frame.result_hash() != fresh
    frame.run(0)
    assert frame.result_hash() == fresh
    np.testing.assert_array_equal(frame.image(), picture)


def test_seed_and_frame_index_change_the_samples(draw: Any, room: Any) -> None:
    frames = [draw(room, *SIZE, seed=s, frame_index=i) for s in (0, 1, 2) for i in (0, 1)]
    assert len({d.frame.result_hash() for d in frames}) == len(frames)
    one, other = (d.reflections[0] for d in frames[:2])
    # Mirrors reflect the same way each time, rough surfaces do not, and lose samples now and then.
    pixels, first, second = np.intersect1d(one["pixel"], other["pixel"], return_indices=True)
    assert len(pixels) > 0.95 * len(one)
    rough = frames[0].aov("roughness").ravel()[pixels] > 0.1
    moved = (one["direction"][first] != other["direction"][second]).any(1)
    assert not moved[~rough].any() and moved[rough].mean() > 0.99 and rough.any()


def test_samples_average(draw: Any, room: Any) -> None:
    apart = [draw(room, *SIZE, frame_index=i).radiance.astype(np.float64) for i in range(4)]
    together = draw(room, *SIZE, samples=4).radiance
    np.testing.assert_allclose(together, np.mean(apart, axis=0), rtol=1e-4, atol=1e-5)
    assert together.std() > 0


def test_passes_are_timed_in_frame_order(draw: Any, room: Any, device: Any) -> None:
    drawn = draw(room, 160, 120)
    stats = drawn.stats
    names = list(stats.passes)
    assert names[0] == "gbuffer/raster" and names[-1] == "composite"
    order = [names.index(n) for n in ("traverse/reflection/0", "traverse/shadow/0")]
    assert order == sorted(order)
    assert stats.timing_source == device.timing_source and stats.cpu_ms > 0
    if device.timing_source == "timestamp-query":
        spent = sum(stats.passes.values())
        assert all(ms >= 0 for ms in stats.passes.values())
        assert stats.frame_total_ms >= spent - max(0.0, -stats.frame_gaps_ms)
        assert stats.frame_total_ms == pytest.approx(spent + stats.frame_gaps_ms)
        # Time between passes is time that no pass is charged with: a driver that dates a pass's
        # begin too late would hide the work there. A pass takes a while to start, whatever it
        # does, so that what more work adds to the frame is looked at: 64 times the pixels.
        large = draw(room, 1280, 960)
        few, many = (
            min((d.frame.run(i) for i in range(3)), key=lambda s: s.frame_total_ms)
            for d in (drawn, large)
        )
        hidden = many.frame_gaps_ms - few.frame_gaps_ms
        assert hidden < 0.1 * (many.frame_total_ms - few.frame_total_ms)
    assert stats.upload_bytes > 0 and stats.readback_bytes > 0 and stats.forced_waits > 0


# -- the structure does not show -----------------------------------------------------------------


def same_results(a: Any, b: Any, rays_apart: float) -> None:
    """Visibility and what rays found agree but for ties and edges; objects may be numbered in
    another order, so distances stand for identity."""
    depth = [d.aov("depth") for d in (a, b)]
    close = np.isclose(*depth, rtol=1e-4) | (np.isinf(depth[0]) & np.isinf(depth[1]))
    assert close.mean() >= 1 - rays_apart
    assert (np.abs(a.aov("normal") - b.aov("normal"))[close].max(-1) < 5e-3).mean() > 0.995
    (rays, hits), (other_rays, other_hits) = a.reflections, b.reflections
    assert abs(len(rays) - len(other_rays)) <= rays_apart * len(rays)
    shared, i, j = np.intersect1d(rays["pixel"], other_rays["pixel"], return_indices=True)
    # Rough reflections of a surface whose normal was rounded elsewhere diverge a little.
    t = [np.where(h["object"] == MISS_ID, 1e9, h["t"])[k] for h, k in ((hits, i), (other_hits, j))]
    assert len(shared) > 500 and np.isclose(*t, rtol=5e-3).mean() >= 1 - rays_apart
    (slots, lit), (other_slots, other_lit) = a.shadows, b.shadows
    shared, i, j = np.intersect1d(slots["slot"], other_slots["slot"], return_indices=True)
    assert len(shared) >= (1 - rays_apart) * max(len(slots), len(other_slots))
    assert (lit[i] == other_lit[j]).mean() >= 1 - rays_apart


@pytest.fixture(scope="module")
def plain(draw: Any, room: Any) -> Any:
    return draw(room, *SIZE)


@pytest.mark.parametrize("group", ["object", "all"])
@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
def test_groups_give_the_same_frame(
    draw: Any, kit: Any, plain: Any, group: str, gbuffer: str
) -> None:
    other = draw(kit.room(), *SIZE, group=group, gbuffer=gbuffer)
    same_results(plain, other, 0.005)
    assert len(other.prepared.bvh.instances) == (1 if group == "all" else 8)


@pytest.mark.parametrize("leaf", [1, 2, 4])
@pytest.mark.parametrize("nodes", ["fp16", "auto", "fp32"])
def test_node_formats_and_leaves_give_the_same_frame(
    draw: Any, kit: Any, plain: Any, nodes: str, leaf: int
) -> None:
    other = draw(kit.room(), *SIZE, build=BuildOptions(nodes=nodes, leaf=leaf))
    same_results(plain, other, 0.005)
    fp16 = sum(s.nodes_fp16 for s in other.prepared.bvh.blas_stats)
    assert (fp16 > 0) == (nodes != "fp32")
    if nodes == "auto" and leaf == 2:
        assert other.frame.result_hash() == plain.frame.result_hash()


def test_sorted_shadow_rays_give_the_same_hits(draw: Any, room: Any, plain: Any) -> None:
    other = draw(room, *SIZE, sort_shadow=True)
    # The order of visits decides between coplanar triangles only.
    (_, hits), (_, other_hits) = plain.reflections, other.reflections
    assert (hits["primitive"] != other_hits["primitive"]).sum() <= 1
    np.testing.assert_array_equal(plain.shadows[1], other.shadows[1])


def test_meshes_far_from_the_origin_are_recentred_and_stay_where_they_are(
    kit: Any, draw: Any
) -> None:
    away = np.array([1000.0, -500.0, 250.0])
    ball = kit.sphere(away, rings=6)
    scene = kit.scene([ball], eye=away + [0, 0, 4], target=away)
    near, far = (prepare(scene, BuildOptions(nodes=n)) for n in ("auto", "fp32"))
    assert np.abs(near.scene.meshes[0].positions).max() < 1.1
    assert np.abs(far.scene.meshes[0].positions).max() > 900
    np.testing.assert_allclose(near.scene.bounds(), far.scene.bounds(), atol=1e-4)
    pictures = [
        draw(p, 32, 32, gbuffer=g).aov("depth") for p in (near, far) for g in ("raster", "rays")
    ]
    for other in pictures[1:]:
        hit = np.isfinite(pictures[0]) & np.isfinite(other)
        np.testing.assert_allclose(pictures[0][hit], other[hit], atol=2e-3)
        assert (np.isfinite(pictures[0]) != np.isfinite(other)).mean() < 0.01


def test_a_hidden_mask_hides_from_rays(kit: Any, draw: Any) -> None:
    """Frame rays carry the mask 0xFF: an instance whose mask is 0 is not in the traced world."""
    scene = kit.scene([kit.sphere(rings=6)], instances=[Instance("ball", 0, np.eye(4), mask=0)])
    drawn = draw(scene, 16, 16, gbuffer="rays")
    assert (drawn.aov("object") == -1).all() and drawn.stats.valid


# -- small and empty -----------------------------------------------------------------------------


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("group", ["static", "object", "all"])
def test_one_triangle(kit: Any, draw: Any, group: str, gbuffer: str) -> None:
    from engine.scene.mesh import make_mesh

    corners = np.array([[-1, -1, 0], [1, -1, 0], [0, 1, 0]], float)
    scene = kit.scene([make_mesh("one", corners, np.array([[0, 1, 2]]))], [kit.mirror()])
    drawn = draw(scene, 33, 21, gbuffer=gbuffer, group=group, count=True)
    seen = (drawn.aov("object") == 0).sum()
    assert drawn.stats.valid and 30 < seen < 33 * 21 // 2
    counts = drawn.stats.rays["reflection"]
    # A single sheet reflects the sky.
    assert (counts.rays, counts.hits, counts.misses) == (seen, 0, seen)


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("count", [False, True])
def test_nothing_but_sky(kit: Any, draw: Any, gbuffer: str, count: bool) -> None:
    scene = kit.scene([kit.sphere(rings=4)], eye=(0, 0, 5), target=(0, 0, 9), sky=(0.25, 0.5, 0.75))
    drawn = draw(scene, 16, 12, gbuffer=gbuffer, count=count)
    assert drawn.stats.valid and drawn.stats.dropped == 0
    for n in drawn.stats.rays.values():
        assert n.rays == 0 and n.nodes in (None, 0) and n.nodes_p95 in (None, 0.0)
    assert (drawn.aov("object") == -1).all() and np.isinf(drawn.aov("depth")).all()
    np.testing.assert_allclose(drawn.radiance, np.full((12, 16, 3), [0.25, 0.5, 0.75]), rtol=1e-6)
    assert len(drawn.reflections[0]) == len(drawn.shadows[0]) == 0


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (7, 5), (8, 8), (13, 17), (65, 3)])
def test_odd_sizes(draw: Any, room: Any, size: tuple[int, int], gbuffer: str) -> None:
    drawn = draw(room, *size, gbuffer=gbuffer, count=True)
    assert drawn.stats.valid
    assert drawn.frame.image().shape == (size[1], size[0], 3)
    assert drawn.aov("normal").shape == (size[1], size[0], 3)
    seen = drawn.aov("object") >= 0
    smooth = seen & (drawn.aov("roughness") <= np.float32(0.6))
    sent = np.zeros(size, bool).ravel()
    sent[drawn.reflections[0]["pixel"]] = True
    # All but the few that a rough lobe loses below the surface.
    mirrors = (seen & (drawn.aov("roughness") < np.float32(0.02))).ravel()
    assert drawn.stats.rays["reflection"].rays == sent.sum() >= 0.75 * smooth.sum() - 2
    assert not (sent & ~smooth.ravel()).any() and sent[mirrors].all()
    assert np.isfinite(drawn.radiance).all()
    # No pixel is left from the last tile's outside.
    assert (drawn.radiance.sum(-1) > 0).all()


def test_a_scene_without_instances(kit: Any, draw: Any) -> None:
    scene = kit.scene([], instances=[], sky=(0.5, 0.5, 0.5))
    for gbuffer in ("raster", "rays"):
        drawn = draw(scene, 8, 8, gbuffer=gbuffer)
        assert drawn.stats.valid and (drawn.aov("object") == -1).all()
        np.testing.assert_allclose(drawn.radiance, 0.5, rtol=1e-6)


def test_an_instance_of_nothing(kit: Any, draw: Any) -> None:
    from engine.scene.mesh import make_mesh

    nothing = make_mesh("nothing", np.zeros((3, 3)), np.zeros((0, 3), int))
    for group in ("static", "object", "all"):
        drawn = draw(kit.scene([nothing, kit.sphere(rings=6)]), 16, 16, group=group)
        assert drawn.stats.valid
        ball = [i.name for i in drawn.prepared.scene.instances].index("sphere1")
        assert set(np.unique(drawn.aov("object"))) == {-1, ball}
