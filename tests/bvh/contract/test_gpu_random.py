"""The WGSL instruction against the NumPy definition, word for word, on random cases of every kind;
and that a driver's fused multiply-add could not pass here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bvh import layout
from bvh.contract.cases import RULES, Cases, Rules, make_cases
from bvh.contract.gpu import Intersector, Refusals
from bvh.contract.intersect import Status, intersect_cases
from bvh.contract.random_cases import SHARES, kind_names, random_cases

COUNT = 30_000
F32 = np.float32


@pytest.fixture(scope="module")
def cases() -> tuple[Cases, Any]:
    return random_cases(COUNT, seed=20)


@pytest.mark.parametrize("rules", RULES)
def test_every_word_equals_the_definition(
    device: Any, cases: tuple[Cases, Any], rules: Rules
) -> None:
    batch, kinds = cases
    result = intersect_cases(batch, rules)
    expected = result.words
    got, refused = Intersector(device, rules).run_counted(batch)
    why = np.bincount(result.status, minlength=len(Status))
    assert refused == Refusals(
        descriptor=why[Status.BAD_DESCRIPTOR] + why[Status.OUT_OF_RANGE],
        ray=why[Status.BAD_RAY],
        memory=why[Status.UNAVAILABLE],
    )
    wrong = np.flatnonzero((got != expected).any(1))
    listing = [(kind_names()[kinds[i]], got[i].tolist(), expected[i].tolist()) for i in wrong[:20]]
    assert listing == []


def test_the_cases_are_what_they_are_said_to_be(cases: tuple[Cases, Any]) -> None:
    batch, kinds = cases
    assert np.allclose(np.bincount(kinds) / COUNT, list(SHARES.values()), atol=1e-3)
    again, _ = random_cases(COUNT, seed=20)
    assert all(
        np.array_equal(getattr(batch, name), getattr(again, name)) for name in Cases.__slots__
    )
    result = intersect_cases(batch, "chapter")
    assert set(result.status.tolist()) >= set(range(Status.UNAVAILABLE + 1))
    triangle = batch.pointer_low & 7 < 4
    ran = result.status == Status.OK
    hit = np.where(triangle, result.words[:, 0] != 0x7F800000, result.words[:, 0] != 0xFFFFFFFF)
    for of_kind in (triangle, ~triangle):
        assert 0.1 < hit[of_kind & ran].mean() < 0.9
    types = np.bincount(batch.pointer_low & 7, minlength=8)
    assert types.min() > COUNT // 200
    # Zero edges: rays that meet an edge or a vertex exactly, found by a zero weight.
    mode_1 = batch.descriptor[:, 3] >> 24 & 1 == 1
    zero_weight = (result.words[:, 2:] & 0x7FFFFFFF == 0).any(1)
    assert (triangle & ran & mode_1 & zero_weight).sum() > COUNT // 50


def subtract_products(fused: bool) -> Callable[..., np.ndarray]:
    """a * b - c * d as the definition rounds it, or as a driver that fuses the first product
    into the subtraction would (the exact product of two float32 fits a float64)."""

    def rounded(a: Any, b: Any, c: Any, d: Any) -> np.ndarray:
        return np.asarray(a * b - c * d)

    def contracted(a: Any, b: Any, c: Any, d: Any) -> np.ndarray:
        return (a.astype(np.float64) * b.astype(np.float64) - (c * d)).astype(F32)

    return contracted if fused else rounded


def chapter_weights(batch: Cases, fused: bool) -> np.ndarray:
    """The three weights of type-0 triangles [n, 3] for rays whose dominant axis is z."""
    difference = subtract_products(fused)
    corners = batch.node_words[:, :9].view(F32).reshape(-1, 3, 3)
    dx, dy, dz = (np.repeat(c[:, None], 3, 1) for c in batch.direction.view(F32).T)
    rx, ry, rz = np.moveaxis(corners - batch.origin.view(F32)[:, None], 2, 0)
    px, py = difference(rx, dz, dx, rz), difference(ry, dz, dy, rz)
    first, second = [1, 2, 0], [2, 0, 1]
    edge = difference(px[:, second], py[:, first], py[:, second], px[:, first])
    return np.asarray(edge * dz)


def test_a_fused_multiply_add_would_be_caught(rng: np.random.Generator, device: Any) -> None:
    count = 2000
    nodes = np.zeros((count, 16), np.uint32)
    nodes[:, :15] = rng.normal(size=(count, 15)).astype(F32).view(np.uint32)
    nodes[:, 15] = 0x09  # I is the weight of slot 1, J of slot 2
    direction = rng.uniform(-1, 1, (count, 3)).astype(F32)
    direction[:, 2] += 3  # dominant
    batch = make_cases(
        layout.pack_descriptor(0, 0),
        np.zeros(count, np.uint64),
        nodes,
        F32(np.inf),
        rng.normal(size=(count, 3)).astype(F32),
        direction,
        F32(1) / direction,
    )
    words = intersect_cases(batch, "chapter").words
    separate = chapter_weights(batch, fused=False)
    assert np.array_equal(separate[:, 1:].view(np.uint32), words[:, 2:])
    fused = chapter_weights(batch, fused=True)
    # A driver that fused would differ from the definition in most cases, not in an unlucky few.
    assert (fused[:, 1:].view(np.uint32) != words[:, 2:]).any(1).mean() > 0.6
    got = Intersector(device, "chapter").run(batch)
    assert np.array_equal(got, words)
