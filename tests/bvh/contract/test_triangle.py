"""The triangle test: types, sources, return modes, edge ownership, and one rounding a step."""

from typing import Any

import numpy as np
import pytest

from bvh.contract.triangle import intersect_triangles

# Five vertices, four triangles; flag bytes 4: I from slot 0, J from slot 1.
FAN = [(-1, -1, 2), (1, -1, 2), (0, 1, 2), (2, 1, 2), (0, 3, 2)]


def block(vertices: Any, flags: int = 0x04040404) -> np.ndarray:
    words = np.zeros((1, 16), np.uint32)
    flat = np.array(vertices, np.float32).reshape(-1).view(np.uint32)
    words[0, : len(flat)] = flat
    words[0, 15] = flags
    return words


def shoot(
    words: np.ndarray, kind: int, origin: Any, direction: Any, rules: Any, mode: int = 1
) -> list[int]:
    return intersect_triangles(
        words,
        np.array([kind]),
        np.array([origin], np.float32),
        np.array([direction], np.float32),
        np.array([mode], np.uint32),
        rules,
    )[0].tolist()


def floats(words: list[int]) -> list[float]:
    return np.array(words, np.uint32).view(np.float32).tolist()


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
@pytest.mark.parametrize(
    ("kind", "origin", "expected"),
    [
        (0, (0, 0, 0), [0xC1000000, 0xC0800000, 0xBF800000, 0xBF800000]),
        (1, (1, 0, 0), [0xC1000000, 0xC0800000, 0xC0000000, 0xBF800000]),
        (2, (0.5, 1.5, 0), [0xC1000000, 0xC0800000, 0xC0000000, 0xBF800000]),
    ],
)
def test_types(rules: Any, kind: int, origin: Any, expected: list[int]) -> None:
    assert shoot(block(FAN), kind, origin, (0, 0, 1), rules) == expected


def test_type_3_in_id_mode() -> None:
    words = shoot(block(FAN), 3, (-0.25, 1, 0), (0, 0, 1), "chapter", mode=0)
    assert words == [0xC0800000, 0xC0000000, 0x04040407, 1]


def test_id_mode_adds_the_type_and_wraps() -> None:
    hit = shoot(block(FAN, 0xFFFFFFFF), 1, (1, 0, 0), (0, 0, 1), "chapter", mode=0)
    assert hit == [0xC1000000, 0xC0800000, 0x00000000, 1]
    miss = shoot(block(FAN), 0, (3, 3, 0), (0, 0, 1), "chapter", mode=0)
    assert miss == [0x7F800000, 0x3F800000, 0x04040404, 0]


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
@pytest.mark.parametrize("nibble", [0x9, 0x2, 0x4])
def test_rotations_report_the_original_vertices(
    rules: Any, nibble: int, rng: np.random.Generator
) -> None:
    original = np.array([(0, 0, 0), (4, 0, 0), (0, 4, 0)])
    i, j = nibble & 3, nibble >> 2
    held = np.empty((3, 3))
    held[[3 - i - j, i, j]] = original
    for _ in range(20):
        u, v = rng.integers(1, 8, 2) / 16
        point = original[0] + u * (original[1] - original[0]) + v * (original[2] - original[0])
        words = shoot(block(held, nibble), 0, point + [0, 0, 1], (0, 0, -1), rules)
        t_num, t_denom, i_num, j_num = floats(words)
        assert (t_num / t_denom, i_num / t_denom, j_num / t_denom) == (1, u, v)


def test_source_3() -> None:
    hit = (0.25, -0.25, 0), (0, 0, 1)
    chapter_0 = shoot(block(FAN, 0x0), 0, *hit, "chapter")
    assert shoot(block(FAN, 0xF), 0, *hit, "chapter") == chapter_0
    assert shoot(block(FAN, 0xF), 0, *hit, "gpurt")[2:] == [0, 0]


def test_scale_is_the_square_of_the_dominant_component() -> None:
    chapter = shoot(block(FAN), 0, (-4, 0, 0), (2, 0, 1), "chapter")
    gpurt = shoot(block(FAN), 0, (-4, 0, 0), (2, 0, 1), "gpurt")
    assert chapter == [0xC2000000, 0xC1800000, 0xC0800000, 0xC0800000]
    assert gpurt == [0xC1000000, 0xC0800000, 0xBF800000, 0xBF800000]


def test_an_edge_has_one_owner_in_the_chapter_and_two_in_gpurt() -> None:
    on_edge = (0.5, 0, 0), (0, 0, 1)
    owners = {
        rules: [shoot(block(FAN), kind, *on_edge, rules)[0] != 0x7F800000 for kind in (0, 1)]
        for rules in ("chapter", "gpurt")
    }
    assert sum(owners["chapter"]) == 1 and owners["gpurt"] == [True, True]
    bottom = shoot(block(FAN), 0, (0, -1, 0), (0, 0, 1), "chapter")
    assert bottom == [0x7F800000, 0x3F800000, 0xC0000000, 0xC0000000]


