"""The traversal kernel on spheres: the same hits as the oracle, in every kind of query."""

import numpy as np
import pytest

from bvh import oracle
from bvh.blas import BuildOptions
from bvh.build import build_blas
from bvh.build_spheres import build_sphere_blas
from bvh.gpu.trace_rays import FAILURES, RayTracer, Variant, fit_variant
from bvh.ray_sphere import ROOT_ERROR, decode_place
from bvh.rays import make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from bvh.validate import validate
from engine.gpu.errors import UserError


def mixed_scene(rng, opaque=True):
    """Spheres in two places, one of them an ellipsoid, among triangles; the last in no mask 1."""
    spheres = np.column_stack([rng.uniform(-3, 3, (40, 3)), 10 ** rng.uniform(-1.5, 0, 40)])
    ids = np.arange(40)
    balls = build_sphere_blas(
        spheres[:, :3], spheres[:, 3], np.zeros(40), ids, [opaque], BuildOptions()
    )
    corners = rng.uniform(-3, 3, (60, 1, 3)) + rng.normal(size=(60, 3, 3)) * 0.3
    soup = build_blas(
        corners.astype(np.float32), np.zeros(60), np.arange(60), [opaque], BuildOptions()
    )
    bent = np.eye(4)
    bent[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0] @ np.diag([0.3, 1.0, 2.0])
    bent[:3, 3] = 1, 2, -1
    placed = [
        BvhInstance(0, np.eye(4), first_object=0, name="balls"),
        BvhInstance(0, bent, first_object=1, name="bent"),
        BvhInstance(1, np.eye(4), first_object=2, name="soup"),
        BvhInstance(0, np.eye(4), 2, first_object=3, name="hidden"),
    ]
    return assemble([balls, soup], ["balls", "soup"], placed)


def random_rays(rng, count):
    origin = rng.uniform(-6, 6, (count, 3))
    direction = (rng.uniform(-3, 3, (count, 3)) - origin) * 10 ** rng.uniform(-3, 3, (count, 1))
    return make_rays(origin, direction, 0.0, 3e38)


@pytest.mark.parametrize("checked", [False, True])
def test_hits_are_the_oracles(rng, device, checked):
    scene = mixed_scene(rng)
    rays = random_rays(rng, 3000)
    variant = fit_variant(Variant("spheres", mask=1), scene, has_alpha=False)
    assert variant.has_spheres
    tracer = RayTracer(device, scene.words, variant, counted=checked)
    got = tracer.trace(rays)
    assert got.failures == ()
    expected = oracle.trace(scene.words, rays, mask=1, kernel_order=True)
    hit = got.hits["object"] != 0xFFFFFFFF
    both = hit & expected.hit
    assert (hit == expected.hit).mean() > 0.998 and both.sum() > 1500
    same = both & (got.hits["primitive"] == expected.primitive)
    same &= got.hits["instance"] == expected.instance
    assert same.sum() > 0.998 * both.sum()
    ball = same & (expected.instance != 2)
    assert ball.sum() > 800 and (same & (expected.instance == 2)).sum() > 100
    # Both are within the bound of the truth where the ray does not graze; here within 30 of it.
    length = np.linalg.norm(rays["direction"], axis=1)
    off = np.abs(got.hits["t"] - expected.t) * length
    assert np.median(off[ball]) < 1e-6
    assert (off[ball] < 30 * ROOT_ERROR * 2**-24 * 40).mean() > 0.999
    place = decode_place(got.hits["u"][ball], got.hits["v"][ball])
    wanted = decode_place(expected.u[ball], expected.v[ball])
    assert np.median(np.abs(place - wanted).max(1)) < 1e-5
    if checked:
        tests = got.counters["triangle_tests"]
        assert abs(tests - int(expected.counters.triangle_tests.sum())) < 0.01 * tests


def test_any_hit_and_one_sphere(rng, device):
    one = build_sphere_blas([[0, 0, 0]], [1.0], [0], [0], [True], BuildOptions())
    scene = assemble([one], ["one"], [BvhInstance(0, np.eye(4))])
    origin = [(0, 0, -3), (0, 0, 0), (0, 0, 3), (2, 0, -3), (0, 0, -3), (0, 0, -3)]
    rays = make_rays(
        origin, [(0, 0, 1)] * 6, [0, 0, 0, 0, 2.5, 0], [3e38, 3e38, 3e38, 3e38, 3e38, 1.5]
    )
    for any_hit in (False, True):
        variant = fit_variant(Variant("one", any_hit=any_hit), scene, has_alpha=False)
        assert not variant.two_level
        got = RayTracer(device, scene.words, variant).trace(rays)
        hit = got.hits["object"] == 0
        assert got.failures == () and hit.tolist() == [True, True, False, False, True, False]
        if not any_hit:
            assert got.hits["t"][hit].tolist() == [2.0, 1.0, 4.0]


def test_without_the_override_a_sphere_is_an_unknown_node(rng, device):
    scene = mixed_scene(rng)
    got = RayTracer(device, scene.words, Variant("no spheres", has_alpha=False)).trace(
        random_rays(rng, 200)
    )
    assert got.failures == ("an unknown node type was met",)


def test_the_contract_traversal_refuses_spheres_by_name(rng):
    with pytest.raises(UserError, match="contract traversal cannot test spheres"):
        fit_variant(Variant("contract", traversal="contract"), mixed_scene(rng))


def test_damaged_bytes_end_and_are_named_where_they_are_structure(rng, device):
    """Any word of a container of spheres: no traversal fails otherwise than by its failed bits or a
    UserError, and validate names what is neither an id nor a moved coordinate inside its box."""
    scene = mixed_scene(rng)
    rays = random_rays(rng, 16)
    variant = fit_variant(Variant("damaged"), scene, has_alpha=False)
    tracer = RayTracer(device, scene.words, variant)
    first = int(scene.blas_bases[0]) // 4
    end = first + len(scene.blas_words(0))
    fields = {name: getattr(scene, name) for name in scene.__dataclass_fields__}
    named = 0
    for _ in range(24):
        words = scene.words.copy()
        words[int(rng.integers(first, end))] ^= np.uint32(1) << np.uint32(rng.integers(32))
        named += bool(validate(SceneBvh(**{**fields, "words": words})))
        tracer.bind(words)
        got = tracer.trace(rays)
        assert set(got.failures) <= set(FAILURES.values())
        try:
            oracle.trace(words, rays, workers=1, step_limit=4096)
        except UserError:
            pass
    assert named > 8
