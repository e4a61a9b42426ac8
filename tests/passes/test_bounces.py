"""Paths of several reflections: what arrives of known scenes, who sends on, and how far a frame's
queues, counts and pictures follow."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.pixel_probe import probe_pixel
from passes.ray_kernel import RayKernel
from passes.rays import SHADOW, bounces_of, frame_rays, reflection_types
from passes.senders import slot_block
from passes.traverse_passes import kernel_variant

BOUNCES = 3
FIRST, SECOND, THIRD = reflection_types(FrameOptions(1, 1, reflection_bounces=BOUNCES))
# Colours that the G-buffer's 8 bits hold exactly.
COPPER = tuple((k / 255) ** 2 for k in (240, 180, 120))
HALF_ULP = 2e-3  # of sums of halves, relative


def dark(kit: Any) -> Any:
    """A light that sends nothing."""
    return kit.lamp((0, 50, 0), 0.1, radiance=(0, 0, 0))


def closest(drawn: Any, ray: Any) -> tuple[Any, Any]:
    """Rays of a closest-hit type and their hits, by pixel."""
    data = drawn.frame.data
    rays = data.read_records(ray)
    hits = data.read_results(ray, rays)
    order = np.argsort(rays["pixel"])
    return rays[order], hits[order]


def schlick(f0: Any, cosine: Any) -> Any:
    """Float64, by hand."""
    f0 = np.asarray(f0, float)
    return f0 + (1 - f0) * (1 - np.asarray(cosine)[..., None]) ** 5


def test_two_parallel_mirrors(draw: Any, kit: Any) -> None:
    """Copper mirrors that glow, under a black sky: k reflections add the glow times F^k, the angle
    being the same at each."""
    glow = np.array([0.5, 0.25, 1.0])
    metal = kit.mirror(base_color=(*COPPER, 1.0), emissive=tuple(glow))
    walls = [kit.quad((x, -300, -300), (0, 600, 0), (0, 0, 600)) for x in (-1, 1)]
    scene = kit.scene(walls, [metal], eye=(0, 0, 0), target=(1, 0.3, 0.4), light=dark(kit))
    drawn = draw(scene, 24, 16, gbuffer="rays", reflection_bounces=BOUNCES)
    assert drawn.stats.valid
    kinds = reflection_types(drawn.frame.options)
    assert [drawn.stats.rays[ray.name].rays for ray in kinds] == [24 * 16] * BOUNCES
    first, _ = closest(drawn, kinds[0])
    cosine = np.abs(first["direction"][:, 0].astype(float))  # the walls face along x
    for ray in kinds:
        np.testing.assert_allclose(np.abs(closest(drawn, ray)[0]["direction"][:, 0]), cosine, 1e-5)
    f = schlick(COPPER, cosine)
    expected = glow * sum(f**k for k in range(BOUNCES + 1))
    np.testing.assert_allclose(drawn.radiance.reshape(-1, 3), expected, rtol=HALF_ULP)


@pytest.mark.parametrize("roughness", [0.0, 0.3, 0.6])
def test_white_furnace(draw: Any, kit: Any, roughness: float) -> None:
    """White metal under a white sky, seen from within a closed box and in the open: what arrives is
    the sky, less what single scattering loses on rough metal, and never more."""
    white = kit.mirror(roughness=roughness)
    shapes = {
        "box": kit.box(),
        "balls": [kit.sphere((x, 0, 0), 0.95, smooth=True) for x in (-1, 1)],
    }
    for name, eye in (("box", (0.3, 0.2, 0.4)), ("balls", (0.5, 0.4, 4))):
        meshes = shapes[name] if isinstance(shapes[name], list) else [shapes[name]]
        scene = kit.scene(meshes, [white], eye=eye, sky=(1, 1, 1), light=dark(kit))
        options = {"gbuffer": "rays", "reflection_bounces": BOUNCES}
        drawn = draw(scene, 20, 20, **options)
        light = drawn.radiance
        assert drawn.stats.rays[THIRD.name].rays > (200 if name == "box" else 0)
        assert light.max() <= 1 + HALF_ULP
        paths = [
            closest(drawn, ray)[0]["path"] for ray in reflection_types(drawn.frame.options)[1:]
        ]
        weights = np.ascontiguousarray(np.concatenate(paths)).view(np.float16)[:, :3]
        assert weights.max() <= 1 and weights.min() >= 0
        if roughness == 0:
            np.testing.assert_allclose(light, 1.0, rtol=HALF_ULP)
        else:
            assert 0.3 < light.mean() < 1


def periscope(kit: Any, *, mirrors: bool) -> Any:
    """A grey wall that a lamp lights past a blocker, seen by two mirrors that move the view by
    (0, 3, 3), or from that far away without them."""
    wall = kit.quad((-3, 1, -5), (6, 0, 0), (0, 5, 0), 0)
    blocker = kit.quad((-0.4, 3.1, -3), (2, 0, 0), (0, 2, 0), 0)
    lower = kit.quad((-2, -1.4, 1.4), (4, 0, 0), (0, 2.8, -2.8), 1)
    upper = kit.quad((-2, 1.6, 1.4), (4, 0, 0), (0, 2.8, -2.8), 1)
    meshes = [wall, blocker, *([lower, upper] if mirrors else [])]
    eye = np.array([0, 0, 5]) if mirrors else np.array([0, 3, 8])
    return kit.scene(
        meshes,
        [kit.grey(), kit.mirror()],
        eye=eye,
        target=eye - np.array([0, 0, 1]),
        y_fov=np.radians(12.0),
        light=kit.lamp((-0.2, 3.4, -2), 0.002, (0, 0, -1), (9e5, 9e5, 9e5)),
    )


def test_light_and_shadow_at_the_second_hit(draw: Any, kit: Any) -> None:
    """The last bounce's shadow rays stand in slots of their own, and nothing else is lit."""
    size = 32, 24
    seen = draw(periscope(kit, mirrors=True), *size, gbuffer="rays", reflection_bounces=BOUNCES)
    alone = draw(periscope(kit, mirrors=False), *size, gbuffer="rays")
    found, expected = seen.radiance[..., 0], alone.radiance[..., 0]
    assert 0.1 < (expected == 0).mean() < 0.9 and expected.max() > 0.1
    near = np.isclose(found, expected, rtol=0.02, atol=1e-3)
    assert near.mean() > 0.97  # but for the shadow's edge
    slots = seen.frame.data.read_records(SHADOW)["slot"]
    assert (slots % (1 + BOUNCES) == 2).sum() > 500 == (slots % (1 + BOUNCES) != 2).sum() + 500


