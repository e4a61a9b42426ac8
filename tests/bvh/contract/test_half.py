"""Directed rounding to binary16 and the A16 operand order."""

import numpy as np
import pytest

from bvh.contract.half import pack_a16, pack_bounds, round_down, round_up
from engine.gpu.errors import UserError

HALVES = np.arange(1 << 16, dtype=np.uint16)


def finite_halves() -> np.ndarray:
    """All finite halves as float64, ascending, -0 left out."""
    values = HALVES.view(np.float16)
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    return np.unique(wide[np.isfinite(wide)])


def test_every_half_is_kept() -> None:
    values = HALVES.view(np.float16)
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float32)
    number = ~np.isnan(wide)
    assert (round_down(wide)[number] == HALVES[number]).all()
    assert (round_up(wide)[number] == HALVES[number]).all()
    assert ((round_up(wide)[~number] & 0x7FFF) == 0x7E00).all()


def test_the_nearest_half_on_the_wanted_side(rng: np.random.Generator) -> None:
    # The exact answer by search in the sorted list of all halves, for values of every exponent.
    exponents = rng.uniform(-40, 17, 20_000)
    values = (rng.choice([-1.0, 1.0], 20_000) * 2.0**exponents).astype(np.float32)
    values = values[np.abs(values) <= 65504]
    grid, wide = finite_halves(), values.astype(np.float64)
    below = grid[np.searchsorted(grid, wide, side="right") - 1]
    above = grid[np.searchsorted(grid, wide, side="left")]
    assert (round_down(values).view(np.float16).astype(np.float64) == below).all()
    assert (round_up(values).view(np.float16).astype(np.float64) == above).all()


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (70000.0, 0x7BFF, 0x7C00),
        (-70000.0, 0xFC00, 0xFBFF),
        (65504.0, 0x7BFF, 0x7BFF),
        (65505.0, 0x7BFF, 0x7C00),
        (np.inf, 0x7C00, 0x7C00),
        (1e-10, 0x0000, 0x0001),
        (-1e-10, 0x8001, 0x8000),
        (-0.0, 0x8000, 0x8000),
        (1e-45, 0x0000, 0x0001),
    ],
)
def test_beyond_the_range(value: float, down: int, up: int) -> None:
    array = np.array([value], np.float32)
    assert (int(round_down(array)[0]), int(round_up(array)[0])) == (down, up)


def test_bounds_words() -> None:
    assert pack_bounds([-1, -1, 5], [1, 1, 6]).tolist() == [0xBC00BC00, 0x3C004500, 0x46003C00]
    third = [0.1, -0.1, 1 / 3]
    assert pack_bounds(third, third).tolist() == [0xAE672E66, 0x2E673555, 0x3556AE66]


def test_a16_orders() -> None:
    direction, inverse = [1, 2, 4], [1, 0.5, 0.25]
    assert pack_a16("gfx10", direction, inverse).tolist() == [0x40003C00, 0x3C004400, 0x34003800]
    assert pack_a16("gfx11", direction, inverse).tolist() == [0x3C003C00, 0x38004000, 0x34004400]
    with pytest.raises(UserError, match="gfx9"):
        pack_a16("gfx9", direction, inverse)
