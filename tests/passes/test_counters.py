"""Counters: timed and counted frames trace the same rays, and the numbers add up; the GPU's agree
with the CPU oracle's over the same rays and bytes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.oracle import trace
from bvh.rays import MISS_ID, make_rays
from engine.gpu.errors import LimitError
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.rays import RAY_TYPES
from passes.slot_counts import SLOT_COUNTS, buffer_bytes

SIZE = (81, 55)
# The oracle's boxes grow by other bounds than the kernel's, and triangles that tie are met in
# another order: nodes and tests agree this far.
WORK_TOLERANCE = 0.02


@pytest.fixture(scope="module", params=["raster", "rays"])
def pair(request: pytest.FixtureRequest, draw: Any, room: Any, kit: Any) -> tuple[Any, Any]:
    """The same frame timed and counted."""
    settings = dict(gbuffer=request.param, seed=5, **kit.every_ray)
    return tuple(draw(room, *SIZE, count=count, **settings) for count in (False, True))


def test_timed_and_counted_frames_have_the_same_hits(pair: Any) -> None:
    timed, counted = pair
    assert timed.frame.result_hash() == counted.frame.result_hash()
    np.testing.assert_array_equal(timed.frame.image(), counted.frame.image())
    assert timed.stats.valid and counted.stats.valid
    assert counted.stats.counted and not timed.stats.counted
    for ray in RAY_TYPES:
        a, b = (d.stats.rays[ray.name] for d in pair)
        assert (a.rays, a.dropped, a.replaced) == (b.rays, b.dropped, b.replaced)
        assert a.nodes is a.hits is a.any_hits is a.stack_max is a.overflows is None


def test_numbers_add_up(pair: Any) -> None:
    stats = pair[1].stats
    for name, n in stats.rays.items():
        assert n.rays == n.hits + n.misses > 0
        assert n.hits > 0 and n.misses > 0
        assert n.nodes == n.nodes_hit + n.nodes_miss
        assert n.box_tests >= n.box_hits > 0
        # A node has one to four children.
        assert n.nodes <= n.box_tests <= 4 * n.nodes
        assert n.triangle_tests >= n.triangle_hits > 0
        assert n.any_hits <= n.triangle_hits
        assert 1 <= n.nodes_p50 <= n.nodes_p95 <= n.nodes_max <= n.nodes
        assert 0 < n.stack_max <= 32 and n.overflows == 0
        spent = {k: v for (k, ray), v in stats.objects.items() if ray == name}
        for field in ("nodes", "triangle_tests", "any_hits"):
            assert sum(v[field] for v in spent.values()) == getattr(n, field), field
        assert spent["(TLAS)"]["triangle_tests"] == 0 < spent["(TLAS)"]["nodes"]
        assert set(spent) - {"(TLAS)"} <= set(pair[1].prepared.object_names)
        # Only the leaves have an alpha test.
        assert [k for k, v in spent.items() if v["any_hits"]] == ["quad"]


@pytest.mark.parametrize("count", SLOT_COUNTS)
@pytest.mark.parametrize("ray", RAY_TYPES, ids=lambda ray: ray.name)
def test_a_plane_adds_up_to_the_counter(pair: Any, ray: Any, count: str) -> None:
    data, total = pair[1].frame.data, getattr(pair[1].stats.rays[ray.name], count)
    plane = data.read_slot_counts(ray, count)
    assert len(plane) == SIZE[0] * SIZE[1] * ray.slots_per_pixel
    assert (int(plane.max()) if count == "stack_max" else int(plane.sum())) == total > 0
    # What no ray was sent from stays 0; a slot is written by its own ray alone.
    sent = data.read_slot_counts(ray, "nodes") > 0
    assert sent.sum() == pair[1].stats.rays[ray.name].rays and not plane[~sent].any()
    by_pixel = plane.reshape(-1, ray.slots_per_pixel)
    expected = [max(p) if count == "stack_max" else sum(p) for p in by_pixel.tolist()]
    picture = pair[1].aov(f"{count}/{ray.name}")
    assert picture.shape == SIZE[::-1] and picture.ravel().tolist() == expected


def test_planes_forget_the_frame_before(draw: Any, room: Any) -> None:
    frame = draw(room, 24, 16, gbuffer="rays", count=True).frame
    before = frame.aov("box_tests/reflection") > 0
    stats = frame.run(inputs=replace(frame.inputs, roughness_cutoff=0.1))
    plane = frame.aov("box_tests/reflection")
    assert plane.sum() == stats.rays["reflection"].box_tests > 0
    assert (plane > 0).sum() < before.sum()


def test_planes_of_a_ray_fit_together(pair: Any) -> None:
    for ray in RAY_TYPES:
        read = pair[1].frame.data.read_slot_counts
        nodes, boxes, triangles, any_hits, stack = (
            read(ray, n).astype(int)
            for n in ("nodes", "box_tests", "triangle_tests", "any_hits", "stack_max")
        )
        assert (nodes <= boxes).all() and (boxes <= 4 * nodes).all()
        assert (any_hits <= triangles).all()
        # A node leaves at most three of its children on the stack.
        assert (stack <= 3 * nodes).all() and (stack < boxes + 1).all()


def test_planes_beyond_a_binding_are_refused_by_name(
    device: Any, room: Any, monkeypatch: Any
) -> None:
    """Smaller than the ray's queue, whose records are larger: so the queue is given room."""
    limits = {**device.limits, "max-storage-buffer-binding-size": buffer_bytes(2 * 64 * 64) - 1}
    monkeypatch.setattr(device, "limits", limits)
    HybridFrame(device, room, FrameOptions(64, 64, queue_fraction=0.5))
    with pytest.raises(LimitError, match="size 64x64: the counts of shadow rays needs 163,840"):
        HybridFrame(device, room, FrameOptions(64, 64, queue_fraction=0.5, count=True))