def test_who_sends_on(draw: Any, room: Any) -> None:
    """What was hit up to the cutoff, and nothing rougher; the ray starts there, outside."""
    materials = [
        room.scene.materials[room.scene.meshes[i.mesh].material] for i in room.scene.instances
    ]
    for cutoff in (0.3, 0.6):
        drawn = draw(
            room, 61, 43, gbuffer="rays", reflection_bounces=BOUNCES, roughness_cutoff=cutoff
        )
        rays, hits = closest(drawn, reflection_types(drawn.frame.options)[0])
        later, _ = closest(drawn, SECOND)
        hit = hits["object"] != 0xFFFFFFFF
        plain = np.array([m.metallic_roughness_texture < 0 for m in materials])
        smooth = np.array([m.roughness <= cutoff for m in materials])
        known = hit.copy()
        known[hit] = plain[hits["object"][hit]]
        sends = np.zeros_like(hit)
        sends[hit] = smooth[hits["object"][hit]]
        went_on = np.isin(rays["pixel"], later["pixel"])
        np.testing.assert_array_equal(went_on[known], sends[known])
        assert went_on.sum() > 20 and not went_on[~hit].any()
        before = np.isin(rays["pixel"], later["pixel"])
        points = rays["origin"][before] + hits["t"][before, None] * rays["direction"][before]
        assert np.abs(points - later["origin"]).max() < 1e-4
        np.testing.assert_allclose(np.linalg.norm(later["direction"], axis=-1), 1, atol=1e-5)


