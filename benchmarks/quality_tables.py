"""Records of `treeline curve` as tables for people: each option with its ms, rays and error.

`python -m benchmarks.quality_tables` writes docs/quality.md, every variant of the records there are
in benchmarks/records, an adapter a table, and draws each record's curve beside it; a few variants
stand in the README (`IN_README`).
"""

from collections.abc import Sequence
from typing import Any

from benchmarks.committed_records import RECORDS, ROOT, Record, ms, read, short_adapter
from treeline.quality_picture import draw_curve

PAGE = ROOT / "docs" / "quality.md"
IN_README = (
    "base",
    "4 samples",
    "reflection scale half",
    "history 16",
    "denoiser 3, history 16",
    "no rays",
)
TEXT = """# What each option costs, and what it does to the picture

Each variant is the frame as it comes without options but for what its name says. Error is against
the mean of many frames with everything full: rays up to every roughness, four bounces, full
resolution, neither history nor denoiser. Relative MSE is of linear radiance, and one lamp seen
in a mirror outweighs all the rest of it, so mirrors send a ray a pixel at half and quarter scale,
too (`--narrow-lobes shared`: they do not). It is large where few pixels are far off: with two
bounces and more for one that a lamp reaches by way of both, and at 1280x720 for the lamp's outline
in the hall's sphere, which bends what it mirrors: with history while moving, and with half scale
before such pixels sent their own rays (commit 9944ca0; by llvmpipe 2.8 became 0.03 there). FLIP
(of what a screen shows, 0 to 1) says little of them.
Frames that remember light are the 16th of a still camera's, or with "moving" of one that walks and
turns until it stands there. "no rays" is `--reflections screen --shadows map`, of a still view: its
maps and its probe are kept from the frames before.

Side by side, larger (288x162, one picture each):
[the hall](quality-hall-sheet.jpg), [the kitchen frame](quality-kitchen-frame-sheet.jpg).

"""

# By scene: the record whose rays and errors are shown, then those that only add times.
NAMES = (
    ("curve-hall-h200", "curve-hall-llvmpipe"),
    ("curve-kitchen-frame-h200", "curve-kitchen-frame-llvmpipe"),
)


def quality_table(groups: Sequence[Sequence[Record]], only: Sequence[str] = ()) -> str:
    """Of records grouped by scene, the first of each group being the one whose rays and errors are
    shown; an empty text without records. Rows in the first record's order, then what only others
    have."""
    groups = [records for records in groups if records]
    if not groups:
        return ""
    head, units = [""], ["---"]
    for records in groups:
        scene = records[0]["context"]["scene"]
        head += [f"{scene}: ms, {short_adapter(r['context']['adapter'])}" for r in records]
        head += ["rays", "relative MSE", "FLIP"]
        units += ["---:"] * (len(records) + 3)
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(units) + " |"]
    every = (row["name"] for records in groups for r in records for row in r["variants"])
    for name in dict.fromkeys(every):
        if not only or name in only:
            cells = [cell for records in groups for cell in _cells(records, name)]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n" + _stated(groups) + "\n"


def _cells(records: Sequence[Record], name: str) -> list[str]:
    found = [{row["name"]: row for row in record["variants"]}.get(name) for record in records]
    times = ["-" if row is None else ms(row["ms"]["median"]) for row in found]
    first = found[0]
    if first is None:
        return [*times, "-", "-", "-"]
    return [*times, f"{sum(first['rays'].values()):,}", _error(first), _flip(first)]


def _error(row: dict[str, Any]) -> str:
    return f"{row['relative_mse']:.3g}"


def _flip(row: dict[str, Any]) -> str:
    return "-" if row["flip"] is None else f"{row['flip']:.3f}"


def _stated(groups: Sequence[Sequence[Record]]) -> str:
    """Where the numbers come from."""
    parts = []
    for records in groups:
        for record in records:
            context = record["context"]
            parts.append(
                f"{context['scene']}, {short_adapter(context['adapter'])}: "
                f"{record['width']}x{record['height']}, reference of "
                f"{record['reference']['samples']:,} samples, {context['timing_source']}, commit "
                f"{context['commit']}"
            )
    return "Rays and errors are the first adapter's. " + "; ".join(parts) + "."


def names() -> list[str]:
    """The records of NAMES that there are."""
    return [n for scene in NAMES for n in scene if (RECORDS / f"{n}.json").exists()]


def committed(adapter: str = "") -> list[list[Record]]:
    """By scene: all of them, or an adapter's."""
    there = names()
    groups = [[read(name) for name in scene if name in there] for scene in NAMES]
    return [[r for r in group if not adapter or _adapter(r) == adapter] for group in groups]


def _adapter(record: Record) -> str:
    return short_adapter(record["context"]["adapter"])


def page() -> str:
    """docs/quality.md."""
    adapters = {name: _adapter(read(name)) for name in names()}
    parts = []
    for adapter in dict.fromkeys(adapters.values()):
        of_it = [name for name, its in adapters.items() if its == adapter]
        curves = " ".join(f"![{name}: error over time]({name}.png)" for name in of_it)
        records = committed(adapter)
        parts.append(f"## {adapter}\n\n{curves}\n\n{quality_table(records)}{_left_out(records)}")
    return TEXT + "\n".join(parts)


def _left_out(groups: Sequence[Sequence[Record]]) -> str:
    """What there was no time for."""
    every = (name for records in groups for r in records for name in r["left_out"])
    named = "; ".join(dict.fromkeys(every))
    return f"\nNot measured here: {named}.\n" if named else ""


def readme_table() -> str:
    """The rows of the README."""
    return quality_table(committed(), IN_README)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    for name in names():
        draw_curve(PAGE.parent / f"{name}.png", read(name))
