"""The report's rows about objects as lines of tables, for the terminal and the page alike."""

from collections.abc import Sequence
from typing import Any

from treeline.report_row import Row, ratio

# Field of an object's row -> what tables call it; the terminal is narrow.
TERMINAL_FIELDS = {
    "nodes": "nodes",
    "triangle_tests": "tri tests",
    "hits": "hits",
    "any_hits": "any-hit",
    "rejected": "rejected",
}
PAGE_FIELDS = {
    "instance_hits": "entered",
    "nodes": "nodes",
    "box_tests": "box tests",
    "box_hits": "box hits",
    "triangle_tests": "triangle tests",
    "triangle_hits": "candidates",
    "any_hits": "any-hit calls",
    "alpha_samples": "alpha samples",
    "rejected": "rejected",
    "hits": "hits",
}

Line = tuple[Any, ...]


def object_lines(rows: Sequence[Row], fields: Sequence[str], most: int) -> list[Line]:
    """(object, ray type, share of the type's nodes in percent, *fields, estimated ms), most nodes
    first. What does not fit into `most` lines is summed in a last one, which says so; its share is
    of the nodes of all types."""
    found = sorted(rows, key=lambda row: -(row["nodes"] or 0))
    if len(found) <= most + 1:
        return [_line(row, fields) for row in found]
    rest = found[most:]
    nodes = sum(row["nodes"] or 0 for row in rows)
    counts = [sum(row[field] or 0 for row in rest) for field in fields]
    share = ratio(100 * sum(row["nodes"] or 0 for row in rest), nodes)
    times = [row["real_time"] for row in rest if row["real_time"] is not None]
    summed = (f"{len(rest):,} more, summed", "all", share, *counts, sum(times) if times else None)
    return [*(_line(row, fields) for row in found[:most]), summed]


def _line(row: Row, fields: Sequence[str]) -> Line:
    name, _, ray_type = row["name"].removeprefix("object/").rpartition("/")
    share = row["nodes_share"]
    percent = None if share is None else 100 * share
    return (name, ray_type, percent, *(row[field] for field in fields), row["real_time"])


UPDATE_COLUMNS = (
    "deforming",
    "last",
    "why",
    "ms",
    "builds",
    "refits since",
    "SAH built",
    "SAH",
    "visits built",
    "visits",
)


def update_lines(rows: Sequence[Row]) -> list[Line]:
    """In the order of UPDATE_COLUMNS."""
    return [
        (
            row["name"].removeprefix("update/"),
            row["action"],
            why(row),
            "not separate" if row["pass_shared_by"] > 1 else row["real_time"],
            row["builds"],
            row["refits_since_build"],
            row["sah_built"],
            row["sah"],
            row["visits_built"],
            row["visits"],
        )
        for row in rows
    ]


def why(row: Row) -> str:
    """The reason of an object's last update with the number that decided it."""
    text = str(row["reason"])
    if row["value"] is not None:
        text += f" {row['value']:.4g}"
    return text if row["limit"] is None else f"{text}, limit {row['limit']:.4g}"


HIT_COLUMNS = (
    "hits of",
    "geometry",
    "material",
    "objects",
    "coarse records",
    "coarse bytes",
    "fine records",
    "fine bytes",
    "hits",
)


def hit_lines(rows: Sequence[Row]) -> list[Line]:
    """The classes of the hit table that have records, in the order of HIT_COLUMNS, with a sum for
    each ray type of several."""
    lines: list[Line] = []
    classes = [row for row in rows if row["name"].count("/") == 3]
    fields = ("objects", "coarse_records", "coarse_bytes", "fine_records", "fine_bytes", "hits")
    for ray_type in dict.fromkeys(row["name"].split("/")[1] for row in classes):
        mine = [row for row in classes if row["name"].split("/")[1] == ray_type]
        lines += [
            (*row["name"].split("/")[1:], *(row[field] for field in fields))
            for row in mine
            if row["fine_records"]
        ]
        if len(mine) > 1:
            known = mine[0]["hits"] is not None
            sums = [sum(row[field] for row in mine) for field in fields[:-1]]
            hits = sum(row["hits"] for row in mine) if known else None
            lines.append((ray_type, "all", "", *sums, hits))
    return lines


def touched_sentence(rows: Sequence[Row]) -> str:
    """What neighbouring hits touch, one sentence a ray type; none where nothing was counted."""
    said = []
    for row in rows:
        if "materials_per_workgroup" in row and row["materials_per_workgroup"] is not None:
            parts = [
                f"the hits of a {lanes} touch {row[f'classes_per_{lanes}']:.1f} classes and "
                f"{row[f'materials_per_{lanes}']:.1f} materials (coarse) or "
                f"{row[f'objects_per_{lanes}']:.1f} records of objects (fine)"
                for lanes in ("subgroup", "workgroup")
            ]
            said.append(f"{row['name'].removeprefix('hit_table/')}: {'; '.join(parts)}.")
    return " ".join(said)