def test_nothing_to_send_on(draw: Any, kit: Any) -> None:
    """Paths that all end at the first hit: an empty queue, and the picture of one bounce."""
    floor = kit.quad((-4, -1, 4), (8, 0, 0), (0, 0, -8), 0)
    ball = kit.sphere((0, 0.2, 0), 1.0, 1)
    scene = kit.scene([floor, ball], [kit.grey(), kit.mirror()], sky=(0.4, 0.6, 0.9), eye=(0, 3, 5))
    few, many = (draw(scene, 24, 18, gbuffer="rays", reflection_bounces=n) for n in (1, BOUNCES))
    assert many.stats.valid and few.stats.rays["reflection"].rays > 50
    assert [many.stats.rays[f"reflection_{k}"].rays for k in (2, 3)] == [0, 0]
    np.testing.assert_array_equal(few.radiance, many.radiance)


def test_only_mirrors(draw: Any, kit: Any) -> None:
    """No shadow ray leaves a perfect mirror, and every path goes on until it leaves or ends."""
    balls = [kit.sphere((x, 0, 0), 1.1, 0) for x in (-1.2, 1.2)]
    scene = kit.scene(balls, [kit.mirror()], sky=(0.5, 0.5, 0.5), light=kit.lamp((0, 4, 0), 1))
    drawn = draw(scene, 40, 24, gbuffer="rays", reflection_bounces=BOUNCES, count=True)
    kinds = reflection_types(drawn.frame.options)
    counts = [drawn.stats.rays[ray.name] for ray in kinds]
    assert drawn.stats.rays["shadow"].rays == 0 and counts[2].rays > 2
    assert [c.hits for c in counts[:2]] == [c.rays for c in counts[1:]]
    spreads = drawn.frame.ray_spreads()
    assert [spreads[ray.name].mean_bounce for ray in kinds] == [1.0, 2.0, 3.0]
    nodes = [drawn.aov(f"nodes/{ray.name}") for ray in kinds]
    assert [plane.sum() for plane in nodes] == [c.nodes for c in counts]
    assert not (nodes[1] > 0)[nodes[0] == 0].any()


def test_a_full_queue_of_the_second_bounce(device: Any, room: Any) -> None:
    options = FrameOptions(61, 43, reflection_bounces=BOUNCES, gbuffer="rays")
    frame = HybridFrame(device, room, options)
    whole = frame.run(0)
    expected = frame.result_hash()
    sent = whole.rays[SECOND.name].rays
    frame = HybridFrame(device, room, options)
    frame.data.capacities[SECOND.name] = sent // 3
    frame.data._add_queue(SECOND)
    frame._make_frame()
    stats = frame.run(0)
    assert not stats.valid and stats.rays[SECOND.name].dropped == sent - sent // 3
    assert stats.rays["reflection"].dropped == 0
    again = frame.run(0)
    assert again.valid and frame.result_hash() == expected
    assert again.rays[THIRD.name].rays == whole.rays[THIRD.name].rays


@pytest.mark.parametrize(
    "options",
    [
        {"passes": "mixed", "ray_sort": "coarse", "hit_sort": "material", "hit_table": "fine"},
        {"any_hit_mode": "queue"},
    ],
    ids=str,
)
def test_ways_through_the_queues_change_nothing(draw: Any, room: Any, options: Any) -> None:
    common = {"reflection_bounces": BOUNCES, "gbuffer": "rays"}
    plain, other = draw(room, 61, 43, **common), draw(room, 61, 43, **common, **options)
    assert plain.stats.valid and other.stats.valid
    assert plain.frame.result_hash() == other.frame.result_hash()
    np.testing.assert_array_equal(plain.frame.image(), other.frame.image())
    if options.get("passes") == "mixed":
        names = [item.name for item in other.frame.passes]
        assert "sort/reflection_3/gather" in names and "shade/reflection_2/radix" in names


