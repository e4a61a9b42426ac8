"""Fans in bytes, and through every reader: the same hits as one triangle a block gives."""

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trimesh

from bvh import container, layout, oracle
from bvh.brute_force import closest
from bvh.build import Blas, BuildOptions, build_blas
from bvh.decode import decode, decode_triangles
from bvh.describe import describe
from bvh.encode import encode
from bvh.fan_blocks import (
    fan_table_units,
    find_fan_rows,
    make_fans,
    pack_fan_table,
)
from bvh.gpu.ray_log import RayLogger
from bvh.gpu.trace_rays import RayTracer, Variant, fit_variant
from bvh.header import unpack_header
from bvh.ray_steps import compare_steps, oracle_steps
from bvh.rays import MISS_ID, RayFlags, Rays, make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from bvh.triangles import TriangleSet, triangle_bounds
from bvh.validate import validate
from engine.gpu.errors import UserError

FARTHEST = np.finfo(np.float32).max


def blas_of(triangles: np.ndarray, leaf: int, halves: bool = False, **options: Any) -> Blas:
    """Ids counted down from 5 * row; with `halves` a second geometry, not opaque, from x > 0."""
    geometry = (triangles[:, :, 0].mean(1) > 0).astype(np.uint32) * np.uint32(halves)
    primitive = (5 * np.arange(len(triangles))[::-1]).astype(np.uint32)
    opaque = np.array([True, False])[: 1 + halves]
    return build_blas(
        triangles, geometry, primitive, opaque, BuildOptions(leaf=leaf, reinsertion=0, **options)
    )


def scene_of(triangles: np.ndarray, leaf: int, halves: bool = False, **options: Any) -> SceneBvh:
    """Twice in the scene, the second one turned, so that the TLAS is not skipped."""
    turn = trimesh.transformations.rotation_matrix(0.5, [1, 2, 3], [0.3, 0, 0])
    placed = [BvhInstance(0), BvhInstance(0, turn, first_object=4)]
    return assemble([blas_of(triangles, leaf, halves, **options)], ["mesh"], placed)


@pytest.fixture(scope="module")
def ball() -> np.ndarray:
    """A bumpy ball and loose triangles: blocks of one to four."""
    rng = np.random.default_rng(8)
    mesh = trimesh.creation.icosphere(subdivisions=3)
    points = mesh.vertices * (0.8 + 0.2 * rng.random((len(mesh.vertices), 1)))
    loose = rng.uniform(-1, 1, (40, 1, 3)) + 0.2 * rng.normal(size=(40, 3, 3))
    four = [[[0, 0, 2], [1, 0, 2], [0, 1, 2]], [[0, 0, 2], [0, 1, 2], [-1, 0, 2]]]
    four += [[[0, 0, 2], [-1, 0, 2], [0, -1, 2]], [[0, -1, 2], [1, 0, 2], [0, 0, 2]]]
    return np.concatenate([points[mesh.faces], loose, four]).astype(np.float32)


@pytest.fixture(scope="module")
def rays() -> Rays:
    rng = np.random.default_rng(9)
    origin = 2.5 * rng.normal(size=(3000, 3))
    return make_rays(origin, 1.2 * rng.normal(size=(3000, 3)) - origin, 0.0, FARTHEST)


