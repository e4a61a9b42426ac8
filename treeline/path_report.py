"""A report's rows of a camera path: what the frames cost along it, and each frame's own row."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from treeline.cost_model import is_traversal_of, is_update
from treeline.playback import PathFrame
from treeline.report import Row, add, make_row, ratio, timed_row
from treeline.report_context import plain
from treeline.report_reuse import REUSED


def is_visibility(name: str) -> bool:
    """Whether a pass belongs to the G-buffer."""
    return name.startswith("gbuffer/")


def path_rows(frames: Sequence[PathFrame]) -> list[Row]:
    """`path/total` and `path/pass/NAME`: the distribution over the path's frames; then a row
    `path/frame/NUMBER` for each."""
    rows = [_spread("path/total", [frame.timed.frame_total_ms for frame in frames])]
    for name in frames[0].timed.passes:
        row = _spread(f"path/pass/{name}", [frame.timed.passes[name] for frame in frames])
        if reused := sum(name in frame.timed.reused for frame in frames):
            add(row, "timed", **{REUSED: reused})
        rows.append(row)
    rows += [_frame_row(number, frame) for number, frame in enumerate(frames)]
    return [plain(row) for row in rows]


def _spread(name: str, times: Sequence[float]) -> Row:
    row = timed_row(name, times)
    low, high = np.percentile(times, (5, 100)).tolist()
    add(row, "timed", real_time_p5=low, real_time_max=high)
    return row


def _frame_row(number: int, frame: PathFrame) -> Row:
    timed, counted = frame.timed, frame.counted

    def spent(belongs: Callable[[str], bool]) -> float:
        return sum(ms for name, ms in timed.passes.items() if belongs(name))

    row = make_row(f"path/frame/{number:04d}", 1, timed.frame_total_ms, cpu_time=timed.cpu_ms)
    row["run"] = {"real_time": "timed", "cpu_time": "timed"}
    add(
        row,
        "timed",
        path_seconds=frame.offset,
        valid=bool(timed.valid and counted.valid),
        gbuffer_ms=spent(is_visibility),
        update_ms=spent(is_update),
        history_lost=timed.history_lost,
    )
    for ray_type, rays in timed.rays.items():
        traverse = spent(partial(is_traversal_of, ray_type))
        add(row, "timed", **{f"{ray_type}_rays": rays.rays, f"{ray_type}_ms": traverse})
        nodes: Any = counted.rays[ray_type].nodes
        add(row, "counted", **{f"{ray_type}_nodes_per_ray": ratio(nodes, rays.rays)})
    return row
