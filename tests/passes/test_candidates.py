"""Alpha tests in passes between rounds of traversal: hits, pictures and counts of inline ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.build import BuildOptions
from bvh.counters import COUNTERS
from bvh.rays import make_rays
from engine.gpu.errors import UserError
from engine.scene.material import Material, Texture
from engine.scene.mesh import make_mesh
from passes.candidates import round_count
from passes.frame_options import MOST_ROUNDS, FrameOptions
from passes.frame_stats import FrameStats
from passes.hybrid import HybridFrame
from passes.prepare import PreparedScene, prepare
from passes.rays import RAY_TYPES
from passes.twins.frame import cpu_passes

SIZE = (48, 36)


@pytest.fixture(scope="module")
def grove(kit: Any) -> PreparedScene:
    """Six sheets full of holes between the camera and a mirror, lit through them; each sheet has a
    twin of other holes in its very place, so that equal distances are common."""
    rng = np.random.default_rng(3)
    textures = []
    for i in range(3):
        pixels = np.full((16, 16, 4), 255, np.uint8)
        pixels[..., 3] = rng.choice([0, 255], (16, 16))
        textures.append(Texture(f"leaf{i}", pixels, True))
    leaves = [
        Material(f"leaf{i}", roughness=0.2, alpha_mode="MASK", base_color_texture=i)
        for i in range(3)
    ]
    meshes = [kit.quad((-12, -9, -4), (24, 0, 0), (0, 18, 0), 0)]
    for i in range(12):
        z = 0.3 * (i // 2) - 1.5
        sheet = kit.quad((-2, -2, z), (4, 0, 0), (0, 4, 0), 1 + i % 3, cells=2)
        meshes.append(replace(sheet, uvs=sheet.uvs * 2))
    scene = kit.scene(
        meshes,
        [kit.mirror(roughness=0.1), *leaves],
        textures=textures,
        eye=(2.0, 0.6, 4.5),
        target=(0.3, 0.0, -1.0),
        light=kit.lamp((0.4, 0.3, 4.0), 0.3, (0, 0, -1), (9, 9, 9)),
    )
    return prepare(scene, BuildOptions(reinsertion=0), "all")


@pytest.fixture(scope="module")
def frames(device: Any, grove: PreparedScene) -> Any:
    """frames(rounds, **options) -> (frame, its statistics); 0 rounds are inline."""
    known: dict[Any, tuple[HybridFrame, FrameStats]] = {}

    def make(rounds: int, **options: Any) -> tuple[HybridFrame, FrameStats]:
        key = (rounds, *sorted(options.items()))
        if key not in known:
            if rounds:
                options |= {"any_hit_mode": "queue", "any_hit_rounds": rounds}
            frame = HybridFrame(device, grove, FrameOptions(*SIZE, occlusion=True, **options))
            stats = frame.run(0)
            if stats.dropped:
                stats = frame.run(0)
            known[key] = frame, stats
        return known[key]

    return make


@pytest.mark.parametrize("rounds", [1, 3])
def test_hits_and_pictures_are_those_of_inline_tests(frames: Any, rounds: int) -> None:
    (inline, _), (queued, stats) = frames(0), frames(rounds)
    assert stats.valid
    assert queued.result_hash() == inline.result_hash()
    np.testing.assert_array_equal(queued.image(), inline.image())
    names = [item.name for item in queued.passes]
    for ray in ("reflection", "shadow"):
        assert f"traverse/{ray}/{rounds}" in names and f"any-hit/{ray}/{rounds - 1}" in names
        # There is something to do in the last round, too.
        assert queued.data.device.read(
            queued.data.resources[f"{ray}_rejected_{rounds - 1}"], np.uint32, count=1
        )[0]


def test_counts_add_up_over_rounds(frames: Any) -> None:
    (inline, before), (queued, after) = frames(0, count=True), frames(2, count=True)
    assert after.valid and queued.result_hash() == inline.result_hash()
    assert queued.result_hash() == frames(3)[0].result_hash()
    for ray in RAY_TYPES:
        one, other = before.rays[ray.name], after.rays[ray.name]
        assert (one.rays, one.hits, one.misses) == (other.rays, other.hits, other.misses)
        assert other.any_hits and other.nodes and one.nodes
        assert 0 < other.any_hits <= one.any_hits and other.nodes > one.nodes
        assert other.nodes_hit is not None and 0 < other.nodes_hit < other.nodes
        for name in ("nodes", "any_hits", "triangle_tests"):
            plane = queued.data.read_slot_counts(ray, name)
            assert plane.sum() == getattr(other, name), name
            if name != "nodes":
                spent = sum(x[name] for (_, kind), x in after.objects.items() if kind == ray.name)
                assert spent == getattr(other, name)


def test_rounds_in_parts(device: Any, grove: PreparedScene, frames: Any) -> None:
    frame = HybridFrame(
        device, grove, FrameOptions(*SIZE, occlusion=True, any_hit_mode="queue", any_hit_rounds=2)
    )
    frame.run(0)  # the queues have their room
    steps = list(frame.steps(0, budget_ms=1.0))
    assert len(steps) > 3 and steps[-1] is not None and steps[-1].valid
    assert frame.result_hash() == frames(0)[0].result_hash()


def test_nobody_waits_where_nothing_asks(device: Any, kit: Any, grove: PreparedScene) -> None:
    """Solid scenes, forced rays and contract traversal trace as ever."""
    queue = {"any_hit_mode": "queue"}
    solid = prepare(kit.scene([kit.quad((-1, -1, 0), (2, 0, 0), (0, 2, 0))]))
    for prepared, options in ((solid, {}), (grove, {"any_hit": "reject"})):
        frame = HybridFrame(device, prepared, FrameOptions(16, 16, **queue, **options))
        assert not [item.name for item in frame.passes if item.name.startswith("any-hit")]
        assert not frame.data.candidate_queues(RAY_TYPES[0]) and frame.run(0).valid
    assert round_count(FrameOptions(8, 8, **queue, traversal="contract"), True) == 0
    assert round_count(FrameOptions(8, 8, **queue), True) == 2


def test_any_hit_rays_ask_exactly_what_they_ask_inline(frames: Any) -> None:
    """They end at the first candidate that is accepted, in the same order."""
    before, after = (frames(n, count=True)[1].rays["shadow"].any_hits for n in (0, 2))
    assert before == after


def test_a_full_queue_is_counted_and_the_next_has_room(
    device: Any, grove: Any, frames: Any
) -> None:
    options = FrameOptions(*SIZE, occlusion=True, any_hit_mode="queue", any_hit_rounds=1)
    frame = HybridFrame(device, grove, options)
    frame.data.waiting = dict.fromkeys(frame.data.waiting, 10)
    for ray in RAY_TYPES:
        frame.data._add_candidates(ray)
    frame._make_frame()
    stats = frame.run(0)
    assert not stats.valid and "dropped by full queues" in stats.failures[0]
    lost = [stats.rays[ray.name].candidates_dropped for ray in RAY_TYPES]
    assert min(lost) > 0 and stats.dropped == sum(lost)
    stats = frame.run(0)
    while stats.dropped:
        stats = frame.run(0)
    assert stats.valid and frame.result_hash() == frames(0)[0].result_hash()


@pytest.mark.parametrize("count", [False, True])
def test_twins_draw_the_same(frames: Any, count: bool) -> None:
    frame, stats = frames(2, count=count)
    twins = cpu_passes(frame.options)
    assert [p.name for p in frame.passes][1:] == [t.name for t in twins][1:]
    for item, twin in zip(frame.passes[1:], twins[1:], strict=True):
        bound = {twin.bind.get(name, name) for name in twin.bindings}
        indirect = {name for name in item.reads if name.endswith("_arguments")}
        assert bound | indirect == set(item.reads) | set(item.writes), item.name
    cpu = frame.run_cpu()
    picture = cpu["picture"].view(np.uint8).reshape(SIZE[1], SIZE[0], 4)[..., :3]
    apart = np.abs(picture.astype(int) - frame.image()).max(axis=-1)
    assert (apart > 1).mean() < 0.02
    for ray in RAY_TYPES:
        for number in range(2):
            for name in ("candidates", "rejected"):
                queue = f"{ray.name}_{name}_{number}"
                theirs = frame.data.device.read(frame.data.resources[queue], np.uint32, count=1)[0]
                assert abs(cpu[queue].count - int(theirs)) <= 0.02 * theirs + 2, queue
        if count:
            totals = cpu[f"{ray.name}_counters"]
            seen = stats.rays[ray.name]
            assert abs(seen.hits - int(totals[COUNTERS.index("hits")])) <= 0.01 * seen.rays
            assert seen.any_hits == pytest.approx(int(totals[COUNTERS.index("any_hits")]), rel=0.03)


def test_the_oracle_resumes_where_it_was(grove: PreparedScene, rng: Any) -> None:
    """Rounds of one candidate each, by hand, against one inline trace: same hits, each candidate
    asked once."""
    origin = rng.uniform(-1.5, 1.5, (400, 3)) * [1, 1, 0] + [0, 0, 3]
    direction = rng.normal(0, 0.2, (400, 3)) * [1, 1, 0] + [0, 0, -1]
    rays = make_rays(origin, direction, 0.0, 6.5)  # not to the wall

    def accept(objects: Any, primitives: Any, u: Any, v: Any) -> Any:
        return (np.floor(9 * u) + np.floor(7 * v) + objects) % 4 == 0

    words = grove.bvh.words
    for any_hit in (False, True):
        settings: dict[str, Any] = {"any_hit": any_hit, "kernel_order": True}
        inline = oracle.trace(words, rays, accept=accept, **settings)
        found = np.full(len(rays), 0xFFFFFFFF, np.uint32)
        primitive = found.copy()
        asked = np.zeros(len(rays), np.int64)
        left, resume = np.arange(len(rays)), None
        while left.size:
            got = oracle.trace(words, rays[left], defer=True, resume=resume, **settings)
            asked[left] += got.waits
            rejected = got.waits & got.hit
            rejected[rejected] = ~accept(
                *(getattr(got, n)[rejected] for n in ("object", "primitive", "u", "v"))
            )
            done = left[~rejected]
            found[done], primitive[done] = got.object[~rejected], got.primitive[~rejected]
            resume = oracle.Resume(got.t[rejected], got.pointer[rejected], got.instance[rejected])
            left = left[rejected]
        np.testing.assert_array_equal(found, inline.object)
        np.testing.assert_array_equal(primitive, inline.primitive)
        assert asked.max() >= 4
        if any_hit:
            np.testing.assert_array_equal(asked, inline.counters.any_hits)
        else:
            assert (asked <= inline.counters.any_hits).all()


def test_both_triangles_of_a_folded_pair_are_asked(device: Any, kit: Any, rng: Any) -> None:
    """A ray through both of a block's triangles: where the second, nearer one is a hole, the first
    still counts."""
    count = 60
    first = np.concatenate([rng.uniform(-1.6, 1.0, (count, 2)), rng.uniform(-1, 1, (count, 1))], 1)
    fold = np.where(np.arange(count)[:, None] % 2, 0.1, -0.1) * [0, 0, 1]
    apex = first + [0.6, 0.3, 0]
    corners = np.stack([first, first + [0, 0.6, 0], apex, apex + fold])
    at = np.arange(count)
    faces = [[at, at + count, at + 2 * count], [at + count, at, at + 3 * count]]
    leaves = make_mesh(
        "leaves",
        corners.reshape(-1, 3),
        np.concatenate([np.stack(face, 1) for face in faces]),
        1,
        uvs=rng.random((4 * count, 2)) * 3,
    )
    pixels = np.full((8, 8, 4), 255, np.uint8)
    pixels[..., 3] = rng.choice([0, 255], (8, 8))
    wall = kit.quad((-9, -9, -2), (18, 0, 0), (0, 18, 0), 0)
    leaf = Material("leaf", roughness=1.0, alpha_mode="MASK", base_color_texture=0)
    scene = kit.scene(
        [wall, leaves],
        [kit.grey(), leaf],
        textures=[Texture("leaf", pixels, True)],
        light=kit.lamp((0.4, 0.3, 4.0), 0.3, (0, 0, -1), (9, 9, 9)),
    )
    prepared = prepare(scene, BuildOptions(reinsertion=0))
    assert prepared.bvh.blas_stats[prepared.bvh.blas_names.index("leaves")].pairs == count
    hashes = set()
    for mode in ("inline", "queue"):
        frame = HybridFrame(device, prepared, FrameOptions(96, 96, any_hit_mode=mode))
        assert frame.run(0).valid
        hashes.add(frame.result_hash())
    assert len(hashes) == 1


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="unknown any-hit mode 'later', there are inline, queue"):
        FrameOptions(8, 8, any_hit_mode="later")
    with pytest.raises(UserError, match=f"any-hit rounds are 1 to {MOST_ROUNDS}, not 0"):
        FrameOptions(8, 8, any_hit_rounds=0)
