"""Writes the blue-noise table: `python -m assets.generate_blue_noise --out assets/blue_noise.npy`.

Void and cluster (R. Ulichney, "The void-and-cluster method for dither array generation", SPIE 1913,
1993): the ranks 0 to SIDE^2 - 1, each once, so that the pixels below any threshold lie as evenly as
they can. The table tiles. Seeded: the same code gives the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SIDE = 64
SIGMA = 1.9  # pixels; wider than Ulichney's 1.5, which leaves more low frequencies
FIRST = SIDE * SIDE // 10  # pixels of the pattern that everything starts from
SEED = 1


class Pattern:
    """Pixels that are set, and how crowded each place is: a Gaussian about every one of them, on a
    torus."""

    def __init__(self) -> None:
        across = np.minimum(np.arange(SIDE), SIDE - np.arange(SIDE))
        squares = across[:, None] ** 2 + across[None, :] ** 2
        self._bump = np.exp(-squares / (2 * SIGMA**2))
        self.is_set = np.zeros((SIDE, SIDE), bool)
        self._crowding = np.zeros((SIDE, SIDE))

    def flip(self, pixel: tuple[int, int]) -> None:
        sign = -1 if self.is_set[pixel] else 1
        self.is_set[pixel] = not self.is_set[pixel]
        self._crowding += sign * np.roll(self._bump, pixel, (0, 1))

    def tightest_cluster(self) -> tuple[int, int]:
        """The set pixel with the most about it."""
        return self._place(np.where(self.is_set, self._crowding, -np.inf).argmax())

    def largest_void(self) -> tuple[int, int]:
        """The free pixel with the least about it."""
        return self._place(np.where(self.is_set, np.inf, self._crowding).argmin())

    @staticmethod
    def _place(index: np.intp) -> tuple[int, int]:
        y, x = divmod(int(index), SIDE)
        return y, x


def first_pattern() -> Pattern:
    """Random pixels, moved from clusters into voids until none would move."""
    pattern = Pattern()
    for index in np.random.default_rng(SEED).permutation(SIDE * SIDE)[:FIRST]:
        pattern.flip(divmod(int(index), SIDE))
    while True:
        cluster = pattern.tightest_cluster()
        pattern.flip(cluster)
        void = pattern.largest_void()
        pattern.flip(void)
        if void == cluster:
            return pattern


def blue_noise() -> NDArray[np.uint16]:
    """[SIDE, SIDE] ranks."""
    ranks = np.zeros((SIDE, SIDE), np.uint16)
    pattern = first_pattern()
    start = pattern.is_set.copy()
    for rank in reversed(range(FIRST)):
        cluster = pattern.tightest_cluster()
        ranks[cluster] = rank
        pattern.flip(cluster)
    for y, x in np.argwhere(start):
        pattern.flip((int(y), int(x)))
    # Ulichney fills the second half by clusters of free pixels: on a torus, with a Gaussian, that
    # is the same pixel as the largest void.
    for rank in range(FIRST, SIDE * SIDE):
        void = pattern.largest_void()
        ranks[void] = rank
        pattern.flip(void)
    return ranks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("blue_noise.npy"))
    path: Path = parser.parse_args().out
    np.save(path, blue_noise())
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
