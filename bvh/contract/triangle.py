"""The triangle node: one of four triangles of a five-vertex block against a ray.

float32, one rounding an operation, in the order written; the extent is not looked at (observed in
all sources), so the caller compares t = t_num / t_denom itself. Both windings are accepted.

chapter (KytyPS5): projects along the dominant axis by scaling instead of dividing. A zero edge
has one owner, so that a ray through a shared edge hits exactly one of the two triangles.
gpurt (AMD's emulation): edge cross products and three divisions; edges are inclusive on both
sides, a zero determinant is not looked for, and it is not watertight.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh import layout
from bvh.contract.cases import Rules

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

FLAG_BYTE_BITS = 8  # type k's byte of the flag word starts at bit 8 k
NEXT = (1, 2, 0)
AFTER_NEXT = (2, 0, 1)
# Components in projected order for a dominant axis x, y, z: cyclic, so the winding stays.
AXIS_ORDER = np.array([[1, 2, 0], [2, 0, 1], [0, 1, 2]])
MISS_T_NUM = np.uint32(0x7F800000)
MISS_T_DENOM = np.uint32(0x3F800000)
NAN_BITS = np.uint32(0x7FC00000)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Numerators over one denominator, and whether the triangle is missed; all `[n]`."""

    t_num: F32
    t_denom: F32
    weights: tuple[F32, F32, F32]  # of the block's slots s0, s1, s2, as the sources select them
    missed: Mask


def intersect_triangles(
    words: U32, kind: I64, origin: F32, direction: F32, return_mode: U32, rules: Rules
) -> U32:
    """The four result words `[n, 4]` of triangle blocks `[n, >= 16]`, node types `kind` 0..3.

    Mode 1: t_num, t_denom, I_num, J_num. Mode 0: t_num, t_denom, flag word + type, hit. A miss
    has t = infinity / 1; in mode 1 its words 2 and 3 are still the weights.
    """
    vertices = np.ascontiguousarray(words[:, :15]).view(np.float32).reshape(-1, 5, 3)
    rows = np.arange(len(words))[:, None]
    corners = vertices[rows, np.array(layout.TRIANGLE_SLOTS)[kind]]
    test = _chapter if rules == "chapter" else _gpurt
    with np.errstate(all="ignore"):
        verdict = test(corners, origin, direction)
        flags = words[:, layout.TRIANGLE_FLAGS_WORD]
        byte = flags >> (FLAG_BYTE_BITS * kind).astype(np.uint32)
        t_num = np.where(verdict.missed, MISS_T_NUM, _bits(verdict.t_num))
        t_denom = np.where(verdict.missed, MISS_T_DENOM, _bits(verdict.t_denom))
        weights = _source_weights(verdict, t_denom.view(np.float32), rules)
    reported = [
        np.choose(byte >> np.uint32(shift) & np.uint32(layout.FLAG_I_MASK), weights)
        for shift in (0, layout.FLAG_J_SHIFT)
    ]
    mode_1 = return_mode != 0
    triangle_id = flags + kind.astype(np.uint32)  # wraps
    third = np.where(mode_1, reported[0], triangle_id)
    fourth = np.where(mode_1, reported[1], ~verdict.missed)
    return np.stack([t_num, t_denom, third, fourth], axis=1).astype(np.uint32)


def _bits(values: F32) -> U32:
    """Bits with every NaN made the same: which one an operation makes is not defined."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return np.where(np.isnan(values), NAN_BITS, bits)


def _source_weights(verdict: Verdict, t_denom: F32, rules: Rules) -> tuple[U32, U32, U32, U32]:
    """What the flag byte's source values 0..3 select."""
    w0, w1, w2 = verdict.weights
    if rules == "chapter":
        return _bits(w0), _bits(w1), _bits(w2), _bits(w0)
    # gpurt makes the first weight from the denominator, after a miss has overwritten it; its
    # array has three entries, and reading a fourth is undefined: +0 here (ours).
    first = (t_denom - w1) - w2
    return _bits(first), _bits(w1), _bits(w2), np.zeros(len(first), np.uint32)


def _chapter(corners: F32, origin: F32, direction: F32) -> Verdict:
    x, y, z = np.abs(direction).T
    axis = np.where(x < y, 1, 0)  # ties prefer x, then y
    axis = np.where(np.where(x < y, y, x) < z, 2, axis)
    order = AXIS_ORDER[axis]
    corners = np.take_along_axis(corners, order[:, None], axis=2)
    origin = np.take_along_axis(origin, order, axis=1)
    dx, dy, dz = np.take_along_axis(direction, order, axis=1).T
    # [3 (vertex), n]: relative to the origin, then sheared so that the ray is the third axis.
    rx, ry, rz = (corners - origin[:, None]).transpose(2, 1, 0)
    px = rx * dz - dx * rz
    py = ry * dz - dy * rz
    edge = px[list(AFTER_NEXT)] * py[list(NEXT)] - py[list(AFTER_NEXT)] * px[list(NEXT)]
    weight = edge * dz
    t_num = (edge[0] * rz[0] + edge[1] * rz[1]) + edge[2] * rz[2]
    t_denom = (weight[0] + weight[1]) + weight[2]
    front = t_denom > 0
    missed = (edge < 0).any(0) & (edge > 0).any(0)
    missed |= (t_denom == 0) | np.isnan(t_num) | (np.where(front, t_num, -t_num) < 0)
    for i in range(3):
        # A point exactly on edge i belongs to the triangle on one side of it: the rule looks at
        # which way the edge runs past the ray, and at the third vertex if it runs level.
        a, b = py[NEXT[i]], py[AFTER_NEXT[i]]
        below = (a < 0) | ((a == 0) & (b > 0))
        excluded = np.where((a == 0) & (b == 0), py[i] > 0, below != front)
        missed |= (edge[i] == 0) & excluded
    return Verdict(t_num, t_denom, (weight[0], weight[1], weight[2]), missed)


def _gpurt(corners: F32, origin: F32, direction: F32) -> Verdict:
    a, b, c = corners.transpose(1, 0, 2)
    e1, e2, e3 = b - a, c - a, origin - a
    s1, s2 = _cross(direction, e2), _cross(e3, e1)
    t_num, t_denom = _dot(e2, s2), _dot(s1, e1)
    i_num, j_num = _dot(e3, s1), _dot(direction, s2)
    # Correctly rounded quotients. A NaN compares false, so it is not a miss.
    t, u, v = t_num / t_denom, i_num / t_denom, j_num / t_denom
    missed = (u < 0) | (u > 1) | (v < 0) | (u + v > 1) | (t < 0)
    return Verdict(t_num, t_denom, (i_num, i_num, j_num), missed)


def _cross(p: F32, q: F32) -> F32:
    (px, py, pz), (qx, qy, qz) = p.T, q.T
    return np.stack([py * qz - pz * qy, pz * qx - px * qz, px * qy - py * qx], axis=1)


def _dot(p: F32, q: F32) -> F32:
    return np.asarray((p[:, 0] * q[:, 0] + p[:, 1] * q[:, 1]) + p[:, 2] * q[:, 2], np.float32)