@pytest.mark.parametrize("turns", list(itertools.product(range(3), repeat=4)))
def test_every_rotation_restores_vertices_and_winding(turns: tuple[int, ...]) -> None:
    apex, rim = (
        np.float32([0, 0, 0.5]),
        np.float32([[1, 0, 0], [0, 1, 0.1], [-1, 0, 0], [0, -1, 0]]),
    )
    four = [[apex, rim[i], rim[(i + 1) % 4]] for i in range(4)]
    corners = np.array([np.roll(t, k, axis=0) for t, k in zip(four, turns, strict=True)])
    for count in (3, 4):
        numbers = np.arange(count, dtype=np.uint32)
        given = TriangleSet(corners[:count], 0 * numbers + np.uint32(0x5A5A), 70 + numbers, 0, 0)
        opaque = np.arange(0x5A5B) == 0x5A5A
        _, words, types, ids = make_fans(given, triangle_bounds(given.positions), opaque)
        assert types.tolist() == [count - 1]
        rows = decode_triangles(words, types, ids)
        back = np.argsort(rows.primitive)
        assert rows.primitive[back].tolist() == list(range(70, 70 + count))
        assert (rows.positions[back] == given.positions).all()
        assert (rows.geometry == 0x5A5A).all() and rows.opaque.all()
        for held, original in zip(rows.slot_positions[back], given.positions, strict=True):
            assert any((held == np.roll(original, i, axis=0)).all() for i in range(3))


def test_block_bytes_by_hand() -> None:
    """A fan of four as the ledger lays it out: V0..V4 at 0, 12, 24, 36, 48, flag bytes at 60."""
    apex, rim = [0.0, 0, 0.5], [[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]]
    corners = np.float32([[apex, rim[i], rim[(i + 1) % 4]] for i in range(4)])
    given = TriangleSet(corners, np.full(4, 0x1234, np.uint32), np.uint32([9, 8, 7, 6]), 0, 0)
    opaque = np.ones(0x1235, np.bool_)
    _, words, _, ids = make_fans(given, triangle_bounds(corners), opaque)
    order = [9 - int(i) for i in ids[0]]  # which triangle became type 0, 1, 2, 3
    assert order in [[(k + i) % 4 for i in range(4)] for k in range(4)]
    first = order[0]
    rim = [rim[(first + i) % 4] for i in range(4)]
    vertices = words[0, :15].view(np.float32).reshape(5, 3).tolist()
    assert vertices == [rim[0], rim[1], apex, rim[2], rim[3]]
    # Original vertex a is the apex: slot 2 of types 0 and 1 (I = slot 0, J = slot 1: nibble 4),
    # slot 0 of types 2 and 3 (nibble 9). High nibbles: the index, lowest first, and the opaque bit.
    assert words[0, 15] == 0x99293444


def test_table_words_by_hand() -> None:
    ids = np.full((40, 4), 0xFFFFFFFF, np.uint32)
    ids[3] = [1, 2, 3, 4]
    ids[31] = [5, 6, 7, 0xFFFFFFFF]
    ids[33] = [8, 9, 10, 11]
    table = pack_fan_table(ids)
    # Two groups of two words, rows from byte 16 on, filled up to 64 bytes.
    assert table.tolist() == [
        1 << 3 | 1 << 31, 1, 1 << 1, 3, *ids[3], *ids[31], *ids[33],
    ]  # fmt: skip
    assert fan_table_units(40, 3) == len(table) // 16 == 1
    assert fan_table_units(40, 4) == 2 and fan_table_units(40, 0) == 0


def test_container(ball: np.ndarray, tmp_path: Any) -> None:
    blas = blas_of(ball, 4)
    header, stats = unpack_header(blas.words), blas.stats
    assert blas.words[1] == 2 and blas_of(ball, 2).words[1] == 1
    assert header.fan_count == stats.fans > 100 and stats.pairs > 0
    assert header.fan_unit == header.leaf_unit + header.leaf_count
    image = decode(blas.words)
    assert set(image.leaf_types.tolist()) == {0, 1, 2, 3}
    words, parents = encode(image)
    assert (words == blas.words).all() and (parents == blas.parents).all()
    rows = decode_triangles(image.leaves, image.leaf_types, image.fan_ids)
    back = np.argsort(rows.primitive)[::-1]
    assert (rows.positions[back] == ball).all()
    scene = scene_of(ball, 4)
    assert validate(scene) == []
    path = tmp_path / "fans.npz"
    container.save(path, scene)
    assert (container.load(path).words == scene.words).all()
    table = describe(scene)["blas"][0]
    assert table["leaf_histogram"][3:] == np.bincount(image.leaf_types, minlength=4)[2:].tolist()
    assert table["bytes"] == stats.bytes and table["fan_table_bytes"] == stats.fan_table_bytes