def test_behind_is_a_miss_whose_weights_remain() -> None:
    behind = (0, 0, 3), (0, 0, 1)
    chapter = shoot(block(FAN), 0, *behind, "chapter")
    assert chapter == [0x7F800000, 0x3F800000, 0xBF800000, 0xBF800000]
    # gpurt's first weight comes from the denominator that the miss has overwritten: 1 + 1 + 2.
    gpurt = shoot(block(FAN), 0, *behind, "gpurt")
    assert gpurt == [0x7F800000, 0x3F800000, 0x40800000, 0xBF800000]


def test_a_degenerate_triangle() -> None:
    line = [(0, 0, 1), (1, 0, 1), (2, 0, 1)]
    assert shoot(block(line), 0, (0.5, 0, 0), (0, 0, 1), "chapter")[0] == 0x7F800000
    # gpurt looks for no zero determinant: 0 / 0 compares false, so it is no miss.
    words = shoot(block(line), 0, (0.5, 0, 0), (0, 0, 1), "gpurt")
    assert words[:2] == [0, 0]


def test_every_nan_is_the_same() -> None:
    nan = np.uint32(0xFFC12345).view(np.float32)
    words = shoot(block(FAN), 0, (nan, 0, 0), (0, 0, 1), "gpurt")
    assert words == [0x7FC00000, 0xC0800000, 0x7FC00000, 0x7FC00000]


def sphere() -> np.ndarray:
    """A closed mesh [80, 3, 3] of float32 vertices that neighbours share bit for bit."""
    golden = (1 + 5**0.5) / 2
    corners = [(s, t * golden, 0) for s in (-1, 1) for t in (-1, 1)]
    points = np.array([np.roll(c, k) for k in range(3) for c in corners])
    edge = np.linalg.norm(points[:, None] - points[None], axis=2)
    near = edge < 2.1
    faces = [
        (a, b, c)
        for a in range(12) for b in range(a) for c in range(b)
        if near[a, b] and near[b, c] and near[a, c]
    ]  # fmt: skip
    triangles = points[faces]
    middle = (triangles + np.roll(triangles, -1, axis=1)) / 2
    split = [np.stack([triangles[:, i], middle[:, i], middle[:, i - 1]], 1) for i in range(3)]
    all_of_them = np.concatenate([*split, middle])
    return (all_of_them / np.linalg.norm(all_of_them, axis=2, keepdims=True)).astype(np.float32)


def test_the_chapter_is_watertight_and_gpurt_is_not(rng: np.random.Generator) -> None:
    mesh = sphere()
    assert len(mesh) == 80
    targets = np.concatenate([mesh, (mesh + np.roll(mesh, 1, axis=1)) / np.float32(2)])
    targets = targets.reshape(-1, 3)[rng.integers(0, len(targets) * 3, 750)]
    origins = (rng.normal(size=(750, 3)) * 0.2).astype(np.float32)
    directions = targets - origins
    words = np.zeros((80, 16), np.uint32)
    words[:, :9] = mesh.reshape(80, 9).view(np.uint32)
    count = {}
    for rules in ("chapter", "gpurt"):
        result = intersect_triangles(
            np.tile(words, (750, 1)),
            np.zeros(750 * 80, np.int64),
            np.repeat(origins, 80, axis=0),
            np.repeat(directions, 80, axis=0),
            np.ones(750 * 80, np.uint32),
            rules,  # type: ignore[arg-type]
        )
        hits = (result[:, 0] != 0x7F800000).reshape(750, 80).sum(1)
        count[rules] = (int((hits == 0).sum()), int((hits > 1).sum()))
    assert count["chapter"] == (0, 0)
    assert count["gpurt"][0] > 0 and count["gpurt"][1] > 0  # leaks, and hits twice


def test_a_fused_multiply_add_would_be_seen() -> None:
    # px = rx * dz - dx * rz cancels: both products round to 1 + 2^-11. Fused, the first would
    # keep its last bit, px would be 2^-24, and the ray would pass beside the edge.
    rx = dz = np.float32(1 + 2**-12)
    dx, rz = np.float32(0.5), np.float32(2 + 2**-10)
    assert rx * dz - dx * rz == 0
    fused = float(rx) * float(dz) - float(dx * rz)
    assert fused == 2.0**-24
    vertices = [(rx, -1, rz), (rx, 3, rz), (-4, 0, rz)]
    words = shoot(block(vertices, 0x9), 0, (0, 0, 0), (dx, 0, dz), "chapter")
    py = -dz, 3 * dz
    assert words[3] & 0x7FFFFFFF == 0  # J: the weight of vertex 2 is zero on the edge
    assert np.float32(np.float32(fused * py[0] - py[1] * fused) * dz) != 0
