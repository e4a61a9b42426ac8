"""Errors of pictures by hand, linear pictures in files, and what a report says of a reference."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from engine.gpu.errors import UserError
from treeline.contact_sheet import Panel, contact_sheet
from treeline.frame_error import FrameError, bad_pixels_sentence
from treeline.image_error import displayed, flip_map, image_error, relative_error_map
from treeline.radiance_file import RadiancePicture, load_radiance, save_radiance
from treeline.reference import SHARED, check_reference, parse_reference


def flat(*colour: float, size: tuple[int, int] = (12, 16)) -> Any:
    return np.broadcast_to(np.array(colour, np.float32), (*size, 3)).copy()


def test_relative_errors_and_bias_by_hand() -> None:
    reference, picture = flat(1.0, 2.0, 0.0), flat(1.5, 2.0, 0.1)
    found = image_error(picture, reference)
    squares = 0.25 / 1.01, 0.0, 0.01 / 0.01
    assert found.relative_mse == pytest.approx(sum(squares) / 3, rel=1e-6)
    assert found.mean_relative == pytest.approx(0.6 / 3 / 1.01, rel=1e-6)
    assert found.bias == pytest.approx(3.6 / 3.0 - 1, rel=1e-6)
    errors = relative_error_map(picture, reference)
    np.testing.assert_allclose(errors, 0.2 / 1.01, rtol=1e-6)
    same = image_error(reference, reference)
    assert (same.relative_mse, same.mean_relative, same.bias) == (0, 0, 0)
    assert same.ssim == pytest.approx(1) and same.flip == 0
    assert image_error(picture, flat(0, 0, 0)).bias is None
    with pytest.raises(ValueError, match="against a reference"):
        image_error(picture, reference[1:])


def test_the_trimmed_error_leaves_out_the_worst_thousandth() -> None:
    reference = flat(1.0, 1.0, 1.0, size=(40, 51))  # 2,040 pixels: two are left out
    picture = reference + np.float32(0.1)
    picture[3, 4], picture[7, 8, 1], picture[9, 9] = 50.0, 90.0, 2.0
    found = image_error(picture, reference)
    small, third = 0.01 / 1.01, 1.0 / 1.01
    assert found.trimmed_mse == pytest.approx((2037 * small + third) / 2038, rel=1e-5)
    assert found.relative_mse > 200 * found.trimmed_mse
    few = image_error(picture[:10], reference[:10])  # 510 pixels: none
    assert few.trimmed_mse == few.relative_mse
    picture[3, 4] = np.nan  # counted and left out before
    assert image_error(picture, reference).trimmed_mse == pytest.approx(small, rel=1e-5)


def test_ssim_is_wang_s_formula(rng: np.random.Generator) -> None:
    """Local means, variances and covariance under a Gaussian of 1.5 pixels, channel by channel;
    scikit-image leaves a border of 5 pixels out."""
    reference = rng.random((24, 30, 3)).astype(np.float32)
    picture = reference + 0.2 * rng.random((24, 30, 3)).astype(np.float32)
    x, r = (displayed(image).astype(np.float64) for image in (picture, reference))

    def local(values: Any) -> Any:
        return gaussian_filter(values, 1.5, truncate=3.5, axes=(0, 1))

    mx, mr = local(x), local(r)
    vx, vr, c = local(x * x) - mx**2, local(r * r) - mr**2, local(x * r) - mx * mr
    ssim = (2 * mx * mr + 1e-4) * (2 * c + 9e-4) / ((mx**2 + mr**2 + 1e-4) * (vx + vr + 9e-4))
    expected = ssim[5:-5, 5:-5].mean()
    assert image_error(picture, reference).ssim == pytest.approx(expected, rel=1e-4)
    assert image_error(picture[:8], reference[:8]).ssim is None  # smaller than the window


def test_flip_sees_what_a_screen_shows(rng: np.random.Generator) -> None:
    """Of the tone-mapped picture: bright pixels that are clipped alike do not differ."""
    reference = rng.random((32, 32, 3)).astype(np.float32)
    noise = rng.random((32, 32, 3)).astype(np.float32)
    errors = [image_error(reference + k * noise, reference).flip for k in (0.05, 0.2, 0.8)]
    assert 0 < errors[0] < errors[1] < errors[2] < 1
    assert image_error(flat(900, 900, 900), flat(800, 800, 800)).flip == pytest.approx(0, abs=1e-3)
    whole = image_error(flat(900, 900, 900), flat(0, 0, 0)).flip  # a white screen, a black one
    assert whole is not None and 0.9 < whole <= 1
    spot = reference.copy()
    spot[5, 20] += 3.0
    seen = flip_map(spot, reference)
    assert seen is not None
    assert np.unravel_index(seen.argmax(), seen.shape) == (5, 20)
    darker = image_error(reference + noise, reference, exposure=0.05).flip
    assert darker is not None and 0 < darker < errors[2]


def test_pixels_that_are_not_finite_are_named_and_left_out() -> None:
    reference, picture = flat(1.0, 1.0, 1.0), flat(1.1, 1.1, 1.1)
    clean = image_error(picture, reference)
    picture[3, 7, 1], reference[0, 2, 0] = np.nan, np.inf
    found = image_error(picture, reference)
    assert found.bad_pixels == ((2, 0), (7, 3))
    assert found.relative_mse == pytest.approx(clean.relative_mse)
    assert found.bias == pytest.approx(clean.bias)
    assert np.isfinite([found.ssim, found.flip]).all()
    assert np.isnan(relative_error_map(picture, reference)).sum() == 2
    many = FrameError((picture,), (found,) * 2).bad_pixels
    assert bad_pixels_sentence(many) == (
        "2 pixels are not finite and left out of the errors: (2, 0), (7, 3)"
    )
    assert "(4, 0) and 6 more" not in bad_pixels_sentence([(i, 0) for i in range(10)])
    assert bad_pixels_sentence([(i, 0) for i in range(10)]).endswith("(3, 0) and 6 more")


def test_means_over_frames_have_standard_errors() -> None:
    reference = flat(1.0, 1.0, 1.0)
    pictures = [flat(*(3 * [1 + b])) for b in (0.1, 0.2, 0.3)]
    found = FrameError(tuple(pictures), tuple(image_error(p, reference) for p in pictures))
    assert found.mean("bias") == pytest.approx(0.2)
    assert found.standard_error("bias") == pytest.approx(0.1 / np.sqrt(3))
    assert FrameError(tuple(pictures[:1]), found.errors[:1]).standard_error("bias") is None


@pytest.mark.parametrize("suffix", [".npz", ".exr"])
def test_linear_pictures_come_back(tmp_path: Path, rng: np.random.Generator, suffix: str) -> None:
    pixels = (1e4 * rng.random((5, 7, 3)) ** 8).astype(np.float32)
    path = tmp_path / f"picture{suffix}"
    save_radiance(path, RadiancePicture(pixels, {"scene": "höhle", "time": 0.5}))
    found = load_radiance(path)
    np.testing.assert_array_equal(found.pixels, pixels)
    assert found.facts == {"scene": "höhle", "time": 0.5}
    (tmp_path / f"bad{suffix}").write_text("nothing")
    with pytest.raises(UserError, match=f"bad{suffix}: not an"):
        load_radiance(tmp_path / f"bad{suffix}")
    with pytest.raises(UserError, match="no such file"):
        load_radiance(tmp_path / f"none{suffix}")


def test_pictures_of_other_programs(tmp_path: Path) -> None:
    halves = {name: np.full((3, 4), i, np.float16) for i, name in enumerate("RGBA")}
    with OpenEXR.File({}, halves) as file:
        file.write(str(tmp_path / "a.exr"))
    found = load_radiance(tmp_path / "a.exr")
    assert found.facts == {} and found.pixels.shape == (3, 4, 3)
    np.testing.assert_array_equal(found.pixels[0, 0], [0, 1, 2])
    with OpenEXR.File({}, {"Y": halves["R"]}) as file:
        file.write(str(tmp_path / "y.exr"))
    with pytest.raises(UserError, match="no channel R in it, there are Y"):
        load_radiance(tmp_path / "y.exr")
    for arrays, said in (
        ({"other": np.zeros(3)}, "no array 'radiance'"),
        ({"radiance": np.zeros((4, 4))}, "height, width, 3"),
        ({"radiance": np.zeros((4, 4, 3), np.uint8)}, "not a float"),
        ({"radiance": np.zeros((4, 4, 3)), "facts": np.array("[")}, "no JSON"),
    ):
        np.savez(tmp_path / "b.npz", **arrays)
        with pytest.raises(UserError, match=said):
            load_radiance(tmp_path / "b.npz")


def test_references_of_something_else_are_refused() -> None:
    facts: dict[str, Any] = {
        "scene": "hall",
        "scene_sha256": "aa",
        "camera": list(np.eye(4).ravel()),
        "y_fov": 0.7,
        "light": [1.0] * 12,
        "clip": "walk",
        "time": 0.25,
        "width": 16,
        "height": 12,
    }
    pixels = flat(1, 1, 1)
    check_reference("r.npz", RadiancePicture(pixels), facts)
    check_reference("r.npz", RadiancePicture(pixels, dict(facts)), facts)
    for key in SHARED:
        value = facts[key]
        other = f"{value}x" if isinstance(value, str) else np.asarray(value) * 1.001
        with pytest.raises(UserError, match=r"^reference r.npz .* than the frame's$"):
            check_reference("r.npz", RadiancePicture(pixels, facts | {key: other}), facts)
    with pytest.raises(UserError, match="r.npz is 16x11, the frame 16x12"):
        check_reference("r.npz", RadiancePicture(pixels[1:]), facts)
    assert parse_reference("64") == 64 and parse_reference("a/64.npz") == Path("a/64.npz")
    for text, said in (("0", "1 to"), ("a.png", "a linear picture is"), ("-3", "linear picture")):
        with pytest.raises(UserError, match=said):
            parse_reference(text)


def test_a_contact_sheet_holds_every_picture(rng: np.random.Generator) -> None:
    pictures = rng.integers(0, 256, (3, 20, 90, 3)).astype(np.uint8)
    sheet = contact_sheet([Panel(f"picture {i}\n1 ms", p) for i, p in enumerate(pictures)], 2)
    assert sheet.shape[1] == 2 * 90 + 4
    found = [
        (y, x)
        for y in range(sheet.shape[0] - 19)
        for x in (0, 94)
        for p in pictures
        if (sheet[y : y + 20, x : x + 90] == p).all()
    ]
    assert len(found) == 3
    below = sheet[20:50, :90].astype(int)
    assert below.max() > 150  # a caption


def test_report_against_a_reference(run: Any, one_line: Any, box: Path, tmp_path: Path) -> None:
    """A reference from a file and one made here; the first frame's errors are noise, not bias."""
    common = ["--scene", box, "--size", "24x16", "--quiet"]
    reference, out = tmp_path / "r.exr", tmp_path / "out"
    shown = run("render", *common, "--samples", 64, "--seed", 9, "--out", reference)
    assert shown.exit_code == 0, shown.output
    assert load_radiance(reference).facts["samples"] == 64
    few = ["--frames", 1, "--warmup", 0, "--out", out]
    sheet = tmp_path / "e.png"
    shown = run("report", *common, *few, "--reference", reference, "--error-picture", sheet)
    assert shown.exit_code == 0, shown.output
    assert "against r.exr of 64 samples" in shown.stdout.replace("\n", " ")
    with Image.open(sheet) as image:
        assert image.width == 2 * 24 + 4
    report = json.loads((out / "report.json").read_text())
    (row,) = [r for r in report["benchmarks"] if r["name"] == "error/frame"]
    assert row["reference"] == "r.exr" and row["bad_pixels"] == 0 and row["iterations"] == 4
    assert 0 < row["relative_mse"] < 0.1 and 0.5 < row["ssim"] < 1 and 0 < row["flip"] < 0.3
    assert abs(row["bias"]) < max(5 * row["bias_sem"], 0.02)
    assert set(row["run"].values()) == {"compared"}
    page = (out / "report.html").read_text()
    assert "<h2>Error</h2>" in page and "relative MSE" in page
    assert "error/frame,flip," in (out / "report.csv").read_text()

    for words, said in (
        (["--reference", reference, "--size", "16x16"], "is 24x16, the frame 16x16"),
        (["--reference", tmp_path / "e.png"], "a linear picture is .exr or .npz"),
        (["--error-picture", sheet], "--error-picture needs --reference"),
        (["--reference", reference, "--light", "0,5,0,1"], "has another light"),
    ):
        assert said in one_line(run("report", *common, *few, *words), 2)