def test_frames_of_parts_and_of_the_cpu(draw: Any, room: Any) -> None:
    whole = draw(room, 37, 25, gbuffer="rays", reflection_bounces=BOUNCES)
    parts = draw(room, 37, 25, gbuffer="rays", reflection_bounces=BOUNCES)
    for _ in parts.frame.steps(budget_ms=1.0):
        pass
    assert parts.frame.result_hash() == whole.frame.result_hash()
    np.testing.assert_array_equal(parts.frame.image(), whole.frame.image())
    twins = whole.frame.run_cpu()
    other = twins["accumulated"][:, :3].reshape(25, 37, 3)
    assert np.isclose(other, whole.radiance, rtol=2e-3, atol=2e-3).all(-1).mean() > 0.97


def test_half_the_size_and_a_pixel_s_rays(draw: Any, room: Any) -> None:
    """Blocks share whole paths: rays of every bounce and the shadow rays from their hits."""
    settings = {"reflection_scale": "half", "narrow_lobes": "shared"}
    drawn = draw(room, 37, 25, gbuffer="rays", reflection_bounces=BOUNCES, **settings)
    data = drawn.frame.data
    shadow = data.rays[-1]
    sides = [slot_block(data.options, data.rays, shadow, k) for k in range(shadow.slots_per_pixel)]
    assert sides == [1, 2, 2, 2]
    later, _ = closest(drawn, SECOND)
    y, x = np.divmod(later["pixel"].astype(int), 37)
    assert len(set(zip(x // 2, y // 2, strict=True))) == len(later) > 10
    first = len(later) // 2
    for dx, dy in ((0, 0), (1, 0), (0, 1)):
        at = (x[first] // 2 * 2 + dx, y[first] // 2 * 2 + dy)
        found = probe_pixel(data, *map(int, at)).rays
        starts = {ray.ray_type.name: ray.starts_at for ray in found if ray.ray_type != shadow}
        assert starts["reflection"] == "primary" and starts["reflection_2"] == "reflection"
        assert all(
            ray.pixel == later["pixel"][first] for ray in found if ray.starts_at != "primary"
        )


def test_the_limit() -> None:
    with pytest.raises(UserError, match="reflection bounces are 1 to 4, not 5"):
        FrameOptions(1, 1, reflection_bounces=5)
    with pytest.raises(UserError, match="reflection bounces are 1 to 4, not 0"):
        FrameOptions(1, 1, reflection_bounces=0)
    one = FrameOptions(1, 1)
    assert bounces_of(SHADOW, 4) == () and [ray.name for ray in frame_rays(one)] == [
        "reflection",
        "shadow",
    ]


def test_what_options_say_of_reflections_holds_for_all_bounces(draw: Any, room: Any) -> None:
    drawn = draw(room, 21, 15, gbuffer="rays", reflection_bounces=BOUNCES)
    silence = reflection_types(drawn.frame.options)[0].silence
    assert silence is not None and SECOND.silence is None
    stats = drawn.frame.run(0, inputs=silence(replace(drawn.frame.inputs)))
    assert [stats.rays[name].rays for name in ("reflection", "reflection_2")] == [0, 0]
    # What is said of reflection rays is said of all bounces.
    options = drawn.frame.options.with_mask("reflection", 5)
    options = options.with_kernel("reflection", RayKernel(sort="off", stack="64"))
    kernels = [kernel_variant(drawn.frame.scene, options, ray) for ray in (FIRST, SECOND)]
    assert kernels[0] == kernels[1] and (kernels[1].mask, kernels[1].sort) == (5, False)
