"""What a frame may cost, line by line: `reflection=2.1,shadow=1.0,update=0.5` in milliseconds, or
of a ray type in rays, `reflection=300krays`.

A line in milliseconds is the passes that have its name in their path ("shadow": rays/shadow,
traverse/shadow/0 and so on; "traverse": all traversals), or a whole pass by its own name; "frame"
is all of it and what lies between. It is compared with the median of the timed frames.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.rays import frame_rays
from passes.twins.frame import cpu_passes
from treeline.measure import SizeRun, median
from treeline.report_row import Row, add, make_row, ratio

FRAME, UPDATE = "frame", "update"
_LIMIT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:(ms)|([kM]?)rays)?")
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000}


@dataclass(frozen=True, slots=True)
class Budget:
    """One line: `limit` is in `unit`, "ms" or "rays"."""

    name: str
    limit: float
    unit: str = "ms"

    def __str__(self) -> str:
        limit = f"{self.limit:g} ms" if self.unit == "ms" else f"{self.limit:,.0f} rays"
        return f"{self.name} {limit}"


def parse_budgets(text: str) -> tuple[Budget, ...]:
    """As the command line writes them. UserError for what is no budget, or said twice."""
    found: list[Budget] = []
    for part in text.split(","):
        name, _, limit = (piece.strip() for piece in part.partition("="))
        match = _LIMIT.fullmatch(limit)
        if not name or match is None or not float(match[1]) > 0:
            raise UserError(
                f"a budget is NAME=MS or TYPE=RAYS, such as reflection=2.1 or shadow=300krays, not "
                f"'{part.strip()}'"
            )
        if name in [budget.name for budget in found]:
            raise UserError(f"two budgets for {name}")
        if match[3] is None:
            found.append(Budget(name, float(match[1])))
        else:
            found.append(Budget(name, float(match[1]) * _FACTORS[match[3]], "rays"))
    return tuple(found)


def check_budgets(budgets: Sequence[Budget], options: FrameOptions) -> None:
    """UserError for a line that a frame of these options does not have."""
    ray_types = [ray.name for ray in frame_rays(options)]
    passes = [item.name for item in cpu_passes(options, True)]
    for budget in budgets:
        if budget.unit == "rays":
            if budget.name not in ray_types:
                there = ", ".join(ray_types)
                raise UserError(f"no rays are named '{budget.name}'; there are {there}")
        elif budget.name in ray_types and options.passes == "mixed":
            raise UserError(
                f"{budget.name} rays have no time of their own with --passes mixed: budget "
                f"traverse, or {budget.name} in rays"
            )
        elif budget.name not in budget_names(passes) and budget.name not in passes:
            there = ", ".join(budget_names(passes))
            raise UserError(f"no part of the frame is named '{budget.name}'; there are {there}")


def budget_names(passes: Sequence[str]) -> tuple[str, ...]:
    """The lines that a frame of these passes has, single passes left out. Updates take nothing
    where nothing moves."""
    parts = [part for name in passes for part in name.split("/") if not part.isdecimal()]
    return tuple(dict.fromkeys((FRAME, UPDATE, *parts)))


def belongs(budget: Budget, name: str) -> bool:
    """Whether a pass is in a line."""
    return budget.name in (FRAME, name) or budget.name in name.split("/")


def median_spent(budget: Budget, frames: Sequence[FrameStats]) -> float | None:
    """In the budget's unit, over frames of one view; of rays the last frame's. None where nobody
    measured."""
    if not frames:
        return None
    if budget.unit == "rays":
        sent = frames[-1].rays.get(budget.name)  # a viewer's option may have left the type out
        return 0.0 if sent is None else float(sent.rays)
    if budget.name == FRAME:
        used = median([stats.frame_total_ms for stats in frames])
    else:
        used = median(
            [
                sum(ms for name, ms in stats.passes.items() if belongs(budget, name))
                for stats in frames
            ]
        )
    return used if math.isfinite(used) else None


def budget_rows(budgets: Sequence[Budget], run: SizeRun) -> list[Row]:
    """A row a line: what was spent (`real_time`, or of rays `rays`), the limit, whether it is
    over, and which part of the limit is used."""
    rows = []
    for budget in budgets:
        used = median_spent(budget, run.frames)
        in_ms = budget.unit == "ms"
        took = math.nan if used is None else used
        row = make_row(f"budget/{budget.name}", len(run.frames), took if in_ms else 0.0)
        row["run"] = {"real_time": "timed"} if in_ms else {}
        row["unit"] = budget.unit
        add(row, "timed", spent=used, limit=budget.limit, used=ratio(used, budget.limit))
        add(row, "timed", over=used is not None and used > budget.limit)
        rows.append(row)
    return rows


BUDGET_COLUMNS = ("budget", "spent", "limit", "unit", "% used", "")


def budget_lines(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """In the order of BUDGET_COLUMNS."""
    return [
        (
            row["name"].removeprefix("budget/"),
            row["spent"],
            row["limit"],
            row["unit"],
            None if row["used"] is None else 100 * row["used"],
            verdict(row),
        )
        for row in rows
    ]


def verdict(row: Row) -> str:
    """Over, under, or not measured: an adapter may have no timer."""
    if row["spent"] is None:
        return "not measured"
    return "OVER" if row["over"] else "under"


def over_sentence(rows: Sequence[Row]) -> str | None:
    """What is over, in one line; None where nothing is."""
    over = [row for row in rows if row["over"]]
    if not over:
        return None
    parts = (
        f"{row['name'].removeprefix('budget/')} {row['spent']:,.4g} of {row['limit']:,g} "
        f"{row['unit']}"
        for row in over
    )
    return f"over budget: {', '.join(parts)}"


def plot_lines(budgets: Sequence[Budget]) -> Mapping[str, float]:
    """Label -> milliseconds, for plots of times."""
    return {str(budget): budget.limit for budget in budgets if budget.unit == "ms"}