def test_the_heat_map_knows_who_sent_a_ray(pair: Any) -> None:
    rays, _ = pair[1].reflections
    sent = np.zeros(SIZE[0] * SIZE[1], bool)
    sent[rays["pixel"]] = True
    np.testing.assert_array_equal(pair[1].aov("nodes/reflection").ravel() > 0, sent)
    with pytest.raises(ValueError, match="stack_max/shadow needs a counted frame"):
        pair[0].aov("stack_max/shadow")


def test_the_shadow_ray_is_smaller(pair: Any) -> None:
    sizes = {name: n.payload_bytes for name, n in pair[1].stats.rays.items()}
    assert sizes["shadow"] < sizes["reflection"] <= 32
    header, record = 32, sizes["shadow"]
    buffer = pair[1].frame.data.resources["shadow_queue"]
    assert buffer.size >= header + record * pair[1].stats.rays["shadow"].rays


def accept_by_alpha(prepared: Any) -> Any:
    """The oracle's alpha test from the twins: their own test holds them against the kernel."""
    from passes.alpha import pack_alpha
    from passes.twins.accept_alpha import accept_candidate

    alpha = pack_alpha(prepared.scene, prepared.pack)

    def accept(objects: Any, primitives: Any, u: Any, v: Any) -> Any:
        return accept_candidate(alpha, prepared.pack.texels, objects, primitives, u, v)

    return accept