def test_without_fans_the_bytes_are_version_1() -> None:
    """Loose triangles fit together nowhere: `leaf=4` is then `leaf=1`, byte for byte."""
    loose = np.random.default_rng(1).normal(size=(50, 3, 3)).astype(np.float32)
    assert (blas_of(loose, 4).words == blas_of(loose, 1).words).all()
    assert len(blas_of(loose[:0], 4).words) == 64


def test_large_geometries_and_the_reserved_id_stay_out_of_fans(ball: np.ndarray) -> None:
    count = len(ball)
    opaque = np.ones(layout.FAN_GEOMETRY_LIMIT + 1, np.bool_)
    options = BuildOptions(leaf=4, reinsertion=0)
    numbers = np.arange(count, dtype=np.uint32)
    for index, fans in ((layout.FAN_GEOMETRY_LIMIT - 1, True), (layout.FAN_GEOMETRY_LIMIT, False)):
        blas = build_blas(ball, np.full(count, index, np.uint32), numbers, opaque, options)
        assert (blas.stats.fans > 0) == fans and blas.stats.pairs > 0
        image = decode(blas.words)
        rows = decode_triangles(image.leaves, image.leaf_types, image.fan_ids)
        assert (rows.geometry == index).all()
    numbers[5] = 0xFFFFFFFF
    blas = build_blas(ball, numbers * 0, numbers, opaque[:1], options)
    ids = decode(blas.words).fan_ids
    assert ids is not None and (ids[ids[:, 0] != 0xFFFFFFFF, :3] != 0xFFFFFFFF).all()


def results(scene: SceneBvh, rays: Rays, device: Any, **options: Any) -> dict[str, Any]:
    """What the oracle and both kernels find, as structured arrays of one dtype."""
    names = ("t", "u", "v", "object", "primitive", "instance")
    traced = oracle.trace(scene.words, rays, **options)
    found = {"oracle": {name: getattr(traced, name) for name in names}}
    for traversal in ("fast", "contract"):
        variant = replace(Variant("fans", traversal=traversal), **options)
        gpu = RayTracer(device, scene.words, fit_variant(variant, scene)).trace(rays)
        assert gpu.failures == ()
        hits = {name: gpu.hits[name] for name in names}
        hits["t"] = np.where(hits["object"] == MISS_ID, np.float32(np.inf), hits["t"])
        found[traversal] = hits
    return found


