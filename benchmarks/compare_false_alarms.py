"""How often `treeline compare` calls two runs of the same program different.

`python -m benchmarks.compare_false_alarms [--scene F] [--size 64x36] [--frames 24] [--pairs 50]
[--interleaved] [--adapter NAME] [--out F.json]`

Measures the frame twice a pair, each time with a frame object of its own, and compares them at the
command's defaults. Every regression and improvement is a false alarm. Then each frame of the second
run is taken as 5% slower, and `planted_found` counts the pairs in which the frame's total is called
so. One run follows the other, as two reports do; with `--interleaved` their frames take turns, so
that what the machine does meanwhile meets both: where that finds what the other does not, the
machine is at fault, not the statistics. Both runs are in one process: what differs between
processes (where memory lies, which core) is not in it. `frame_ratios` are medians' ratios, and
`run_deviation` is how far those scatter.
"""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import frame_context, put_out
from bvh.blas_cache import BlasCache
from bvh.build import BuildOptions
from engine.gpu.device import open_device
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.grouping import GROUPS
from passes.hybrid import FrameOptions, HybridFrame
from treeline import structures
from treeline.cli.options import parse_size
from treeline.compare import FRAME, Series, compare
from treeline.measure import SizeRun
from treeline.report import frame_rows
from treeline.scenes import load
from treeline.two_samples import F64

THRESHOLD, FLOOR = 0.05, 0.01  # the command's defaults
PLANTED = 1.05
WARMUP = 2
GPU_WARMUP_S = 1.0


def rows_of(run: Sequence[FrameStats], width: int, height: int) -> dict[str, F64]:
    """A report's rows of the frame and its passes, without those that take no time."""
    nothing = np.zeros((height, width, 3), np.uint8)
    size_run = SizeRun(width, height, WARMUP, tuple(run), None, None, 0.0, nothing, {})
    rows = {row["name"]: np.array(row["samples"]) for row in frame_rows(size_run)}
    return {name: times for name, times in rows.items() if times.min() > 0}


def series(name: str, rows: dict[str, F64]) -> Series:
    return Series(Path(name), {}, rows)


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the hall.")] = None,
    size: str = "64x36",
    frames: Annotated[int, typer.Option(min=2)] = 24,
    pairs: Annotated[int, typer.Option(min=1)] = 50,
    interleaved: bool = False,
    adapter: str | None = None,
    out: Path | None = None,
) -> None:
    device = open_device(adapter)
    loaded = load(scene)
    prepared = structures.build(
        loaded, BuildOptions(), GROUPS[0], device=device, cache=BlasCache(), or_cpu=True
    ).prepared
    on_gpu = GpuScene(device, prepared)
    width, height = parse_size(size)

    def make() -> HybridFrame:
        frame = HybridFrame(device, prepared, FrameOptions(width, height), on_gpu)
        for _ in range(WARMUP):
            frame.run(0)
        return frame

    def measured(*turns: HybridFrame) -> list[dict[str, F64]]:
        """The rows of each frame; they take turns."""
        runs: list[list[FrameStats]] = [[] for _ in turns]
        for _ in range(frames):
            for frame, run in zip(turns, runs, strict=True):
                run.append(frame.run(0))
        return [rows_of(run, width, height) for run in runs]

    warm = make()  # its pipelines are compiled, and it is compared with nothing
    start = time.perf_counter()
    while not device.info.is_cpu and time.perf_counter() - start < GPU_WARMUP_S:
        warm.run(0)
    verdicts: Counter[str] = Counter()
    alarms: list[dict[str, Any]] = []
    found = 0
    ratios = []
    for pair in range(pairs):
        a, b = measured(make(), make()) if interleaved else (*measured(make()), *measured(make()))
        result = compare(series("a", a), series("b", b), THRESHOLD, FLOOR, seed=pair)
        verdicts.update(row.verdict for row in result.rows)
        alarms += [
            {"pair": pair, "name": row.name, "change": row.change.ratio - 1, "verdict": row.verdict}
            for row in (*result.named("slower"), *result.named("faster"))
        ]
        slow = {name: PLANTED * times for name, times in b.items()}
        planted = compare(series("a", a), series("b", slow), THRESHOLD, FLOOR, seed=pair)
        found += FRAME in {row.name for row in planted.named("slower")}
        ratios.append(float(np.median(b[FRAME]) / np.median(a[FRAME])))
    record = {
        "context": {
            **frame_context(device, scene, loaded, width, height),
            "frames": frames,
            "warmup": WARMUP,
        },
        "pairs": pairs,
        "interleaved": interleaved,
        "threshold": THRESHOLD,
        "pairs_with_alarms": len({alarm["pair"] for alarm in alarms}),
        "alarms": alarms,
        "verdicts": dict(verdicts),
        "planted": PLANTED - 1,
        "planted_found": found,
        "run_deviation": round(float(np.std(np.log(ratios))), 4),
        "frame_ratios": [round(r, 4) for r in sorted(ratios)],
    }
    put_out(record, out)


if __name__ == "__main__":
    typer.run(main)
