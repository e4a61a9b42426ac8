"""A second definition, one lane and one scalar operation at a time, against the arrays.

Written from the ledger's sections 7 and 8 (KytyPS5 and GPURT rows) and sharing no code with
`bvh.contract`. Inputs are small integers, so that ties, zero edges and shared planes are common;
ordinary floats, so that rounding order shows; and infinities, NaN, denormals and -0.
"""

import math
from typing import Any

import numpy as np
import pytest

from bvh.contract.cases import Cases, make_cases
from bvh.contract.intersect import intersect_cases

f32 = np.float32
INF, ZERO, ONE = f32(np.inf), f32(0), f32(1)
SLOTS = {0: (0, 1, 2), 1: (1, 3, 2), 2: (2, 3, 4), 3: (2, 4, 0)}
N = 1500


def bits(value: Any) -> int:
    return 0x7FC00000 if math.isnan(value) else int(np.array(value, f32).view(np.uint32))


def num(word: int) -> Any:
    return np.array(word, np.uint32).view(f32)[()]


def greater(a: Any, b: Any) -> Any:
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b)


def smaller(a: Any, b: Any) -> Any:
    return b if math.isnan(a) else a if math.isnan(b) else min(a, b)


def box_words(case: dict[str, Any], rules: str) -> list[int]:
    found = []
    for slot in range(4):
        low, high = case["boxes"][slot]
        near, far = [], []
        for axis in range(3):
            inverse = case["inverse"][axis]
            lo = f32(low[axis] - case["origin"][axis]) * inverse
            hi = f32(high[axis] - case["origin"][axis]) * inverse
            ahead = bool(inverse >= 0)
            near.append(lo if ahead else hi)
            far.append(hi if ahead else lo)
        entry = greater(greater(near[0], near[1]), near[2])
        leave = smaller(smaller(far[0], far[1]), far[2])
        child = int(case["children"][slot])
        if rules == "chapter":
            grown = bits(ZERO if leave == 0 else leave) + case["growth"]
            hit = leave >= 0 and entry < case["extent"] and entry <= num(min(grown, 0x7F800000))
            key = (bits(entry) if entry > 0 else 0) if hit else 0x7F800000
        else:
            if math.isnan(entry) or math.isnan(leave):
                entry, leave = INF, -INF
            else:
                entry, leave = greater(entry, ZERO), smaller(leave, case["extent"])
            factor = ONE + f32(case["growth"]) * f32(2.0**-24)
            hit = entry <= leave * factor
            key = entry
        found.append((child if hit else 0xFFFFFFFF, key))
    if case["sort"]:
        pairs = "01 23 02 13 12" if rules == "chapter" else "02 13 01 23 12"
        for a, b in ((int(pair[0]), int(pair[1])) for pair in pairs.split()):
            (left, left_key), (right, right_key) = found[a], found[b]
            if rules == "chapter":
                swap = left_key > right_key
            else:
                swap = (right != 0xFFFFFFFF and right_key < left_key) or left == 0xFFFFFFFF
            if swap:
                found[a], found[b] = found[b], found[a]
    return [child for child, _ in found]


def triangle_words(case: dict[str, Any], rules: str) -> list[int]:
    a, b, c = (case["vertices"][slot] for slot in SLOTS[case["kind"]])
    solve = chapter_triangle if rules == "chapter" else gpurt_triangle
    t_num, t_denom, weights, miss = solve(a, b, c, case["origin"], case["direction"])
    if miss:
        t_num, t_denom = INF, ONE
    if rules == "gpurt":
        weights = [(t_denom - weights[1]) - weights[2], *weights[1:], ZERO]
    else:
        weights = [*weights, weights[0]]
    byte = case["flags"] >> 8 * case["kind"]
    if case["mode"]:
        tail = [bits(weights[byte & 3]), bits(weights[byte >> 2 & 3])]
    else:
        tail = [(case["flags"] + case["kind"]) & 0xFFFFFFFF, int(not miss)]
    return [bits(t_num), bits(t_denom), *tail]


def chapter_triangle(a: Any, b: Any, c: Any, origin: Any, direction: Any) -> Any:
    dominant = 1 if abs(direction[0]) < abs(direction[1]) else 0
    if abs(direction[dominant]) < abs(direction[2]):
        dominant = 2
    order = [(dominant + 1) % 3, (dominant + 2) % 3, dominant]
    dx, dy, dz = (direction[i] for i in order)
    x, y, z = [], [], []
    for vertex in (a, b, c):
        rx, ry, rz = (vertex[i] - origin[i] for i in order)
        x.append(rx * dz - dx * rz)
        y.append(ry * dz - dy * rz)
        z.append(rz)
    edge = [x[2] * y[1] - y[2] * x[1], x[0] * y[2] - y[0] * x[2], x[1] * y[0] - y[1] * x[0]]
    w = [e * dz for e in edge]
    t_num = (edge[0] * z[0] + edge[1] * z[1]) + edge[2] * z[2]
    t_denom = (w[0] + w[1]) + w[2]
    front = t_denom > 0
    miss = any(e < 0 for e in edge) and any(e > 0 for e in edge)
    miss = miss or t_denom == 0 or math.isnan(t_num) or (t_num if front else -t_num) < 0
    for i, (p, q) in enumerate(((1, 2), (2, 0), (0, 1))):
        if edge[i] != 0:
            continue
        if y[p] == 0 and y[q] == 0:
            miss = miss or y[i] > 0
        else:
            below = y[p] < 0 or (y[p] == 0 and y[q] > 0)
            miss = miss or below != front
    return t_num, t_denom, w, bool(miss)


