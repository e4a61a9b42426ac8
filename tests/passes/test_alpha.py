"""The alpha test, by hand: texture x factor x vertex alpha, in raster and in every traversal."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.layout import INSTANCE_FORCE_OPAQUE, INSTANCE_NO_FORCE_NON_OPAQUE, NODE_INSTANCE
from bvh.rays import MISS_ID
from engine.gpu.errors import UserError
from engine.scene.material import Material, Texture
from passes.frame_options import ANY_HITS
from passes.prepare import prepare

# A texture's weights are differences of coordinates with a few float32 roundings.
MARGIN = 1e-3


def wrap(index: Any, size: int, mode: str) -> Any:
    if mode == "clamp":
        return np.clip(index, 0, size - 1)
    if mode == "mirror":
        folded = index % (2 * size)
        return np.where(folded >= size, 2 * size - 1 - folded, folded)
    return index % size


def bilinear_alpha(texture: Texture, uv: Any) -> Any:
    height, width = texture.pixels.shape[:2]
    alpha = texture.pixels[..., 3] / 255.0
    x, y = uv[..., 0] * width - 0.5, uv[..., 1] * height - 0.5
    i, j = np.floor(x).astype(int), np.floor(y).astype(int)
    s, t = x - i, y - j

    def at(di: int, dj: int) -> Any:
        return alpha[wrap(j + dj, height, texture.wrap_v), wrap(i + di, width, texture.wrap_u)]

    top = at(0, 0) * (1 - s) + at(1, 0) * s
    return top * (1 - t) + (at(0, 1) * (1 - s) + at(1, 1) * s) * t


def leaf_scene(
    kit: Any,
    rng: Any,
    size: tuple[int, int] = (3, 5),
    wraps: tuple[str, str] = ("repeat", "mirror"),
    material: Material | None = None,
    vertex_alpha: Any = (255, 255, 255, 255),
    textured: bool = True,
) -> tuple[Any, Any]:
    """(scene, alpha of points [.., 3] on the leaf): a leaf [-1, 1]^2 at z = 0 between the camera
    and a wall at z = -2, a mirror, that a lamp on the camera's side lights through it."""
    pixels = rng.integers(0, 256, (*size[::-1], 4)).astype(np.uint8)
    texture = Texture("leaf", pixels, True, *wraps)
    leaf = material or Material("leaf", alpha_mode="MASK", alpha_cutoff=0.5)
    leaf = replace(leaf, roughness=1.0, base_color_texture=0 if textured else -1)
    mesh = kit.quad((-1, -1, 0), (2, 0, 0), (0, 2, 0), 1)
    colors = np.full((4, 4), 255)
    colors[:, 3] = vertex_alpha
    # From -1.3 to 2.4 across: every wrap mode has something to do.
    mesh = replace(mesh, uvs=(3.7 * mesh.uvs - 1.3).astype(np.float32), colors=colors.astype("u1"))
    wall = kit.quad((-12, -9, -2), (24, 0, 0), (0, 18, 0), 0)
    scene = kit.scene(
        [wall, mesh],
        [kit.grey(roughness=0.0), leaf],
        textures=[texture],
        eye=(3.0, 0.1, 3.5),
        target=(0.5, 0.0, -0.7),
        y_fov=0.8,
        light=kit.lamp((0.4, 0.3, 3.0), 0.05, (0, 0, -1), (9, 9, 9)),
    )

    def alpha(points: Any) -> Any:
        s, t = (points[..., 0] + 1) / 2, (points[..., 1] + 1) / 2
        a, b, c, d = np.asarray(vertex_alpha) / 255.0  # (0,0) (1,0) (0,1) (1,1)
        # The quad's diagonal runs from (0,0) to (1,1).
        below = a * (1 - s) + b * (s - t) + d * t
        above = a * (1 - t) + d * s + c * (t - s)
        value = leaf.base_color[3] * np.where(s >= t, below, above)
        if textured:
            value = value * bilinear_alpha(texture, 3.7 * np.stack([s, t], -1) - 1.3)
        return value

    return scene, alpha


def crossing(start: Any, end: Any) -> tuple[Any, Any, Any]:
    """(points at z = 0, whether they are on the leaf, whether rounding cannot change that)."""
    t = start[..., 2:] / (start[..., 2:] - end[..., 2:])
    points = start + t * (end - start)
    reach = np.abs(points[..., :2]).max(-1)
    between = (t[..., 0] > 0) & (t[..., 0] < 0.999)
    return points, (reach < 1) & between, np.abs(reach - 1) > 1e-4


