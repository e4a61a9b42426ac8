"""What a frame's random numbers are: evenly spread, apart between dimensions, equal to their twins,
and right on average."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assets.generate_blue_noise import SIDE, blue_noise
from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.sampler import SAMPLERS, blue_noise_rows
from passes.twins.sample_number import reverse_bits, sample_number, sobol_number

ROOT = Path(__file__).parents[2]


def ranks() -> Any:
    return blue_noise_rows().view(np.uint16).reshape(SIDE, SIDE)


def numbers(sampler: str, frames: Any, dimension: int, seed: int = 0, side: int = 64) -> Any:
    """[frames, side * side] in [0, 1)."""
    pixel = np.arange(side * side, dtype=np.uint32)
    found = []
    for index in frames:
        frame = {
            "sampler": SAMPLERS.index(sampler),
            "seed": np.uint32(seed),
            "frame_index": np.uint32(index),
            "width": np.uint32(side),
            "noise_base": np.uint32(0),
        }
        found.append(sample_number(frame, blue_noise_rows(), pixel, dimension))
    return np.array(found)


def low_part(values: Any) -> float:
    """Of the spectrum's power, the part below a quarter of the highest frequency, in white noise's
    (1 there)."""
    power = np.abs(np.fft.fft2(values - values.mean())) ** 2
    frequency = np.hypot(*np.meshgrid(*[np.fft.fftfreq(len(values))] * 2))
    low = (frequency > 0) & (frequency < 0.125)
    return float(power[low].mean() / power[frequency > 0].mean())


def test_the_table_is_what_its_script_makes() -> None:
    assert (blue_noise() == ranks()).all()


def test_the_table_is_blue_at_every_threshold() -> None:
    assert sorted(ranks().ravel().tolist()) == list(range(SIDE * SIDE))
    assert low_part(ranks().astype(float)) < 0.01
    for level in (0.1, 0.2, 0.5, 0.8):
        assert low_part((ranks() < level * SIDE * SIDE).astype(float)) < 0.05


@pytest.mark.parametrize("dimension", [0, 1, 6, 21])
def test_a_picture_of_numbers(dimension: int) -> None:
    picture = {name: numbers(name, [5], dimension, seed=3)[0] for name in SAMPLERS}
    for values in picture.values():
        assert 0 <= values.min() and values.max() < 1
        assert abs(values.mean() - 0.5) < 0.02 and values.std() == pytest.approx(12**-0.5, rel=0.02)
    assert low_part(picture["blue"].reshape(64, 64)) < 0.06
    assert low_part(picture["hash"].reshape(64, 64)) > 0.8
    assert low_part(picture["sobol"].reshape(64, 64)) > 0.8


@pytest.mark.parametrize("sampler", ["blue", "sobol"])
def test_each_power_of_two_frames_is_stratified(sampler: str) -> None:
    values = np.sort(numbers(sampler, range(64), 2, seed=1, side=8), axis=0)
    if sampler == "sobol":  # one number in each 64th
        assert (np.floor(64 * values) == np.arange(64)[:, None]).all()
    gaps = np.diff(values, axis=0)
    assert gaps.max() < 2.01 / 64


def test_pairs_are_stratified_in_the_plane() -> None:
    """A (0, 2)-sequence: one of 64 points in each box of 1/64, whatever its shape."""
    index = np.arange(64, dtype=np.uint32)
    key = np.full(64, 77, np.uint32)
    u, v = (sobol_number(index, key, second) / 2**32 for second in (False, True))
    for bits in range(7):
        boxes = np.floor(u * 2**bits) * 2 ** (6 - bits) + np.floor(v * 2 ** (6 - bits))
        assert len(set(boxes.tolist())) == 64


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_dimensions_and_seeds_do_not_run_together(sampler: str) -> None:
    """Over 256 frames the product of any two numbers averages to a quarter, at every pixel."""
    rows = [
        numbers(sampler, range(256), d, s, 8) for d, s in ((0, 0), (1, 0), (2, 0), (5, 0), (0, 1))
    ]
    for i, first in enumerate(rows):
        for second in rows[i + 1 :]:
            product = (first * second).mean(axis=0)
            assert np.abs(product - 0.25).max() < 0.09  # 5.5 standard errors of independent ones
            assert abs(product.mean() - 0.25) < 0.025


def error(sampler: str) -> float:
    """Of the mean of 64 samples of a smooth function of two numbers."""
    u, v = (numbers(sampler, range(64), d, side=16) for d in (0, 1))
    value = np.exp(-u) * (1 + np.sin(3 * v))
    true = (1 - np.exp(-1)) * (1 + (1 - np.cos(3)) / 3)
    return float(np.sqrt(((value.mean(axis=0) - true) ** 2).mean()))


def test_sequences_converge_faster() -> None:
    by_hash = error("hash")
    assert error("sobol") < 0.2 * by_hash
    assert error("blue") < 0.3 * by_hash


def test_bits_are_reversed() -> None:
    values = np.array([0, 1, 2, 0x80000000, 0x12345678], np.uint32)
    expected = [int(f"{int(v):032b}"[::-1], 2) for v in values]
    assert reverse_bits(values).tolist() == expected


def test_no_shader_draws_past_the_sampler() -> None:
    """Every number comes by `sample_number`, or the option would not reach it."""
    shaders = {
        path.name: path.read_text() for path in (ROOT / "passes" / "shaders").rglob("*.wgsl")
    }
    drawing = {name for name, text in shaders.items() if re.search(r"\brandom\(", text)}
    assert drawing == {"sampling.wgsl", "sample_number.wgsl"}


def test_pictures_have_the_same_mean(device: Any, hall: Any) -> None:
    frame = HybridFrame(device, hall, FrameOptions(48, 27, gbuffer="rays", seed=9))
    means = {}
    for sampler in SAMPLERS:
        frame.inputs = replace(frame.inputs, sampler=sampler)
        frame.render(32)
        means[sampler] = frame.device.read(frame.data.resources["accumulated"], np.float32).mean()
    assert means["blue"] == pytest.approx(means["hash"], rel=0.01)
    assert means["sobol"] == pytest.approx(means["hash"], rel=0.01)


def test_unknown_sampler() -> None:
    with pytest.raises(UserError, match="unknown sampler 'halton', there are hash, blue, sobol"):
        FrameOptions(1, 1, sampler="halton")
