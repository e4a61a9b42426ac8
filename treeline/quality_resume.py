"""What an interrupted `treeline curve` measured, for one that goes on with it: `--resume`.

Rows of one table have to be of one program, adapter, scene and setting: what was measured by
another is refused, and so is what nobody knows to be the same (a modified checkout).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.gpu.errors import UserError
from treeline.quality_table import read_record

PARTIAL = "curve.json.partial"  # beside curve.json, until all is measured
RECORD = "curve.json"
_OFTEN_OTHER = ("date",)  # of a context
_RESULTS = ("variants", "left_out", "earlier")  # of a record; all else says what was measured, how


def earlier_record(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """What was measured so far, and where that stands: the partial record, else one that a run
    ended with. None: nothing to go on with. UserError for what is no record."""
    for name in (PARTIAL, RECORD):
        path = folder / name
        if path.exists():
            return path, read_record(path)
    return None


def rows_to_keep(
    path: Path, earlier: dict[str, Any], known: dict[str, Any], names: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """The rows of the record `earlier`, by variant. `known` is what the new record says beside its
    results, in JSON's types, `names` its variants. UserError, one line that begins with `path`,
    where they do not belong together."""
    commit = known["context"]["commit"]
    if commit == "unknown" or commit.endswith("-modified"):
        raise UserError(
            f"{path}: --resume needs a commit that says what ran; this one is '{commit}'"
        )
    other = _difference(
        {key: value for key, value in earlier.items() if key not in _RESULTS}, known
    )
    if other is not None:
        raise UserError(
            f"{path}: measured otherwise, --resume cannot go on with it: {other}; move it away to "
            "begin anew"
        )
    rows = {row["name"]: row for row in earlier["variants"]}
    if {*rows, *earlier["left_out"]} != set(names):
        raise UserError(
            f"{path}: measured other curves, --resume cannot go on with it; ask for the same --only"
        )
    return rows


def _difference(earlier: Any, now: Any, name: str = "") -> str | None:
    """The first value that differs, in words; None where all are equal."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        for key in {**earlier, **now}:
            if key not in _OFTEN_OTHER:
                found = _difference(earlier.get(key), now.get(key), f"{name}.{key}".strip("."))
                if found is not None:
                    return found
        return None
    return None if earlier == now else f"{name} was {_short(earlier)}, is {_short(now)}"


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else text[:37] + "..."