def check_frame(drawn: Any, alpha: Any, cutoff: float) -> int:
    """Primary visibility, shadow and reflection rays against the alpha of where they cross."""
    data = drawn.frame.data
    camera = drawn.prepared.scene.camera
    tangent = np.tan(camera.y_fov / 2)
    x = ((np.arange(data.width) + 0.5) / data.width * 2 - 1) * tangent * data.width / data.height
    y = (1 - (np.arange(data.height) + 0.5) / data.height * 2) * tangent
    direction = np.stack(np.broadcast_arrays(x[None, :], y[:, None], -1.0), -1)
    direction = direction @ camera.transform[:3, :3].T
    eye = camera.position
    points, on_leaf, certain = crossing(eye, eye + 100 * direction)
    value = alpha(points)
    certain = certain & ((np.abs(value - cutoff) > MARGIN) | ~on_leaf)
    seen = drawn.aov("object") == leaf_object(drawn)
    np.testing.assert_array_equal(seen[certain], (on_leaf & (value >= cutoff))[certain])
    assert certain.mean() > 0.97

    rays, lit = drawn.shadows
    origin = rays["origin"].astype(np.float64)
    points, on_leaf, certain = crossing(origin, drawn.light_points(rays))
    of_wall = drawn.aov("object").ravel()[rays["slot"] // 2] != leaf_object(drawn)
    on_leaf &= of_wall | (rays["slot"] % 2 == 1)
    value = alpha(points)
    certain &= (np.abs(value - cutoff) > MARGIN) | ~on_leaf
    # A ray that starts on the leaf itself crosses it nowhere else.
    certain &= np.abs(origin[:, 2]) > 1e-3
    np.testing.assert_array_equal(lit[certain], ~(on_leaf & (value >= cutoff))[certain])

    rays, hits = drawn.reflections
    origin = rays["origin"].astype(np.float64)
    points, on_leaf, certain = crossing(origin, origin + 100.0 * rays["direction"])
    on_leaf &= origin[:, 2] < -1
    value = alpha(points)
    certain &= (np.abs(value - cutoff) > MARGIN) | ~on_leaf
    certain &= np.abs(origin[:, 2]) > 1e-3
    hit = hits["object"] != MISS_ID
    np.testing.assert_array_equal(hit[certain], (on_leaf & (value >= cutoff))[certain])
    return int(on_leaf.sum())


def leaf_object(drawn: Any) -> int:
    return next(i for i, x in enumerate(drawn.prepared.scene.instances) if x.name.endswith("1"))


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("wraps", [("repeat", "clamp"), ("clamp", "mirror"), ("mirror", "repeat")])
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 5)])
def test_sizes_and_wraps(
    kit: Any, draw: Any, rng: Any, size: tuple[int, int], wraps: tuple[str, str], gbuffer: str
) -> None:
    scene, alpha = leaf_scene(kit, rng, size, wraps)
    assert check_frame(draw(scene, 64, 48, gbuffer=gbuffer), alpha, 0.5) > 100


@pytest.mark.parametrize("cutoff", [0.0, 0.25, 0.9, 1.0])
def test_cutoffs(kit: Any, draw: Any, rng: Any, cutoff: float) -> None:
    leaf = Material("leaf", alpha_mode="MASK", alpha_cutoff=cutoff)
    scene, alpha = leaf_scene(kit, rng, material=leaf)
    assert check_frame(draw(scene, 64, 48), alpha, cutoff) > 100


def test_alpha_is_texture_times_factor_times_vertex(kit: Any, draw: Any, rng: Any) -> None:
    leaf = Material("leaf", (1, 1, 1, 0.8), alpha_mode="MASK", alpha_cutoff=0.3)
    scene, alpha = leaf_scene(kit, rng, material=leaf, vertex_alpha=(255, 90, 160, 220))
    assert check_frame(draw(scene, 64, 48), alpha, 0.3) > 100


@pytest.mark.parametrize("factor,covered", [(0.49, False), (0.51, True)])
def test_blend_is_tested_at_one_half(
    kit: Any, draw: Any, rng: Any, factor: float, covered: bool
) -> None:
    from engine.scene.material import BLEND_CUTOFF

    assert BLEND_CUTOFF == 0.5
    leaf = Material("leaf", (1, 1, 1, factor), alpha_mode="BLEND")
    scene, alpha = leaf_scene(kit, rng, material=leaf, textured=False)
    drawn = draw(scene, 32, 24)
    check_frame(drawn, alpha, 0.5)
    assert (drawn.aov("object") == leaf_object(drawn)).any() == covered


def test_every_candidate_is_counted(kit: Any, draw: Any, rng: Any) -> None:
    scene, _ = leaf_scene(kit, rng)
    drawn = draw(scene, 64, 48, count=True)
    for kind, name in ((drawn.shadows, "shadow"), (drawn.reflections, "reflection")):
        rays = kind[0]
        origin = rays["origin"].astype(np.float64)
        end = drawn.light_points(rays) if name == "shadow" else origin + 100.0 * rays["direction"]
        _, on_leaf, certain = crossing(origin, end)
        on_leaf &= np.abs(origin[:, 2]) > 1e-3
        counts = drawn.stats.rays[name]
        # One leaf of two triangles: a ray through it makes one candidate, whatever becomes of it.
        assert abs(counts.any_hits - on_leaf.sum()) <= (~certain).sum() and counts.any_hits > 50
        spent = sum(x["any_hits"] for (_, ray), x in drawn.stats.objects.items() if ray == name)
        assert spent == counts.any_hits


