"""Ambient occlusion: means over frames against closed forms, what the radius leaves out, what the
picture makes of it, and that a frame without it is as if there were no such rays."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from engine.scene.camera import look_at
from passes.aov import aov_names
from passes.frame_options import FrameOptions
from passes.frame_uniforms import OCCLUSION_PART
from passes.hybrid import HybridFrame
from passes.option_list import OPTIONS
from passes.outputs import frame_outputs
from passes.prepare import prepare
from passes.rays import OCCLUSION, RAY_TYPES, REFLECTION, SHADOW, frame_rays, with_every_ray

SKY = (0.6, 0.8, 1.0)
FRAMES = 48


def one_frame(frame: HybridFrame) -> tuple[Any, Any]:
    """(records, free) by pixel of the frame's last run."""
    records = frame.data.read_records(OCCLUSION)
    free = frame.data.read_results(OCCLUSION, records)
    order = np.argsort(records["pixel"])
    return records[order], free[order]


def mean_free(frame: HybridFrame, radius: float) -> tuple[Any, Any]:
    """[n, 3] points and [n] the mean of their results over FRAMES frames."""
    inputs = replace(frame.inputs, occlusion_radius=radius)
    total: Any = 0
    for index in range(FRAMES):
        assert frame.run(index, inputs=inputs).valid
        records, free = one_frame(frame)
        total = total + free
    return records["origin"].astype(np.float64), total / FRAMES


def check_means(found: Any, expected: Any, keys: Any, parts: int = 8) -> None:
    """Groups of pixels by `keys`: their means lie within four standard errors of what is expected,
    and a little for tessellation."""
    for group in np.array_split(np.argsort(keys), parts):
        p = expected[group].mean()
        error = np.sqrt(max(p * (1 - p), 1e-4) / (len(group) * FRAMES))
        assert abs(found[group].mean() - p) < 4 * error + 0.002, (keys[group].mean(), p)


@pytest.fixture(scope="module")
def corner(kit: Any, device: Any) -> HybridFrame:
    """A floor, and a wall along its edge at x = 0; the camera sees the floor alone."""
    meshes = [
        kit.quad((0, 0, 20), (40, 0, 0), (0, 0, -40)),
        kit.quad((0, 0, 20), (0, 0, -40), (0, 40, 0)),
    ]
    scene = kit.scene(meshes, eye=(1.05, 4.0, 0), target=(1.05, 0, 0), up=(0, 0, 1), y_fov=0.48)
    return HybridFrame(device, prepare(scene), FrameOptions(24, 24, occlusion=True))


@pytest.mark.parametrize("radius", [0.7, 1.6, 30.0])
def test_a_corner_of_two_walls(corner: HybridFrame, radius: float) -> None:
    """Cosine-weighted directions lie evenly over the unit disk below them: those that reach the
    wall within the radius are the part of the disk beyond x = distance / radius."""
    points, found = mean_free(corner, radius)
    assert len(points) == 24 * 24 and np.ptp(points[:, 0]) > 1.5
    a = np.clip(points[:, 0] / radius, 0, 1)
    expected = 1 - (np.arccos(a) - a * np.sqrt(1 - a * a)) / np.pi
    check_means(found, expected, points[:, 0])
    assert (found[points[:, 0] > radius] == 1).all()


def test_a_sphere_over_a_plane(kit: Any, device: Any) -> None:
    """Its form factor, where all of it is above the horizon: cos r^2 / distance^2."""
    meshes = [kit.quad((-9, 0, 9), (18, 0, 0), (0, 0, -18)), kit.sphere((0, 1.5, 0), rings=40)]
    scene = kit.scene(meshes, eye=(3, 4, 4), target=(1, 0, 1))
    frame = HybridFrame(device, prepare(scene), FrameOptions(24, 24, occlusion=True))
    points, found = mean_free(frame, 100.0)
    to_center = np.array([0, 1.5, 0]) - points
    distance = np.linalg.norm(to_center, axis=1)
    plane = points[:, 1] < 1e-3
    expected = 1 - to_center[:, 1] / distance**3
    assert plane.sum() > 200 and np.ptp(expected[plane]) > 0.2
    check_means(found[plane], expected[plane], distance[plane])
    # What is nearer than the sphere anywhere leaves all of the plane open.
    assert (mean_free(frame, 0.4)[1][plane & (distance > 1.5)] == 1).all()


def test_what_is_convex_is_open(kit: Any, draw: Any) -> None:
    """The same light to the bit as without occlusion rays: one mean of three samples."""
    scene = kit.scene([kit.sphere(rings=5)], [kit.grey(0.8)], eye=(0, 0, 4), sky=SKY)
    plain, open_ = (draw(scene, 40, 30, samples=3, occlusion=on) for on in (False, True))
    _, free = one_frame(open_.frame)
    assert free.all() and len(free) > 300
    assert open_.stats.rays["occlusion"].replaced > 0  # smooth normals reach below facets
    np.testing.assert_array_equal(plain.radiance, open_.radiance)
    np.testing.assert_array_equal(plain.frame.image(), open_.frame.image())


def test_only_ambient_light_is_occluded(draw: Any, room: Any) -> None:
    plain, drawn = (draw(room, 48, 32, occlusion=on) for on in (False, True))
    records, free = one_frame(drawn.frame)
    free = free == 1
    assert 0.05 < free.mean() < 0.95
    lost = (plain.radiance - drawn.radiance).reshape(-1, 3)[records["pixel"]]
    assert not lost[free].any()
    metal = plain.aov("metalness").ravel()[records["pixel"]] == 1
    assert (lost[~free & ~metal] > 0).all() and not lost[metal].any() and metal.any()
    # The ambient term is what the G-buffer says, less what the surface mirrors.
    base = plain.aov("base_color").reshape(-1, 3)[records["pixel"]]
    assert (lost[~free] <= base[~free] * 0.9).all()


