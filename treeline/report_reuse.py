"""Passes whose results were left as an earlier frame wrote them, in a report's words: shadow maps
and probes of what stands still take no time in the frames after the first, which reports, ablations
and curves say with what drawing them takes."""

from collections.abc import Mapping
from typing import Any

REUSED = "reused"  # field of a pass's row: how many of the timed frames left it out
REDRAWN = "redrawn_ms"  # beside it, and of frame/total: of one frame that left nothing out


def pass_label(row: dict[str, Any]) -> str:
    """A pass row's name, or frame row's, with what a time of nothing means."""
    name: str = row["name"].removeprefix("pass/")
    return f"{name} (reused)" if is_reused(row) else name


def path_label(row: dict[str, Any]) -> str:
    """A name of a camera path's rows, and in how many of its frames the pass was left out."""
    name: str = row["name"].removeprefix("path/").removeprefix("pass/")
    reused = row.get(REUSED, 0)
    return f"{name} (reused {reused} of {row['iterations']})" if reused else name


def is_reused(row: dict[str, Any]) -> bool:
    """Whether most timed frames left the pass out."""
    return bool(2 * row.get(REUSED, 0) > row["iterations"])


def reused_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [row for row in report["benchmarks"] if row["name"].startswith("pass/")]
    return [row for row in rows if is_reused(row)]


def reused_sentence(report: dict[str, Any]) -> str:
    """ "" where every frame ran every pass."""
    rows = reused_rows(report)
    if not rows:
        return ""
    total = next(row for row in report["benchmarks"] if row["name"] == "frame/total")
    return (
        f"{len(rows)} passes were reused: what they wrote in an earlier frame stood. A frame that "
        f"runs them takes {total[REDRAWN]:,.1f} ms instead of {total['real_time']:,.1f}, "
        f"{sum(row[REDRAWN] for row in rows):,.1f} of them there."
    )


def kept_facts(passes: int, steady_ms: float, redrawn_ms: float) -> dict[str, Any]:
    """Of a frame that is timed beside others and reuses so many passes, by `kept_sentence`."""
    return {"passes": passes, "steady_ms": steady_ms, REDRAWN: redrawn_ms}


def kept_sentence(name: str, facts: Mapping[str, Any]) -> str:
    return (
        f"{name}: {facts['passes']} passes were reused, {facts['steady_ms']:,.1f} ms; a frame that "
        f"runs them takes {facts[REDRAWN]:,.1f} ms"
    )
