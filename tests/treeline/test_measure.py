"""Timed and counted runs stay apart, and must have traced the same rays."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.counters import OBJECT_COUNTERS
from engine.gpu.errors import CheckFailed
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import prepare
from treeline.measure import MODEL_FRAMES, measure
from treeline.report import frame_rows
from treeline.report_reuse import pass_label, reused_sentence
from treeline.scenes import load


def test_runs_and_sizes(fake_frame: Any, silent: Any) -> None:
    made: list[tuple[int, int, bool]] = []

    def make(width: int, height: int, count: bool) -> Any:
        made.append((width, height, count))
        return fake_frame(width, height, count)

    result = measure(make, 40, 20, 7, 2, silent)
    sizes = [(40, 20), (20, 10), (30, 15)]
    assert made == [(*size, count) for size in sizes for count in (False, True)]
    assert len(result.main.frames) == 7
    assert [len(run.frames) for run in result.smaller] == [MODEL_FRAMES, MODEL_FRAMES]
    assert result.main.frames[0].rays["reflection"].nodes is None
    assert result.main.counted.rays["reflection"].nodes == 20_000
    assert set(result.main.nodes) == {"reflection", "shadow", "all"}
    assert fake_frame.most_alive == 1
    assert silent.advances == 9 + 2 * (1 + MODEL_FRAMES) + 3


def test_what_frames_reuse_is_measured_once(fake_frame: Any, silent: Any) -> None:
    """A report names the passes that took no time, and says what they take."""

    class Keeping(fake_frame):
        stands = False

        def forget(self) -> None:
            self.stands = False

        def run(self, frame_index: int = 0) -> Any:
            stats, stood = super().run(frame_index), self.stands
            self.stands = True
            passes = {**stats.passes, "probe/light": 0.0 if stood else 7.0}
            total = stats.frame_total_ms + passes["probe/light"]
            reused = ("probe/light",) if stood else ()
            return replace(stats, passes=passes, frame_total_ms=total, reused=reused)

    run = measure(Keeping, 40, 20, 3, 1, silent).main
    rows = {row["name"]: row for row in frame_rows(run)}
    light, total = rows["pass/probe/light"], rows["frame/total"]
    assert (light["real_time"], light["reused"], light["redrawn_ms"]) == (0.0, 3, 7.0)
    assert total["redrawn_ms"] == pytest.approx(total["real_time"] + 7.0)
    assert "reused" not in rows["pass/composite"]
    report = {"benchmarks": list(rows.values())}
    assert "probe/light (reused)" in map(pass_label, rows.values())
    assert reused_sentence(report) == (
        "1 passes were reused: what they wrote in an earlier frame stood. A frame that runs them "
        "takes 15.8 ms instead of 8.8, 7.0 of them there."
    )
    plain = {"benchmarks": frame_rows(measure(fake_frame, 40, 20, 3, 1, silent).main)}
    assert reused_sentence(plain) == "" and "redrawn_ms" not in plain["benchmarks"][0]


def test_scratch_is_what_the_timed_frame_allocated(fake_frame: Any, silent: Any) -> None:
    allocated = [100]

    def make(width: int, height: int, count: bool) -> Any:
        allocated[0] += 10 * width * height + 7 * count
        return fake_frame(width, height, count)

    assert measure(make, 8, 8, 1, 0, silent, lambda: allocated[0]).scratch_bytes == 640


def test_a_counted_run_with_other_hits_is_refused(fake_frame: Any, silent: Any) -> None:
    def make(width: int, height: int, count: bool) -> Any:
        return fake_frame(width, height, count, "counted" if count else "timed")

    with pytest.raises(CheckFailed, match="differ"):
        measure(make, 8, 8, 1, 0, silent)


def test_a_dropped_record_makes_the_measurement_invalid(fake_frame: Any, silent: Any) -> None:
    class Dropping(fake_frame):
        def run(self, frame_index: int = 0) -> Any:
            return replace(super().run(frame_index), dropped=3, valid=False)

    assert measure(fake_frame, 8, 8, 1, 0, silent).valid
    assert not measure(Dropping, 8, 8, 1, 0, silent).valid


def test_one_pixel_can_be_measured(fake_frame: Any, silent: Any) -> None:
    result = measure(fake_frame, 1, 1, 1, 0, silent)
    assert {(run.width, run.height) for run in result.smaller} == {(1, 1)}


def test_ray_counts_are_what_the_gbuffer_implies(
    device: Any, silent: Any, shared_scenes: Path
) -> None:
    prepared = prepare(load(shared_scenes / "spaceship.glb"), BuildOptions(reinsertion=0))
    cutoff = FrameOptions(1, 1).roughness_cutoff
    smooth: list[int] = []
    covered: list[int] = []

    class Watched(HybridFrame):
        def result_hash(self) -> str:
            seen = self.aov("object") >= 0
            covered.append(int(seen.sum()))
            smooth.append(int((seen & (self.aov("roughness") <= np.float32(cutoff))).sum()))
            return super().result_hash()

    def make(width: int, height: int, count: bool) -> Any:
        return Watched(device, prepared, FrameOptions(width, height, count=count))

    result = measure(make, 96, 54, 1, 0, silent)
    sizes = (result.main, *result.smaller)
    runs = [run for size in sizes for run in (size.frames[0], size.counted)]
    assert min(smooth) > 0
    for run, seen, could in zip(runs, covered, smooth, strict=True):
        reflection = run.rays["reflection"]
        assert reflection.rays + reflection.lost == could and 0 < reflection.lost < 0.03 * could
        # One ray from a visible surface and one from what its reflection hit, where the light
        # is in front of them.
        reflection, shadow = run.rays["reflection"], run.rays["shadow"]
        assert 0 < shadow.rays <= seen + (reflection.hits or reflection.rays)
    for size in sizes:
        for ray_type, counts in size.counted.rays.items():
            assert counts.rays == counts.hits + counts.misses
            assert counts.rays == size.frames[0].rays[ray_type].rays
            assert counts.nodes == counts.nodes_hit + counts.nodes_miss
            assert counts.box_tests >= counts.box_hits > 0
            spent = [n for (_, t), n in size.counted.objects.items() if t == ray_type]
            for field in OBJECT_COUNTERS:
                assert sum(n[field] for n in spent) == getattr(counts, field)
            # The heat map holds every node that was counted.
            assert int(size.nodes[ray_type].sum()) == counts.nodes
