"""Numbers of about 46 bits as sums of two float32, for shaders that have no float64.

Error-free sums and products after Dekker 1971, "A floating-point technique for extending the
available precision", and Knuth's two-sum. Every function is the twin of the one of its name in
two_float.wgsl, over arrays of any shape.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

_SPLIT = np.float32(4097)  # 2^12 + 1: halves of 12 bits


@dataclass(frozen=True, slots=True)
class Two:
    """`high` is the nearest float32, `low` what is missing."""

    high: F32
    low: F32

    def __getitem__(self, key: Any) -> "Two":
        return Two(self.high[key], self.low[key])


def two_sum(a: F32, b: F32) -> Two:
    total = a + b
    other = total - a
    return Two(total, (a - (total - other)) + (b - other))


def quick_sum(a: F32, b: F32) -> Two:
    """Where |a| >= |b|."""
    total = a + b
    return Two(total, b - (total - a))


def two_product(a: F32, b: F32) -> Two:
    product = a * b
    wide_a, wide_b = a * _SPLIT, b * _SPLIT
    a_high, b_high = wide_a - (wide_a - a), wide_b - (wide_b - b)
    a_low, b_low = a - a_high, b - b_high
    rest = a_high * b_high - product
    rest = rest + a_high * b_low
    rest = rest + a_low * b_high
    return Two(product, rest + a_low * b_low)


def add(a: Two, b: Two) -> Two:
    total = two_sum(a.high, b.high)
    return quick_sum(total.high, total.low + (a.low + b.low))


def multiply(a: Two, b: Two) -> Two:
    product = two_product(a.high, b.high)
    return quick_sum(product.high, product.low + (a.high * b.low + a.low * b.high))


def negated(a: Two) -> Two:
    return Two(-a.high, -a.low)


def two_cross(a: F32, b: F32) -> Two:
    """[..., 3]"""
    y, z = [1, 2, 0], [2, 0, 1]
    return add(two_product(a[..., y], b[..., z]), negated(two_product(a[..., z], b[..., y])))


def total(a: Two) -> Two:
    """[..., 3] to [...]"""
    return add(add(a[..., 0], a[..., 1]), a[..., 2])


def reciprocal(a: Two) -> Two:
    """1 / a, without a division; `a` is no denormal."""
    size = np.abs(a.high)
    bits = np.uint32(0x7EF311C3) - np.ascontiguousarray(size).view(np.uint32)
    guess = bits.view(np.float32)
    two, one = np.float32(2), np.float32(1)
    for _ in range(4):
        guess = guess * (two - size * guess)
    guess = np.copysign(guess, a.high)
    product = two_product(a.high, guess)
    rest = ((one - product.high) - product.low) - a.low * guess
    return quick_sum(guess, guess * rest)