def gpurt_triangle(a: Any, b: Any, c: Any, origin: Any, direction: Any) -> Any:
    def cross(p: Any, q: Any) -> Any:
        return [p[(i + 1) % 3] * q[(i + 2) % 3] - p[(i + 2) % 3] * q[(i + 1) % 3] for i in range(3)]

    def dot(p: Any, q: Any) -> Any:
        return (p[0] * q[0] + p[1] * q[1]) + p[2] * q[2]

    e1, e2, e3 = b - a, c - a, origin - a
    s1, s2 = cross(direction, e2), cross(e3, e1)
    t_num, t_denom, i_num, j_num = dot(e2, s2), dot(s1, e1), dot(e3, s1), dot(direction, s2)
    t, u, v = t_num / t_denom, i_num / t_denom, j_num / t_denom
    miss = u < 0 or u > 1 or v < 0 or u + v > 1 or t < 0
    return t_num, t_denom, [ZERO, i_num, j_num], bool(miss)


SPECIAL = np.array(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40, -1e-45, 0.5, 2], np.float32
)


def numbers(rng: np.random.Generator, shape: Any, style: int) -> np.ndarray:
    if style == 0:
        return rng.integers(-2, 3, shape).astype(np.float32)
    if style == 1:
        return rng.normal(size=shape).astype(np.float32)
    return rng.choice(SPECIAL, shape)


def finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.float32(1))


def random_case(rng: np.random.Generator, kind: int) -> dict[str, Any]:
    style = int(rng.integers(0, 3))
    direction = numbers(rng, 3, style)
    origin = numbers(rng, 3, style)
    # Rays that the chapter refuses are tested elsewhere.
    direction = np.where(np.isnan(direction), np.float32(2), direction)
    with np.errstate(all="ignore"):
        inverse = np.where(rng.random(3) < 0.7, np.float32(1) / direction, numbers(rng, 3, style))
    corners, vertices = numbers(rng, (4, 2, 3), style), numbers(rng, (5, 3), style)
    if kind < 4 and style < 2 and rng.random() < 0.8:  # at the inside, an edge or a vertex
        a, b, c = vertices[list(SLOTS[kind])]
        target = [a, (a + b) / f32(2), (a + b + c) / f32(3)][rng.integers(0, 3)]
        direction = target - origin
    ordered = rng.random() < 0.8
    return {
        "kind": kind,
        "origin": finite(origin),
        "direction": direction,
        "inverse": np.where(np.isnan(inverse), np.float32(-1), inverse).astype(np.float32),
        "extent": rng.choice(np.array([np.inf, 1, 2, 0.5, 0, 3e38], np.float32)),
        "boxes": np.sort(corners, axis=1) if ordered else corners,
        "children": rng.choice(np.array([0x10, 0x18, 0x20, 0x28, 0xFFFFFFFF], np.uint32), 4),
        "vertices": vertices,
        "flags": int(rng.integers(0, 1 << 32)),
        "mode": int(rng.random() < 0.8),
        "growth": int(rng.choice([0, 1, 2, 6, 255])),
        "sort": bool(rng.random() < 0.8),
    }


def batch(cases: list[dict[str, Any]]) -> Cases:
    words = np.zeros((len(cases), 32), np.uint32)
    descriptor = np.zeros((len(cases), 4), np.uint32)
    for i, case in enumerate(cases):
        if case["kind"] < 4:
            words[i, :15] = case["vertices"].reshape(-1).view(np.uint32)
            words[i, 15] = case["flags"]
        else:
            words[i, :4] = case["children"]
            words[i, 4:28] = np.ascontiguousarray(case["boxes"]).reshape(-1).view(np.uint32)
        descriptor[i] = [
            0, case["growth"] << 23 | case["sort"] << 31, 1, case["mode"] << 24 | 8 << 28,
        ]  # fmt: skip
    columns = {
        name: np.array([case[name] for case in cases], np.float32)
        for name in ("extent", "origin", "direction", "inverse")
    }
    kinds = np.array([case["kind"] for case in cases], np.uint64)
    return make_cases(descriptor, kinds, words, *columns.values())


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
@pytest.mark.parametrize("kind", ["box", "triangle"])
def test_the_arrays_say_what_the_scalars_say(
    rules: Any, kind: str, rng: np.random.Generator
) -> None:
    cases = [random_case(rng, 5 if kind == "box" else int(rng.integers(0, 4))) for _ in range(N)]
    model = box_words if kind == "box" else triangle_words
    result = intersect_cases(batch(cases), rules)
    assert (result.status == 0).all()
    with np.errstate(all="ignore"):
        expected = [model(case, rules) for case in cases]
    different = [i for i in range(N) if result.words[i].tolist() != expected[i]]
    assert different == [], (cases[different[0]], result.words[different[0]].tolist())
    hits = sum(words[0] not in (0x7F800000, 0xFFFFFFFF) for words in expected)
    assert 0.05 * N < hits < 0.95 * N
