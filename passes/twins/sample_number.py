"""Twin of sample_number.wgsl: the numbers that a frame samples with (the same bits)."""

from typing import Any

import numpy as np

from passes.sampler import BLUE_BITS, BLUE_SIDE, SAMPLERS
from passes.twins.sampling import pcg, random
from passes.twins.wgsl_functions import F32, U32


def reverse_bits(value: U32) -> U32:
    """The 32 bits of each of [n] the other way round."""
    octets = np.ascontiguousarray(value, np.uint32)[..., None].view(np.uint8)
    flipped = np.packbits(np.unpackbits(octets, axis=-1, bitorder="little"), axis=-1)
    return np.asarray(np.ascontiguousarray(flipped[..., ::-1]).view(np.uint32)[..., 0])


def sobol_second(index: U32) -> U32:
    """[n] the second dimension of Sobol's sequence, as fractions of 32 bits."""
    result, direction = np.zeros_like(index), np.uint32(0x80000000)
    for bit in range(32):
        result = np.where(index >> np.uint32(bit) & np.uint32(1), result ^ direction, result)
        direction ^= direction >> np.uint32(1)
    return np.asarray(result)


def scrambled(fraction: U32, seed: U32) -> U32:
    """[n] each bit flipped or not by a hash of those above it and of `seed` [n]."""
    x = reverse_bits(fraction)
    x = x ^ x * np.uint32(0x3D20ADEA)
    x = (x + seed) * (seed >> np.uint32(16) | np.uint32(1))
    x = x ^ x * np.uint32(0x05526C56)
    x = x ^ x * np.uint32(0x53A22864)
    return reverse_bits(x)


def sobol_number(index: U32, key: U32, second: bool) -> U32:
    """[n] point `index` [n] of the sequence that `key` [n] scrambles, as 32-bit fractions."""
    shuffled = scrambled(index, key)
    if second:
        return scrambled(sobol_second(shuffled), pcg(key + np.uint32(2)))
    return scrambled(reverse_bits(shuffled), pcg(key + np.uint32(1)))


def blue_fraction(frame: Any, tables: U32, pixel: U32, dimension: int) -> U32:
    """[n] what the blue-noise table and a hash below it have at `pixel` [n]."""
    shift = pcg(np.atleast_1d(frame["seed"]) * np.uint32(65536) + np.uint32(dimension))
    width, side = frame["width"], np.uint32(BLUE_SIDE)
    x = (pixel % width + shift) % side
    y = (pixel // width + (shift >> np.uint32(16))) % side
    place = (y * side + x).astype(np.int64)
    row = int(frame["noise_base"]) + place // 8
    word = tables.reshape(-1, 4)[row, place // 2 % 4]
    rank = word >> (np.uint32(16) * (place & 1).astype(np.uint32)) & np.uint32(0xFFFF)
    below = pcg(pixel + shift) >> np.uint32(2 * BLUE_BITS)
    return np.asarray(rank * np.uint32(2**32 // BLUE_SIDE**2) + below)


def sample_number(frame: Any, tables: U32, pixel: U32, dimension: int) -> F32:
    """[n] in [0, 1) for `pixel` [n], by the frame's sampler."""
    pixel = np.asarray(pixel, np.uint32)
    sampler = SAMPLERS[int(frame["sampler"])]
    if sampler == "hash":
        return random(pixel, frame["frame_index"], frame["seed"], dimension)
    # One-element arrays: unlike a NumPy scalar they wrap around in silence, as a GPU does.
    index = np.full_like(pixel, frame["frame_index"])
    pair = pcg(np.atleast_1d(frame["seed"]) * np.uint32(65536) + np.uint32(dimension // 2))
    second = bool(dimension & 1)
    if sampler == "sobol":
        fraction = sobol_number(index, pcg(pixel + pair), second)
    else:
        key = np.broadcast_to(pair, pixel.shape)
        fraction = blue_fraction(frame, tables, pixel, dimension) + sobol_number(index, key, second)
    return np.asarray((fraction >> np.uint32(8)).astype(np.float32) * np.float32(5.9604645e-8))