def test_reflection_rays_agree_with_the_oracle(pair: Any) -> None:
    rays, hits = pair[1].reflections
    given = make_rays(rays["origin"], rays["direction"])
    prepared = pair[1].prepared
    truth = trace(prepared.bvh.words, given, accept=accept_by_alpha(prepared))
    counts = pair[1].stats.rays["reflection"]
    assert counts.rays == len(given)
    different = hits["object"] != truth.object
    different |= hits["primitive"] != truth.primitive
    both = (hits["object"] != MISS_ID) & truth.hit
    # Another triangle only at the same distance.
    tie = both & np.isclose(hits["t"], np.where(truth.hit, truth.t, 0), rtol=1e-4)
    assert (different & ~tie).sum() <= 2
    np.testing.assert_allclose(hits["t"][both & ~different], truth.t[both & ~different], rtol=2e-4)
    assert abs(counts.hits - int(truth.hit.sum())) <= 2
    work = truth.counters
    for name in ("nodes", "nodes_fp16", "box_tests", "box_hits", "instance_hits"):
        expected = int(getattr(work, name).sum())
        assert getattr(counts, name) == pytest.approx(expected, rel=WORK_TOLERANCE), name
    # Which triangles are met before the nearest hit is known depends on the order of visits: the
    # kernel does not test a child again when it leaves the stack.
    for name in ("triangle_tests", "triangle_hits", "any_hits", "leaf_blocks"):
        expected = int(getattr(work, name).sum())
        assert getattr(counts, name) == pytest.approx(expected, rel=3 * WORK_TOLERANCE), name
    nodes = pair[1].frame.data.read_slot_counts(RAY_TYPES[0], "nodes")[rays["pixel"]]
    assert (nodes == work.nodes).mean() > 0.95


def test_shadow_rays_agree_with_the_oracle(pair: Any) -> None:
    rays, lit = pair[1].shadows
    target = pair[1].light_points(rays)
    given = make_rays(rays["origin"], target - rays["origin"], t_max=0.9995)
    prepared = pair[1].prepared
    truth = trace(prepared.bvh.words, given, any_hit=True, accept=accept_by_alpha(prepared))
    counts = pair[1].stats.rays["shadow"]
    assert counts.rays == len(given) and counts.hits == int((~lit).sum())
    # A ray past an edge may fall either way: its direction is rounded elsewhere.
    assert (lit == truth.hit).sum() <= max(2, 0.001 * len(lit))
    # Which hit ends an any-hit ray depends on the order of children, so only the work of rays
    # that reach the light is defined: those visit every box that they enter.
    through = lit & ~truth.hit
    nodes = pair[1].frame.data.read_slot_counts(RAY_TYPES[1], "nodes")[rays["slot"]]
    ours, theirs = int(nodes[through].sum()), int(truth.counters.nodes[through].sum())
    assert ours == pytest.approx(theirs, rel=WORK_TOLERANCE)
    assert (nodes[through] == truth.counters.nodes[through]).mean() > 0.95


def test_texture_fetches_are_the_hits_textures(pair: Any) -> None:
    _, hits = pair[1].reflections
    scene = pair[1].prepared.scene
    textures = np.array(
        [
            (m.base_color_texture >= 0) + (m.metallic_roughness_texture >= 0)
            for m in (scene.materials[scene.meshes[i.mesh].material] for i in scene.instances)
        ]
    )
    found = hits["object"][hits["object"] != MISS_ID]
    counts = pair[1].stats.rays["reflection"]
    assert counts.texture_fetches == int(textures[found].sum()) > 0
    assert counts.hits == len(found)


def test_instances_are_counted_apart(kit: Any, draw: Any) -> None:
    """Two balls of one mesh share a name, so their work is one row; a third mesh has its own."""
    from engine.scene.scene import Instance

    scene = kit.scene(
        [kit.sphere(rings=6), kit.quad((-9, -1.2, 9), (18, 0, 0), (0, 0, -18))],
        [kit.mirror()],
        instances=[
            Instance("left", 0, kit.place((-1.3, 0, 0))),
            Instance("right", 0, kit.place((1.3, 0, 0))),
            Instance("floor", 1, np.eye(4)),
        ],
    )
    drawn = draw(scene, 48, 32, count=True, group="object")
    names = {name for name, ray in drawn.stats.objects if ray == "reflection"}
    assert names == {"(TLAS)", "sphere", "quad"}
    balls = drawn.stats.objects["sphere", "reflection"]
    total = drawn.stats.rays["reflection"]
    # A reflection ray of a ball enters at least that ball's instance or the floor's.
    assert balls["nodes"] > 0 and total.instance_hits > total.rays / 2
