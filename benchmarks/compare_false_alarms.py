"""How often `treeline compare` calls two runs of the same program different.

`python -m benchmarks.compare_false_alarms [--scene F] [--size 96x54] [--frames 12] [--pairs 50]
[--interleaved] [--out F.json]`

Measures the frame twice a pair, each time with a frame object of its own and one after the other,
as two reports do, and compares them at the command's defaults. Every regression and improvement is
a false alarm. Then each frame of the second run is taken as 5% slower, and `planted_found` counts
the pairs in which the frame's total is called so. Both runs are in one process: what differs
between processes (where memory lies, which core) is not in it. `--interleaved` takes every other
frame of one run of twice the length for the second run: what the machine does meanwhile meets both,
so that the statistics alone are tried; without it, a machine that others use is tried, too.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.record import make_context, put_out
from bvh.build import BuildOptions
from engine.gpu.device import open_device
from passes.gpu_scene import GpuScene
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import prepare
from treeline.cli.console import Steps
from treeline.cli.options import parse_size
from treeline.compare import FRAME, Series, compare
from treeline.measure import MeasuredFrame, measure_size
from treeline.report import frame_rows
from treeline.scenes import load
from treeline.two_samples import F64

THRESHOLD, FLOOR = 0.05, 0.01  # the command's defaults
PLANTED = 1.05
WARMUP = 2


def series(name: str, rows: dict[str, F64]) -> Series:
    return Series(Path(name), {}, rows)


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the hall.")] = None,
    size: str = "96x54",
    frames: Annotated[int, typer.Option(min=2)] = 12,
    pairs: Annotated[int, typer.Option(min=1)] = 50,
    interleaved: bool = False,
    out: Path | None = None,
) -> None:
    device = open_device()
    loaded = load(scene)
    prepared = prepare(loaded, BuildOptions())
    on_gpu = GpuScene(device, prepared)
    width, height = parse_size(size)

    def make_frame(width: int, height: int, count: bool) -> MeasuredFrame:
        return HybridFrame(device, prepared, FrameOptions(width, height, count=count), on_gpu)

    def measured(frames: int = frames) -> dict[str, F64]:
        run = measure_size(make_frame, width, height, frames, WARMUP, Steps(None, quiet=True))
        rows = {row["name"]: np.array(row["samples"]) for row in frame_rows(run)}
        return {name: times for name, times in rows.items() if times.min() > 0}

    measured()  # whose pipelines are compiled, and which is compared with nothing
    verdicts: Counter[str] = Counter()
    alarms: list[dict[str, Any]] = []
    found = 0
    ratios = []
    for pair in range(pairs):
        if interleaved:
            both = measured(2 * frames)
            a, b = ({name: times[start::2] for name, times in both.items()} for start in (0, 1))
        else:
            a, b = measured(), measured()
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
            **make_context(device),
            "scene": "hall" if scene is None else scene.name,
            "scene_sha256": loaded.sha256,
            "width": width,
            "height": height,
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
        "frame_ratios": [round(r, 4) for r in sorted(ratios)],
    }
    put_out(record, out)


if __name__ == "__main__":
    typer.run(main)