def test_a_ray_for_every_pixel_that_sees_something(draw: Any, room: Any) -> None:
    camera = look_at(np.array([9.0, 7.0, 14.0]), np.array([3.0, 0.0, 0.0]), 0.8)
    room = replace(room, scene=replace(room.scene, camera=camera))
    for gbuffer in ("raster", "rays"):
        drawn = draw(room, 45, 37, gbuffer=gbuffer, occlusion=True)
        seen = drawn.aov("object").ravel() >= 0
        assert 0 < seen.sum() < seen.size
        records, _ = one_frame(drawn.frame)
        np.testing.assert_array_equal(records["pixel"], np.flatnonzero(seen))
        assert drawn.stats.rays["occlusion"].rays == seen.sum()


def test_a_picture_of_nothing(draw: Any, room: Any) -> None:
    away = look_at(np.array([0.0, 50.0, 0.0]), np.array([0.3, 90.0, 0.1]), 0.8)
    empty = replace(room, scene=replace(room.scene, camera=away))
    plain, drawn = (draw(empty, 13, 11, occlusion=on) for on in (False, True))
    assert drawn.stats.valid and drawn.stats.rays["occlusion"].rays == 0
    np.testing.assert_array_equal(plain.frame.image(), drawn.frame.image())


def test_rays_beyond_the_queue_are_counted(draw: Any, room: Any) -> None:
    first = draw(room, 32, 24, occlusion=True, queue_fraction=0.1)
    whole = draw(room, 32, 24, occlusion=True)
    assert first.stats.valid  # render began again with room for all
    frame = HybridFrame(first.frame.device, room, first.frame.options)
    stats = frame.run()
    assert not stats.valid and stats.rays["occlusion"].dropped > 0
    assert frame.run().valid and frame.result_hash() == whole.frame.result_hash()


def test_samples_follow_the_seed_and_the_frame(draw: Any, room: Any) -> None:
    sent = [
        one_frame(draw(room, 24, 16, occlusion=True, seed=s, frame_index=i).frame)[0]["direction"]
        for s, i in ((0, 0), (0, 0), (1, 0), (0, 1))
    ]
    np.testing.assert_array_equal(sent[0], sent[1])
    assert all((sent[0] != other).mean() > 0.99 for other in sent[2:])


# -- the radius ----------------------------------------------------------------------------------


def test_the_default_radius_is_a_part_of_the_scene(kit: Any, device: Any) -> None:
    scene = kit.room()
    low, high = scene.bounds()
    expected = OCCLUSION_PART * np.linalg.norm(high - low)
    for group in ("static", "all"):
        prepared = prepare(scene, None, group)
        options = FrameOptions(8, 8, occlusion=True)
        assert HybridFrame(device, prepared, options).inputs.occlusion_radius == expected
        given = replace(options, occlusion_radius=1.25)
        assert HybridFrame(device, prepared, given).inputs.occlusion_radius == 1.25


@pytest.mark.parametrize("radius", [-1.0, float("inf"), float("nan")])
def test_a_radius_that_is_no_distance(radius: float) -> None:
    with pytest.raises(UserError, match="the occlusion radius is in metres"):
        FrameOptions(8, 8, occlusion_radius=radius)


# -- off -----------------------------------------------------------------------------------------


def test_without_them_nothing_of_them_is_there(draw: Any, room: Any) -> None:
    plain = draw(room, 32, 24, count=True)
    drawn = draw(room, 32, 24, count=True, occlusion=True)
    frame = plain.frame
    assert not [name for name in frame.data.resources if "occlusion" in name]
    assert not [item.name for item in frame.passes if "occlusion" in item.name]
    assert set(plain.stats.rays) == {"reflection", "shadow"} == {r for _, r in plain.stats.objects}
    # The hash as it was before there were such rays.
    digest = hashlib.sha256()
    sent, hits = plain.reflections
    for column in (sent["pixel"], hits["object"], hits["primitive"]):
        digest.update(np.ascontiguousarray(column).tobytes())
    shadows, lit = plain.shadows
    digest.update(np.ascontiguousarray(shadows["slot"]).tobytes())
    digest.update(lit.astype(np.uint32).tobytes())
    assert frame.result_hash() == digest.hexdigest()
    # The others do as they did, and the hash tells of them all.
    for ray in (REFLECTION, SHADOW):
        assert plain.stats.rays[ray.name] == drawn.stats.rays[ray.name]
    assert drawn.frame.result_hash() != frame.result_hash()
    before = drawn.frame.result_hash()
    drawn.frame.run(inputs=replace(drawn.frame.inputs, occlusion_radius=0.01))
    assert drawn.frame.result_hash() != before


# -- lists ---------------------------------------------------------------------------------------


def test_optional_types_are_in_every_list_of_their_frames() -> None:
    plain = FrameOptions(8, 8, count=True)
    every = with_every_ray(plain)
    optional = [ray for ray in RAY_TYPES if ray.option]
    assert optional and frame_rays(every) == RAY_TYPES
    for ray in optional:
        assert ray not in frame_rays(plain) and not getattr(plain, ray.option or "")
        assert {ray.option, f"mask/{ray.name}"} <= {option.name for option in OPTIONS}
        lists = [{o.ray_type for o in frame_outputs(o)} for o in (plain, every)]
        assert [ray.name in names for names in lists] == [False, True]
        found = [any(n.endswith(f"/{ray.name}") for n in aov_names(o)) for o in (plain, every)]
        assert found == [False, True]