def same(a: Any, b: Any) -> None:
    hit = np.isfinite(a["t"])
    assert (hit == np.isfinite(b["t"])).all()
    for name in ("object", "primitive", "instance"):
        assert (a[name] == b[name])[hit].all(), name
    for name in "tuv":
        np.testing.assert_allclose(a[name][hit], b[name][hit], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("nodes", ["fp16", "fp32"])
def test_hits_are_those_of_single_triangles_and_brute_force(
    device: Any, ball: np.ndarray, rays: Rays, nodes: str
) -> None:
    expected = results(scene_of(ball, 1), rays, device)
    found = results(scene_of(ball, 4, nodes=nodes), rays, device)
    for name, hits in found.items():
        same(hits, expected[name])
        same(hits, expected["oracle"])
    one = assemble([blas_of(ball, 4)], ["ball"], [BvhInstance(0)])
    brute = closest(ball, rays)
    hit = brute.triangle >= 0
    wanted = {
        "t": brute.t,
        "u": brute.u,
        "v": brute.v,
        "object": np.where(hit, 0, MISS_ID),
        "primitive": np.where(hit, 5 * (len(ball) - 1 - brute.triangle), MISS_ID),
        "instance": np.where(hit, 0, MISS_ID),
    }
    assert 500 < hit.sum() < 2900
    for hits in results(one, rays, device).values():
        same(hits, wanted)


def test_any_hit_agrees(device: Any, ball: np.ndarray, rays: Rays) -> None:
    expected = np.isfinite(oracle.trace(scene_of(ball, 1).words, rays).t)
    for hits in results(scene_of(ball, 4), rays, device, any_hit=True).values():
        assert (np.isfinite(hits["t"]) == expected).all()


def test_alpha_tests_see_the_same_candidates(device: Any, ball: np.ndarray, rays: Rays) -> None:
    """Every non-opaque crossing: (object, primitive) and original weights, refused each time."""
    asked: dict[int, set[tuple[int, ...]]] = {}
    for leaf in (1, 4):
        seen: set[tuple[int, ...]] = set()

        def accept(obj: Any, primitive: Any, u: Any, v: Any, seen: Any = seen) -> Any:
            seen.update(
                zip(
                    obj.tolist(),
                    primitive.tolist(),
                    np.round(1e3 * u).astype(int).tolist(),
                    np.round(1e3 * v).astype(int).tolist(),
                    strict=True,
                )
            )
            return np.zeros(len(u), np.bool_)

        scene = scene_of(ball, leaf, halves=True)
        traced = oracle.trace(
            scene.words, rays, accept=accept, flags=RayFlags.CULL_OPAQUE, workers=1
        )
        assert not traced.hit.any()
        asked[leaf] = seen
        if leaf == 4:
            blocks = decode(scene.blas_words(0))
            rows = decode_triangles(blocks.leaves, blocks.leaf_types, blocks.fan_ids)
            assert (blocks.leaf_types[rows.block[~rows.opaque]] >= 2).sum() > 100
        variant = replace(
            fit_variant(Variant("candidates"), scene), flags=int(RayFlags.CULL_OPAQUE)
        )
        gpu = RayTracer(device, scene.words, variant, count_all=True).trace(rays)
        counted = gpu.hits["instance"].astype(np.int64)
        assert (counted == traced.counters.any_hits).all() and counted.sum() > 500
    assert len(asked[1] ^ asked[4]) <= 0.02 * len(asked[1])  # weights at a rounding's edge
    assert {a[:2] for a in asked[1]} == {a[:2] for a in asked[4]}


def test_gpu_and_oracle_take_the_same_steps(device: Any, ball: np.ndarray, rays: Rays) -> None:
    scene = scene_of(ball, 4)
    variant = replace(fit_variant(Variant("steps"), scene), two_level=True)
    logger = RayLogger(device, scene.words, variant)
    slots = set()
    for i in range(24):
        log, _ = logger.log(rays[:24], i)
        expected, _ = oracle_steps(scene.words, rays[i : i + 1])
        assert [d for d in compare_steps(log.steps, expected, rays[i]) if d.serious] == []
        slots |= {(step.node & 7, step.slot) for step in log.steps if step.kind == "triangle"}
    assert {(2, 0), (2, 1), (2, 2)} <= slots


def first_fan(scene: SceneBvh, kind: int) -> tuple[int, int]:
    """(word of the first block of that type, word of its row of ids)."""
    base = int(scene.blas_bases[0]) // 4
    header = unpack_header(scene.words[base:])
    leaf = int(np.flatnonzero(decode(scene.blas_words(0)).leaf_types == kind)[0])
    block = base + 16 * (header.leaf_unit + leaf)
    return block, int(find_fan_rows(scene.words, np.array([base]), np.array([block]))[0])


def damaged(scene: SceneBvh, at: int, value: int) -> SceneBvh:
    words = scene.words.copy()
    words[at] = value
    return replace(scene, words=words)


def test_damage_is_named(ball: np.ndarray) -> None:
    scene = scene_of(ball, 4)
    block, row = first_fan(scene, 2)
    base = int(scene.blas_bases[0]) // 4
    table = base + 16 * unpack_header(scene.words[base:]).fan_unit
    flags = int(scene.words[block + 15])
    for at, value, message in (
        (row, int(scene.words[row + 1]), "a second time"),
        (row + 1, 0xFFFFFFFF, "without the id"),
        (row + 3, 5, "the pointer says type 2, the block holds 4"),
        (row, 0xFFFFFFFF, "the table has"),
        (table, int(scene.words[table]) & ~1 & ~2 & ~4, "the table has"),
        (table, int(scene.words[table]) ^ 1, ""),
        (table + 1, int(scene.words[table + 1]) + 1, "of the fan table"),
        (table + 1, 0xFFFFFF, "leads out"),
        (block + 15, flags & ~0xF0000, "no rotation"),
        (block + 15, flags ^ 0x10, "geometry 1 of 1"),
        (block + 13, 0x7FC00000, "not finite"),
        (block + 12, int(np.float32(99).view(np.uint32)), "does not enclose"),
        (base + 19, 1, "size of"),
        (base + 18, 0, "version 2"),
    ):
        faults = validate(damaged(scene, at, value))
        assert any(message in fault.message for fault in faults), (at - base, message)
    far = damaged(scene, base + 18, 0x7FFFFFFF)
    with pytest.raises(UserError, match="beyond the BVH"):
        oracle.trace(far.words, make_rays([[0.1, 0.2, 9]], [0, 0, -1]))


def test_mutations_change_hits(device: Any, ball: np.ndarray, rays: Rays) -> None:
    """What validate cannot know, the comparison with single triangles finds: V3 and V4 exchanged,
    weights rotated, the row of another fan."""
    scene = scene_of(ball, 4)
    expected = oracle.trace(scene_of(ball, 1).words, rays)
    types = decode(scene.blas_words(0)).leaf_types
    base = int(scene.blas_bases[0]) // 4
    leaf_unit = unpack_header(scene.words[base:]).leaf_unit
    fans = base + 16 * (leaf_unit + np.flatnonzero(types >= 2))
    rows = find_fan_rows(scene.words, np.full(len(fans), base), fans)

    def broken(change: Any) -> dict[str, Any]:
        words = scene.words.copy()
        change(words)
        return results(replace(scene, words=words), rays, device)

    def swap(words: np.ndarray) -> None:
        at = fans[:, None] + np.arange(9, 12)
        words[at], words[at + 3] = words[at + 3], words[at]

    def rotate(words: np.ndarray) -> None:
        words[fans + 15] = words[fans + 15] & 0xFFF0FFFF | 0x20000

    def shift(words: np.ndarray) -> None:
        at = rows[:, None] + np.arange(4)
        words[at] = np.roll(words[at], 1, axis=0)

    for change, field in ((swap, "t"), (rotate, "u"), (shift, "primitive")):
        for name, hits in broken(change).items():
            both = np.isfinite(hits["t"]) & expected.hit
            wrong = ~np.isclose(hits[field], getattr(expected, field), rtol=1e-3) & both
            assert wrong.sum() > 100, (change.__name__, name)
            assert (~np.isclose(hits["t"], expected.t, rtol=1e-3) & both).any() == (field == "t")


def test_kernels_without_the_switch_refuse_fans(device: Any, ball: np.ndarray, rays: Rays) -> None:
    scene = scene_of(ball, 4)
    for traversal in ("fast", "contract"):
        variant = Variant("refuses", traversal=traversal)
        trace = RayTracer(device, scene.words, variant).trace(rays[:64])
        assert trace.failures == ("an unknown node type was met",)


def test_fit_variant_reads_the_header(ball: np.ndarray, built: SimpleNamespace) -> None:
    assert fit_variant(Variant("x"), scene_of(ball, 4)).has_fans
    assert not fit_variant(Variant("x"), scene_of(ball, 2)).has_fans
    assert not fit_variant(Variant("x"), built.scene(ball[:0], leaf=4)).has_fans
