"""Pastes tables made from committed records into README.md, between their markers.

`python -m benchmarks.readme_tables` rewrites the file, and docs/quality.md with its curves;
tests/benchmarks/test_readme_tables.py fails where they and the records disagree.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.committed_records import RECORDS, ROOT, Record, ms, read, short_adapter
from benchmarks.quality_tables import readme_table, write_page

# Mrays/s of other kernels on the same card, rays of the same kinds on the kitchen (not the same
# rays): the best of tinybvh, cuBQL, OptiX without RT cores, Warp and HIPRT for each kind.
BEST_PEER = {"primary": 5256, "mirror": 4031, "diffuse": 2427, "shadow": 6709}


def rows_of(record: Record) -> dict[str, Any]:
    return {row["name"]: row for row in record["benchmarks"]}


def frame_table() -> str:
    """What a frame costs, by scene."""
    names = (
        "report-hall-h200",
        "report-kitchen-h200",
        "report-hall-frame-h200",
        "report-kitchen-frame-h200",
        "report-hall-llvmpipe",
    )
    records = [read(name) for name in names if (RECORDS / f"{name}.json").exists()]
    contexts = [record["context"] for record in records]
    columns = [rows_of(record) for record in records]

    def line(label: str, row: str, field: str, form: Callable[[float], str]) -> str:
        return f"| {label} | " + " | ".join(form(rows[row][field]) for rows in columns) + " |"

    head = [
        f"{c['scene']}, {c['width']}x{c['height']}, {short_adapter(c['adapter'])}" for c in contexts
    ]
    lines = [
        "| | " + " | ".join(head) + " |",
        "| --- |" + " ---: |" * len(head),
        "| triangles | " + " | ".join(f"{c['triangles']:,}" for c in contexts) + " |",
        "| frame, ms (without the G-buffer) | " + " | ".join(map(frame_ms, columns)) + " |",
        line("G-buffer raster, ms", "pass/gbuffer/raster", "real_time", ms),
    ]
    # Those that every one of the frames traced.
    shared = [row for row in columns[0] if all(row in rows for rows in columns)]
    for row in shared:
        kind, _, ray = row.partition("/")
        if kind != "ray":
            continue
        lines += [
            line(f"{ray} rays", row, "rays", "{:,}".format),
            line(f"{ray} traverse, ms", row, "real_time", ms),
            line(f"nodes a {ray} ray", row, "nodes_per_ray", "{:.1f}".format),
        ]
    places = (
        f"{short_adapter(c['adapter'])}: {c['driver']}, {c['timing_source']}, commit {c['commit']}"
        for c in contexts
    )
    stated = "; ".join(dict.fromkeys(places))
    moving = "; ".join(
        f"{c['scene']} {ms(passes_ms(rows, 'update'))} ms"
        for c, rows in zip(contexts, columns, strict=True)
        if c["scene"].endswith(".toml")
    )
    return "\n".join(lines) + f"\n\nMedians. Updates of what moves: {moving}. {stated}.\n"


def passes_ms(rows: dict[str, Any], part: str) -> float:
    """Time of the passes of one part of the frame."""
    return sum(row["real_time"] for name, row in rows.items() if name.startswith(f"pass/{part}/"))


def frame_ms(rows: dict[str, Any]) -> str:
    whole = float(rows["frame/total"]["real_time"])
    return f"{ms(whole)} ({ms(whole - passes_ms(rows, 'gbuffer'))})"


def trace_table() -> str:
    """Mrays/s of the kitchen's ray sets: the frame's kernel, its alternatives, the best peer."""
    record = read("trace-kitchen-h200")
    context, rows = record["context"], rows_of(record)
    kinds = KINDS
    variants = ("sorted", "unsorted", "while-while", "through the TLAS")
    lines = ["| kernel | " + " | ".join(kinds) + " |", "| --- |" + " ---: |" * len(kinds)]
    for variant in variants:
        cells = [f"{rows[f'trace/{kind}/{variant}']['mrays_per_s']:,.0f}" for kind in kinds]
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    peers = [f"{BEST_PEER[kind]:,}" for kind in kinds]
    lines.append("| best peer measured on this card | " + " | ".join(peers) + " |")
    return (
        "\n".join(lines)
        + f"\n\n{context['adapter']}, driver {context['driver']}, commit {context['commit']}, "
        f"{context['triangles']:,} triangles, one group, FP32 nodes, pairs; 1920x1080 rays, median "
        f"of {context['repeats']} interleaved dispatches. Shadow is any-hit.\n"
    )


KINDS = ("primary", "mirror", "diffuse", "shadow")


def build_table() -> str:
    """Builders over the kitchen: time of a build, what came of it, what it costs rays."""
    record, by_cpu = read("build-kitchen-h200"), read("build-kitchen-llvmpipe")
    part, context = record["scenes"][0], record["context"]
    other = {row["case"]: row for row in by_cpu["scenes"][0]["builds"]}
    work = {(row["kind"], row["case"]): row for row in part["rays"]}
    lines = [
        "| builder | ms, H200 | ms, llvmpipe | SAH | fill | B/triangle | nodes a ray "
        "| primary | mirror | diffuse | shadow |",
        "| --- |" + " ---: |" * 10,
    ]
    for row in part["builds"]:
        case = row["case"]
        rays = [work[kind, case] for kind in KINDS]
        there = ms(other[case]["ms"]["median"]) if case in other else "-"
        cells = [
            ms(row["ms"]["median"]),
            there,
            f"{row['sah']:.1f}",
            f"{row['fill']:.2f}",
            f"{row['bytes_per_triangle']:.0f}",
            f"{sum(r['nodes'] for r in rays) / len(rays):.1f}",
            *(f"{r['mrays_per_s']['median']:,.0f}" for r in rays),
        ]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return (
        "\n".join(lines)
        + f"\n\n{part['given_triangles']:,} triangles as one BLAS, from vertices to guest bytes; "
        f"{part['builds'][0]['options']['nodes'].upper()} nodes, pairs, parent links counted in. "
        f"{context['adapter']}, driver "
        f"{context['driver']}, commit {context['commit']}, timestamps, median of "
        f"{context['repeats']} interleaved builds; llvmpipe by the wall clock, commit "
        f"{by_cpu['context']['commit']}. Columns on the right are Mrays/s. `+30`: rounds of "
        "reinsertion; `cpu:`: built by NumPy, with the best pairs.\n"
    )


def update_table() -> str:
    """What moves: refit, TLAS, small BLASes."""
    refit, moving = read("refit-kitchen-h200"), read("build-instances-h200")
    small, context = moving["small_blas"], moving["context"]
    tlas = ", ".join(
        f"{int(count):,} instances {row['whole_ms']['median']:.2f}"
        for count, row in moving["tlas"].items()
    )
    return (
        f"What moves, ms in one pass: refit of {refit['triangles']:,} triangles "
        f"{refit['times']['whole_ms']['median']:.2f}; {small['meshes']} BLASes of "
        f"{small['triangles_each']} triangles {small['whole_ms']['median']:.2f}; TLAS of {tlas}. "
        f"{context['adapter']}, commit {context['commit']}, timestamps, medians of "
        f"{moving['repeats']}.\n"
    )


TABLES: dict[str, Callable[[], str]] = {
    "quality": readme_table,
    "frame": frame_table,
    "trace": trace_table,
    "build": build_table,
    "update": update_table,
}


def paste(text: str) -> str:
    """`text` with every table between its markers made anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
        before, found, rest = text.partition(begin)
        old, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"README.md has no markers for the table '{name}'")
        text = before + begin + table() + end + after
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(paste(readme.read_text(encoding="utf-8")), encoding="utf-8")
    write_page()
