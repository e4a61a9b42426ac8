"""Cost against error: which variants there are, what a moving camera does, and a small curve."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from benchmarks.committed_records import read
from benchmarks.quality_tables import (
    PAGE,
    few_pixels,
    left_out,
    mended_since,
    names,
    other_commits,
    page,
    quality_table,
)
from engine.gpu.errors import UserError
from engine.scene.camera import look_at
from engine.scene.light import Environment, RectLight
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FrameInputs
from passes.option_list import OPTIONS
from treeline import quality
from treeline.quality import STEP, TURN, approach, pareto
from treeline.quality_picture import draw_curve, point_label, shown_measures
from treeline.quality_table import quality_lines
from treeline.quality_variants import BASE, CURVES, variants
from treeline.reference import FULL, full_options
from treeline.report_reuse import kept_facts, kept_sentence
from treeline.time_limit import TimeLimit

SIZE = 64, 36


def test_every_variant_is_a_frame_of_its_own() -> None:
    found = variants()
    base = FrameOptions(*SIZE)
    assert found[0].name == BASE and found[0].options(base) == base
    assert len({variant.name for variant in found}) == len(found)
    for curve in CURVES[:-1]:
        assert len({variant.curve for variant in curve}) == 1
        options = [(variant.options(base), variant.samples) for variant in curve]
        assert len(set(options)) == len(curve)
    only = variants(["history", "samples"])
    curves = dict.fromkeys(variant.curve for variant in only)
    assert list(curves) == [BASE, "history", "samples"]  # in the order that was asked for
    with pytest.raises(UserError, match=r"no curve is named 'x'; there are samples; "):
        variants(["x"])


def test_a_reference_has_everything_full() -> None:
    """Whatever a variant turns down, the reference turns up, so that all share one."""
    base = FrameOptions(*SIZE, seed=3)
    full = full_options(base)
    assert full.seed != base.seed
    given_up = {name for v in variants() for name, _ in v.changes}
    no_effect = {"upsample", "rough_fallback"}  # where nothing is left out
    unbiased = {"shadow_rays"}
    assert given_up - no_effect - unbiased <= set(FULL)
    for variant in variants():
        assert full_options(variant.options(base)).roughness_cutoff == 1.0
        for name, value in FULL.items():
            assert getattr(full_options(variant.options(base)), name) == value
    assert set(FULL) <= {option.name for option in OPTIONS}


def test_the_moving_camera_arrives_where_the_still_one_stands() -> None:
    camera = look_at(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0]), 0.8)
    light = RectLight(np.zeros(3), np.eye(3)[0], np.eye(3)[1], (1.0, 1.0, 1.0))
    dark = Environment((0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
    last = FrameInputs(camera, light, dark, time=0.2, clip="walk")
    path = approach(last, 9)
    assert len(path) == 9 and path[-1].camera is camera and path[-1].time == last.time
    for before, after in zip(path, path[1:], strict=False):
        step = after.camera.position - before.camera.position
        assert np.linalg.norm(step) == pytest.approx(STEP)
        turn = np.arccos(before.camera.forward @ after.camera.forward)
        assert 0.9 * TURN * np.hypot(*camera.forward[[0, 2]]) < turn < 1.1 * TURN
        axes = before.camera.transform[:3, :3]
        np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-9)
    times = [inputs.time for inputs in path]
    assert times == sorted(times) and times[0] == 0.0  # a clip does not begin before it begins
    assert times[-1] - times[-2] == pytest.approx(1 / 30)


def test_the_pareto_front() -> None:
    points = [(3.0, 1.0), (1.0, 3.0), (2.0, 3.5), (2.0, 2.0), (4.0, 1.0), (1.0, 4.0)]
    assert pareto(points) == [1, 3, 0]


def test_the_table_for_people() -> None:
    def record(adapter: str, scale: float) -> dict[str, Any]:
        rows = [
            {"name": n, "ms": {"median": scale * m}, "rays": {"a": 1000, "b": 234}, **error}
            for n, m, error in (
                (BASE, 2.0, {"relative_mse": 0.02, "flip": 0.012}),
                ("half", 1.0, {"relative_mse": 0.1234, "flip": None}),
            )
        ]
        context = {"adapter": adapter, "scene": "hall", "commit": "c", "timing_source": "t"}
        place = {"width": 8, "height": 4, "reference": {"samples": 1024}}
        return {"context": context, "variants": rows, **place}

    gpu, cpu = record("H200", 1.0), record("llvmpipe (LLVM)", 100.0)
    cpu["variants"].pop()
    text = quality_table([[gpu, cpu], []])
    lines = text.splitlines()
    assert lines[0] == "|  | hall: ms, H200 | hall: ms, llvmpipe | rays | relative MSE | FLIP |"
    assert lines[2] == "| base | 2.00 | 200 | 1,234 | 0.02 | 0.012 |"
    assert lines[3] == "| half | 1.00 | - | 1,234 | 0.123 | - |"
    assert "8x4, reference of 1,024 samples, t, commit c" in lines[-1]
    assert len(quality_table([[gpu]], ["half"]).splitlines()) == 5
    assert quality_table([[], []]) == ""


def curve_record(*rows: tuple[str, float, float | None, float | None]) -> dict[str, Any]:
    """Of name, relative MSE, the same without outliers, FLIP."""
    context = {"adapter": "H200", "scene": "hall", "commit": "c", "timing_source": "t"}
    variants = [
        {"name": n, "ms": {"median": 1.0}, "rays": {"a": 1}, "relative_mse": mse, "flip": flip}
        | ({} if trimmed is None else {"trimmed_mse": trimmed})
        for n, mse, trimmed, flip in rows
    ]
    place = {"width": 8, "height": 4, "reference": {"samples": 4}, "left_out": []}
    return {"context": context, "variants": variants, **place}


def test_what_the_page_says_is_what_records_hold() -> None:
    base = (BASE, 0.02, 0.015, 0.08)
    record = curve_record(base, ("half", 0.5, 0.02, 0.2), ("noisy", 0.5, 0.4, 0.08))
    assert few_pixels(record) == "hall, H200: few pixels make the relative MSE of half 0.5 (0.02)."
    assert few_pixels(curve_record(base)) == ""
    text = quality_table([[record]])
    assert "| half | 1.00 | 1 | 0.5 (0.02) | 0.200 |" in text
    assert "In brackets: without the worst 0.1% of pixels." in text and "runs" not in text
    # Older records: few pixels hardly change what a screen shows.
    old = (BASE, 0.02, None, 0.08)
    record = curve_record(old, ("half", 0.5, None, 0.085), ("noisy", 0.5, None, 0.2))
    assert few_pixels(record) == "hall, H200: few pixels make the relative MSE of half 0.5."
    assert "In brackets" not in quality_table([[record]])
    assert left_out(record) == ""
    record |= {"left_out": ["x", "y"], "earlier": ["yesterday"]}
    assert left_out(record) == "hall, H200: 2 of 5 are not measured: x; y."
    assert "commit c, measured in 2 runs" in quality_table([[record]])
    newer = record | {"context": record["context"] | {"commit": "d"}}
    assert other_commits([record, record]) == ""
    assert other_commits([record, newer]).startswith("The records are of 2 commits")


def test_the_page_has_a_table_and_curves_of_each_adapter() -> None:
    text, there = page(), names()
    for name in there:
        assert f"]({name}.png)" in text and (PAGE.parent / f"{name}.png").is_file()
        record = read(name)
        assert left_out(record) in text and few_pixels(record) in text
        assert all(sentence in text for sentence in mended_since([record]))
    assert len(there) >= 2 and text.count("\n| base |") == text.count("\n## ") >= 1


def test_points_of_a_curve_are_told_apart() -> None:
    assert point_label({"changes": {"history": 4, "denoiser": 1}, "samples": 1}) == "4"
    assert point_label({"changes": {}, "samples": 8}) == "8"


def test_few_pixels_do_not_decide_what_is_on_the_front() -> None:
    def row(name: str, ms: float, mse: float, trimmed: float) -> dict[str, Any]:
        times = {"median": ms, "p5": ms, "p95": ms}
        errors = {"relative_mse": mse, "relative_mse_sem": None, "trimmed_mse": trimmed}
        rest = {"rays": {}, "nodes": {}, "bias": None, "flip": None}
        return {"name": name, "ms": times, **errors, **rest}

    rows = [row(BASE, 2.0, 0.02, 0.02), row("half", 1.0, 5.0, 0.01), row("more", 3.0, 0.01, 0.005)]
    lines = quality_lines({"variants": rows})
    assert [line[0] for line in lines] == [BASE, "half *", "more *"]
    assert [line[8] for line in lines] == ["0.02", "0.01", "0.005"]


def test_a_picture_of_measures_that_every_row_has(tmp_path: Path) -> None:
    def row(name: str, ms: float, **errors: float | None) -> dict[str, Any]:
        place = {"name": name, "curve": name, "changes": {}, "samples": 1}
        return {**place, "ms": {"median": ms}, "relative_mse": 0.1, **errors}

    new = [row(n, ms, trimmed_mse=0.02, flip=0.1) for n, ms in ((BASE, 2.0), ("half", 1.0))]
    assert [name for name, _ in shown_measures(new)] == ["trimmed_mse", "flip"]
    old = [row(BASE, 2.0), row("half", 1.0, flip=None), row("16 samples", 32.0, trimmed_mse=0.1)]
    assert [name for name, _ in shown_measures(old)] == ["relative_mse"]
    for rows in (new, old, new[:1]):
        context = {"scene": "hall", "adapter": "a", "timing_source": "timestamp-query"}
        context["adapter_type"] = "DiscreteGPU"
        place = {"width": 8, "height": 4, "reference": {"samples": None}}
        draw_curve(tmp_path / "c.png", {"context": context, "variants": rows, **place})
        with Image.open(tmp_path / "c.png") as picture:
            assert picture.height == 520 * len(shown_measures(rows))


def test_what_there_is_no_time_for_is_left_out(
    monkeypatch: pytest.MonkeyPatch, silent: Any
) -> None:
    now, timed, kept = [0.0], [], []

    def take_turns(make_frame: Any, group: Any, *_: Any) -> Any:
        now[0] += 10.0
        timed.append(len(group))
        return {options: [1.0, 2.0] for options in group}, {FrameOptions(8, 8): (5, 8.0)}

    monkeypatch.setattr(quality, "AT_ONCE", 2)
    monkeypatch.setattr(quality, "_count", lambda frame: ({}, {}))
    monkeypatch.setattr(quality, "_draw", lambda *_: iter(()))
    monkeypatch.setattr(quality, "_take_turns", take_turns)
    chosen = variants(["history", "samples", "reflection bounces"])
    found = quality.measure_quality(
        *(lambda options: None, FrameOptions(8, 8), np.zeros((8, 8, 3), np.float32)),
        *(chosen, silent),
        pictures=1,
        turns=2,
        limit=TimeLimit(25.0, lambda: now[0]),
        keep=kept.append,
    )
    # The base and its samples are one frame; then come history 4, 16 and two bounces, three.
    names = [variant.name for variant in chosen]
    assert timed == [2, 2] and now[0] == 20.0
    measured = [item.variant.name for item in found]
    assert 0 < len(measured) < len(names)
    assert measured == [name for name in names if name in measured]
    assert len(kept) == 2 and 0 < len(kept[0]) < len(found) and kept[-1] == found
    assert found[0].variant.name == BASE and found[0].ms.tolist() == [1.0, 2.0]
    reused = {item.variant.name: item.reused for item in found}
    assert reused[BASE] == kept_facts(5, 1.5, 8.0)
    assert reused["4 samples"] == kept_facts(5, 6.0, 6.0 + 8.0 - 1.5)  # drawn once
    assert not reused["history 4"]


def test_kept_passes_are_no_free_ones(make_stats: Any, silent: Any) -> None:
    """A frame that draws its maps in the first turn alone, beside one that has none."""
    plain = make_stats(8, 8, False)

    class Frame:
        def __init__(self, keeps: bool) -> None:
            self.keeps, self.held = keeps, False

        def forget(self) -> None:
            self.held = False

        def run(self, *_: Any) -> Any:
            reused = ("probe/light", "probe/blur") if self.held else ()
            self.held = self.keeps
            return replace(plain, frame_total_ms=2.0 if reused else 9.0, reused=reused)

    base, other = FrameOptions(8, 8), FrameOptions(8, 8, shadows="map")
    frames = {base: Frame(False), other: Frame(True)}
    times, redrawn = quality._take_turns(frames.__getitem__, list(frames), 3, 0.0, silent)
    assert times == {base: [9.0] * 3, other: [2.0] * 3} and redrawn == {other: (2, 9.0)}
    # A picture of more samples draws them once, too.
    once = kept_facts(2, 3 * 2.0, 3 * 2.0 + 9.0 - 2.0)
    assert kept_sentence("map", once) == (
        "map: 2 passes were reused, 6.0 ms; a frame that runs them takes 13.0 ms"
    )


def test_frames_that_miss_rays_are_not_timed(make_stats: Any, silent: Any) -> None:
    """Other random numbers may need larger queues than those of the frames before."""
    plain, drawn = make_stats(8, 8, False), [0]

    class Frame:
        def run(self, *_: Any) -> Any:
            drawn[0] += 1
            return replace(plain, valid=drawn[0] != 3, frame_total_ms=float(drawn[0]))

    base, make = FrameOptions(8, 8), cast(Any, lambda options: Frame())
    times, _ = quality._take_turns(make, [base], 3, 0.0, silent)
    assert times == {base: [2.0, 4.0, 5.0]}


def test_a_small_curve(run: Any, one_line: Any, box: Any, tmp_path: Any) -> None:
    """Noise falls as one over the samples; what remembers them gets them for one frame's rays."""
    out = tmp_path / "curve"
    common = ["--scene", box, "--size", "40x24", "--quiet", "--pictures", 1, "--turns", 2]
    common += ["--light", "0,3,0,1.5"]
    shown = run("curve", *common, "--reference", 64, "--only", "samples;history", "--out", out)
    assert shown.exit_code == 0, shown.output
    record = json.loads((out / "curve.json").read_text())
    rows = {row["name"]: row for row in record["variants"]}
    assert list(rows) == [BASE, *(f"{n} samples" for n in (2, 4, 8, 16)), "history 4", "history 16"]
    base, sixteen, history = rows[BASE], rows["16 samples"], rows["history 16"]
    assert sixteen["rays"] == {name: 16 * count for name, count in base["rays"].items()}
    assert sixteen["ms"]["median"] == pytest.approx(16 * base["ms"]["median"])
    assert history["rays"] == base["rays"]
    noise = {name: row["relative_mse"] for name, row in rows.items()}
    means = [noise[BASE], *(noise[f"{n} samples"] for n in (2, 4, 8, 16))]
    assert means == sorted(means, reverse=True) and means[0] > 5 * means[-1]
    # The 16th frame of a still camera that remembers 16 is their mean.
    assert noise["history 16"] == pytest.approx(noise["16 samples"], rel=0.05)
    assert noise["16 samples"] < noise["history 4"] < noise["2 samples"]
    assert all(abs(row["bias"]) < 0.05 for row in rows.values())
    for name, text in (("curve.png", 1000), ("sheet.png", 4 * 256)):
        with Image.open(out / name) as image:
            assert image.width >= text
    assert "Pareto front" in shown.stdout and "history 16" in shown.stdout
    again = run("curve", "--from", out / "curve.json", "--out", tmp_path / "again")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again" / "curve.png").read_bytes() == (out / "curve.png").read_bytes()
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for words, said in (
        (["--from", tmp_path / "other.json"], "other.json: no record of `treeline curve`"),
        (["--from", tmp_path / "deep.json"], "deep.json: cannot be read as JSON"),
        (["--from", out / "curve.json", "--resume"], "not with --from"),
        (["--only", "nothing"], "no curve is named 'nothing'"),
        (["--shown", "base;none"], "no variant is named 'none'; there are base; 2 samples"),
        (["--crop", "5"], "--crop is X,Y"),
        (["--reference", "0"], "a reference is made of 1 to"),
    ):
        assert said in one_line(run("curve", *common, *words, "--out", out), 2)
