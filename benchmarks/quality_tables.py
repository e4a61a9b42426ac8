"""Records of `treeline curve` as tables for people: each option with its ms, rays and error.

`python -m benchmarks.quality_tables` writes docs/quality.md, every variant of the records there are
in benchmarks/records, an adapter a table, and draws each record's curve beside it; a few variants
stand in the README (`IN_README`), whose command, `python -m benchmarks.readme_tables`, writes both.
What the page says of an adapter's numbers is made from its records, too.
"""

from collections.abc import Sequence
from typing import Any

from benchmarks.committed_records import RECORDS, ROOT, Record, ms, read, short_adapter
from treeline.quality_picture import draw_curve
from treeline.quality_variants import BASE

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
resolution, neither history nor denoiser. Relative MSE is of linear radiance; in brackets, where a
record has it, stands what it is without the worst 0.1% of pixels. A lamp that a few paths find, or
that is seen in a mirror, can outweigh all the rest of it, so mirrors send a ray a pixel at half and
quarter scale, too (`--narrow-lobes shared`: they do not). FLIP (of what a screen shows, 0 to 1)
says little of such pixels. Below each table stand its rows that are of that kind.
Frames that remember light are the 16th of a still camera's, or with "moving" of one that walks and
turns until it stands there. "no rays" is `--reflections screen --shadows map`, of a still view: its
maps and its probe are kept from the frames before.

Side by side, larger (288x162, one picture each):
[the hall](quality-hall-sheet.jpg), [the kitchen frame](quality-kitchen-frame-sheet.jpg).

"""

FEW = 10.0  # times the error of all other pixels, or the base's: few pixels make it
ALIKE = 1.25  # times the base's FLIP: the picture looks no worse

# What was mended after a commit whose records are still here; said below its tables.
MENDED_SINCE = {
    "9944ca0": (
        "Commit 9944ca0 is from before two mends of mirrors that bend, seen in the hall's sphere "
        "at this size by llvmpipe: with half scale they send their own rays (relative MSE 2.8 "
        "became 0.03), and with history while moving their image is looked for where it is (of a "
        "part of the picture around the sphere, 0.47 became 0.016)."
    )
}

Row = dict[str, Any]

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


def _error(row: Row) -> str:
    trimmed = row.get("trimmed_mse")  # records of before it lack it
    return f"{row['relative_mse']:.3g}" + ("" if trimmed is None else f" ({trimmed:.3g})")


def _flip(row: Row) -> str:
    return "-" if row["flip"] is None else f"{row['flip']:.3f}"


def _stated(groups: Sequence[Sequence[Record]]) -> str:
    """Where the numbers come from."""
    records = [record for group in groups for record in group]
    stated = "Rays and errors are the first adapter's. "
    if any("trimmed_mse" in row for record in records for row in record["variants"]):
        stated += "In brackets: without the worst 0.1% of pixels. "
    parts = []
    for record in records:
        context, runs = record["context"], len(record.get("earlier", ())) + 1
        parts.append(
            f"{_place(record)}: {record['width']}x{record['height']}, reference of "
            f"{record['reference']['samples']:,} samples, {context['timing_source']}, commit "
            f"{context['commit']}" + (f", measured in {runs} runs" if runs > 1 else "")
        )
    return stated + "; ".join(parts) + "."


def _place(record: Record) -> str:
    return f"{record['context']['scene']}, {_adapter(record)}"


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
        groups = committed(adapter)
        records = [record for group in groups for record in group]
        said = [*filter(None, map(few_pixels, records)), *filter(None, map(left_out, records))]
        said += mended_since(records)
        below = "".join(f"\n{sentence}\n" for sentence in said)
        parts.append(f"## {adapter}\n\n{curves}\n\n{quality_table(groups)}{below}")
    return TEXT + other_commits([read(name) for name in adapters]) + "\n".join(parts)


def few_pixels(record: Record) -> str:
    """The rows whose relative MSE is that of few pixels; empty for none. Without them it is a small
    part of it; where the record does not say, the picture looks as the base's does and it is far
    above that's."""
    rows = record["variants"]
    base = next(row for row in rows if row["name"] == BASE)
    found = [
        f"{row['name']} {_error(row)}"
        for row in rows
        if row["relative_mse"] > FEW * row.get("trimmed_mse", float("inf"))
        or ("trimmed_mse" not in row and _looks_like(row, base))
    ]
    if not found:
        return ""
    return f"{_place(record)}: few pixels make the relative MSE of {'; '.join(found)}."


def _looks_like(row: Row, base: Row) -> bool:
    if row["relative_mse"] <= FEW * base["relative_mse"] or None in (row["flip"], base["flip"]):
        return False
    return bool(row["flip"] <= ALIKE * base["flip"])


def left_out(record: Record) -> str:
    """What there was no time for; empty for nothing."""
    names = record["left_out"]
    every = len(names) + len(record["variants"])
    if not names:
        return ""
    return f"{_place(record)}: {len(names)} of {every} are not measured: {'; '.join(names)}."


def mended_since(records: Sequence[Record]) -> list[str]:
    """A sentence for each of their commits that has one."""
    commits = dict.fromkeys(record["context"]["commit"] for record in records)
    return [MENDED_SINCE[commit] for commit in commits if commit in MENDED_SINCE]


def other_commits(records: Sequence[Record]) -> str:
    """A warning where they are of several commits, else empty."""
    commits = {record["context"]["commit"] for record in records}
    if len(commits) < 2:
        return ""
    return (
        f"The records are of {len(commits)} commits, which stand below the tables: what changed\n"
        "between these may make numbers of one adapter and another differ, too.\n\n"
    )


def write_page() -> None:
    """docs/quality.md and the curves beside it."""
    PAGE.write_text(page(), encoding="utf-8")
    for name in names():
        draw_curve(PAGE.parent / f"{name}.png", read(name))


def readme_table() -> str:
    """The rows of the README."""
    return quality_table(committed(), IN_README)


if __name__ == "__main__":
    write_page()
