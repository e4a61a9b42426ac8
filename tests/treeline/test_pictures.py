"""Palettes, heat maps and AOV views."""

import base64
import io
from colorsys import rgb_to_hsv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from passes.frame_options import FrameOptions
from passes.outputs import frame_outputs
from passes.palettes import NO_RAY
from treeline.pictures import (
    LEGEND_HEIGHT,
    Legend,
    add_legend,
    colour,
    heat_map,
    heat_map_uri,
    output_legend,
    palette,
    picture_uri,
    save_png,
    view_aov,
    with_legend,
)


@pytest.mark.parametrize("name", ["heat", "viridis", "plasma"])
def test_a_palette_gets_lighter_all_the_way(name: str) -> None:
    colours = palette(name)
    assert colours.shape == (256, 3)
    luminance = (colours.astype(float) / 255) ** 2.2 @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) > -1e-3).all()
    assert luminance[-1] > 0.6 > luminance[0] + 0.5


def test_temperature_runs_from_blue_to_red() -> None:
    hues = [rgb_to_hsv(*(c / 255 for c in colour))[0] for colour in palette("temperature").tolist()]
    assert (np.diff(hues) < 0.01).all() and hues[0] > 0.6 and hues[-1] < 0.05


def test_differences_are_grey_in_the_middle() -> None:
    colours = palette("difference").astype(int)
    assert np.ptp(colours[128]) <= 3 and colours[128].min() > 200
    assert (colours[:118, 2] > colours[:118, 0]).all() and (
        colours[138:, 0] > colours[138:, 2]
    ).all()


def test_a_heat_map_spans_its_range() -> None:
    heat = heat_map(np.array([[0, 5], [10, 20]]), high=10)
    assert heat.indices.tolist() == [[0, 128], [255, 255]]
    assert (heat.low, heat.high, heat.maximum) == (0, 10, 20)
    assert colour(heat)[1, 1].tolist() == palette()[255].tolist()


def test_auto_range_ignores_single_outliers() -> None:
    counts = np.full((100, 100), 10)
    counts[0, 0] = 100_000
    heat = heat_map(counts)
    assert heat.high == 10 and heat.maximum == 100_000


def test_nothing_counted_is_all_lowest() -> None:
    assert heat_map(np.zeros((4, 4))).indices.max() == 0


@pytest.mark.parametrize("shape", [(40, 300), (3, 2), (1, 1)])
def test_a_legend_is_added_below(shape: tuple[int, int]) -> None:
    heat = heat_map(np.arange(shape[0] * shape[1]).reshape(shape))
    picture = with_legend(heat, "nodes")
    assert picture.shape == (shape[0] + LEGEND_HEIGHT, shape[1], 3)
    assert np.array_equal(picture[: shape[0]], colour(heat))


@pytest.mark.parametrize("width", [48, 320, 960])
def test_a_legend_fits_its_width(width: int) -> None:
    """Its last columns stay empty, however long the words: nothing is cut off."""
    label = "triangle tests, reflection rays of a pixel"
    legend = Legend(label, 0, 1_234_567, "tests", maximum=2e7, no_ray=True)
    strip = add_legend(np.zeros((20, width, 3), np.uint8), legend)[20:]
    drawn = (strip != strip[-1, -1]).any(-1)
    assert not drawn[:, -2:].any()
    # Only where there is no room for the words are they left out.
    assert drawn[22:].any() == (width > 48)
    for colour_of_end in palette("viridis")[[0, 255]]:
        assert (strip[10] == colour_of_end).all(-1).any()
    assert (strip == NO_RAY).all(-1).any() == (width > 48)


def test_legends_tell_values_with_sign_and_unit() -> None:
    output = next(o for o in frame_outputs(FrameOptions(8, 8, count=True)) if o.kind == "count")
    plain = output_legend(output, (0.0, 77.0), "plasma", 96.0)
    assert (plain.label, plain.unit, plain.palette_name) == (
        "nodes, reflection rays of a pixel",
        "nodes",
        "plasma",
    )
    assert [plain.value(v) for v in (0.0, 77.0, 12345.0, 0.25)] == ["0", "77", "12,345", "0.25"]
    signed = output_legend(output, (-53.0, 53.0), "plasma", difference=True)
    assert signed.palette_name == "difference" and signed.label.startswith("difference in nodes")
    assert [signed.value(v) for v in (-53.0, 53.0)] == ["-53", "+53"]


def decode(uri: str) -> np.ndarray:
    data = base64.b64decode(uri.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def test_a_heat_map_uri_is_exact(rng: np.random.Generator) -> None:
    heat = heat_map(rng.integers(0, 90, (17, 23)))
    assert np.array_equal(decode(heat_map_uri(heat)), colour(heat))


def test_a_picture_uri_is_close(rng: np.random.Generator) -> None:
    smooth = np.linspace(0, 255, 64 * 64 * 3).reshape(64, 64, 3).astype(np.uint8)
    assert np.abs(decode(picture_uri(smooth)).astype(int) - smooth).max() <= 12


def test_png_round_trip(tmp_path: Path, rng: np.random.Generator) -> None:
    pixels = rng.integers(0, 256, (5, 7, 3), np.uint8)
    save_png(tmp_path / "p.png", pixels)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "p.png")), pixels)


def test_depth_is_bright_near_and_black_on_a_miss() -> None:
    picture = view_aov("depth", np.array([[1.0, 2.0, 4.0, np.inf]], np.float32))
    row = picture[0, :, 0].astype(int)
    assert row[0] == 255 and row[0] > row[1] > row[2] > row[3] == 0


def test_other_views() -> None:
    normal = np.zeros((1, 2, 3), np.float32)
    normal[0, 0] = [0, 0, 1]
    assert view_aov("normal", normal)[0, 0].tolist() == [128, 128, 255]
    assert view_aov("roughness", np.array([[0.0, 0.5, 1.0]]))[0, :, 1].tolist() == [0, 128, 255]
    ids = view_aov("material", np.array([[-1, 0, 1, 2, 0]]))
    assert ids[0, 0].tolist() == [0, 0, 0]
    assert len({tuple(c) for c in ids[0].tolist()}) == 4
    assert view_aov("nodes/shadow", np.ones((4, 9))).shape == (4 + LEGEND_HEIGHT, 9, 3)