def with_flags(prepared: Any, clear: int = 0, put: int = 0) -> Any:
    """The scene with flag bits of its instance nodes changed (word 3, bits 31:28)."""
    words = prepared.bvh.words.copy()
    changed = 0
    for unit in range(2, len(prepared.bvh.tlas_words) // 16):
        node = words[unit * 16 :]
        parent = prepared.bvh.parents[unit]
        if parent != 0xFFFFFFFF and int(node[3]) >> 28 and int(node[2]) >> 24 == 0xFF:
            pointers = words[(int(parent) & ~7) * 2 :][:4]
            if unit * 8 | NODE_INSTANCE in pointers:
                node[3] = (int(node[3]) & ~clear) | put
                changed += 1
    assert changed == len(prepared.bvh.instances)
    return replace(prepared, bvh=replace(prepared.bvh, words=words))


def test_force_opaque_skips_the_alpha_test(kit: Any, draw: Any, rng: Any) -> None:
    scene, _ = leaf_scene(kit, rng)
    prepared = with_flags(prepare(scene), put=INSTANCE_FORCE_OPAQUE)
    drawn = draw(prepared, 48, 36, count=True, gbuffer="rays")
    check_frame(drawn, lambda points: np.ones(points.shape[:-1]), 0.5)
    assert drawn.stats.rays["shadow"].any_hits == drawn.stats.rays["reflection"].any_hits == 0


def test_force_non_opaque_tests_every_triangle_and_opaque_materials_pass(
    kit: Any, draw: Any, rng: Any
) -> None:
    scene, alpha = leaf_scene(kit, rng)
    plain = draw(scene, 48, 36, count=True)
    forced = draw(
        with_flags(prepare(scene), clear=INSTANCE_NO_FORCE_NON_OPAQUE), 48, 36, count=True
    )
    assert forced.frame.result_hash() == plain.frame.result_hash()
    check_frame(forced, alpha, 0.5)
    counts = [d.stats.rays["reflection"] for d in (plain, forced)]
    assert counts[1].any_hits >= counts[0].any_hits > 0
    assert counts[0].hits == counts[1].hits


def test_rays_take_all_for_opaque_or_reject_all(kit: Any, draw: Any, rng: Any) -> None:
    scene, _ = leaf_scene(kit, rng)
    plain, solid, absent = (
        draw(scene, 48, 36, count=True, gbuffer="rays", any_hit=any_hit)
        for any_hit in ("test", "opaque", "reject")
    )
    check_frame(solid, lambda points: np.ones(points.shape[:-1]), 0.5)
    check_frame(absent, lambda points: np.zeros(points.shape[:-1]), 0.5)
    for ray in ("reflection", "shadow"):
        assert solid.stats.rays[ray].any_hits == 0 < plain.stats.rays[ray].any_hits
        rejected = absent.stats.rays[ray]
        # Each crossing of the leaf is asked for and refused; the wall's hits are not.
        assert rejected.any_hits == rejected.triangle_hits - rejected.hits > 0
    for drawn in (solid, absent):
        cpu = drawn.frame.run_cpu(until="traverse/shadow")
        lit = drawn.frame.data.device.read(
            drawn.frame.data.resources["shadow_results"], np.uint32, count=2 * 48 * 36
        )
        assert (cpu["shadow_results"] != lit).mean() < 0.01


def test_the_rasteriser_has_no_rays_and_tests(kit: Any, draw: Any, rng: Any) -> None:
    scene, _ = leaf_scene(kit, rng)
    seen = [draw(scene, 48, 36, any_hit=any_hit).aov("object") for any_hit in ANY_HITS]
    for other in seen[1:]:
        np.testing.assert_array_equal(other, seen[0])
    with pytest.raises(UserError, match="unknown any-hit 'ask', there are test, opaque, reject"):
        draw(scene, 48, 36, any_hit="ask")


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("textured", [False, True])
def test_a_full_alpha_passes_a_cutoff_of_one(
    kit: Any, draw: Any, textured: bool, gbuffer: str
) -> None:
    """Rounding of interpolation weights must not punch holes."""
    leaf = Material("leaf", alpha_mode="MASK", alpha_cutoff=1.0, base_color_texture=textured - 1)
    wall = kit.quad((-9, -9, 0), (18, 0, 0), (0, 18, 0))
    opaque = Texture("leaf", np.full((3, 5, 4), 255, np.uint8), True)
    scene = kit.scene([wall], [leaf], textures=[opaque], eye=(0.3, 0.2, 5))
    assert (draw(scene, 64, 64, gbuffer=gbuffer).aov("object") == 0).all()
