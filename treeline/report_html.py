"""report.html: one page that needs nothing else: picture, bar of the frame, heat maps, tables.

Pictures are data URIs, the bar is inline SVG; the page follows the reader's light or dark mode.
"""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treeline.error_page import error_section
from treeline.object_tables import (
    PAGE_FIELDS,
    object_lines,
)
from treeline.pictures import HeatMap, heat_map, heat_map_uri, palette, picture_uri
from treeline.ray_measures import labels
from treeline.report_found import FOUND_ROW, found_sentence
from treeline.report_reuse import pass_label, reused_sentence
from treeline.report_sections import (
    budget_section,
    hit_section,
    html_table,
    path_section,
    spread_section,
    update_section,
)
from treeline.report_table import build_label, find, number, timing_label

# Neighbours in the bar differ in hue and lightness (Tableau 10).
PASS_COLOURS = (
    "#4e79a7 #f28e2b #59a14f #e15759 #76b7b2 #edc948 #b07aa1 #ff9da7 #9c755f #bab0ac".split()
)

RAY_LABELS = {
    "real_time": "traverse ms, median",
    "real_time_p95": "traverse ms, p95",
    **labels(),
}
STYLE = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
OBJECTS_SHOWN = 400  # times ray types; of the rest the page has sums, report.json all


def report_html(
    report: dict[str, Any],
    image: NDArray[np.uint8],
    nodes: dict[str, NDArray[Any]],
    errors: NDArray[np.uint8] | None = None,
) -> str:
    """The page; `nodes` holds the nodes a pixel [h, w] of each ray type, from the counted run,
    `errors` the pictures of treeline.report_errors where there is a reference."""
    context = report["context"]
    maps = {ray_type: heat_map(counts) for ray_type, counts in nodes.items()}
    title = f"Treeline: {context['scene']}"
    warning = (
        ""
        if context["valid"]
        else '<p class="bad">INVALID: records were dropped; picture and numbers miss rays.</p>'
    )
    size = f"{context['width']}&#215;{context['height']}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>
<h1>{escape(str(context["scene"]))}</h1>
<p class="soft">{context["triangles"]:,} triangles, {size}, {context["frames"]} timed frames on
{escape(context["adapter"])}, {escape(context["date"])}</p>
<p class="timing">{escape(timing_label(context))}</p>{warning}
{facts(report)}
<figure><img alt="The rendered frame" src="{picture_uri(image)}">
<figcaption>The mean of several frames; a timed frame is one sample a pixel.
frame.png beside this page is lossless.</figcaption></figure>
<h2>Where the frame goes</h2><div class="card">{frame_bar(report)}</div>
{budget_section(report)}{error_section(report, errors)}<h2>What each ray type costs</h2>
<div class="card">{ray_rows_table(report)}{found_lines(report)}</div>
{spread_section(report)}<h2>Node visits a pixel</h2>
<div class="maps">{"".join(map_card(t, m) for t, m in maps.items())}</div>
<h2>Passes</h2><div class="card">{pass_table(report)}</div>
{path_section(report)}<h2>Structures</h2><p class="soft">{escape(build_label(context))}</p>
<div class="card">{build_rows_table(report)}</div>
<h2>What each object costs</h2><div class="card">{object_table(report)}</div>
{update_section(report)}{hit_section(report)}
<h2>Cost model</h2><div class="card">{model_table(report)}</div>
<h2>Host</h2><div class="card">{host_table(report)}</div>
<h2>Context</h2><div class="card">{context_table(context)}</div>
</main></body></html>
"""


def facts(report: dict[str, Any]) -> str:
    """The few numbers to read first."""
    total = find(report, "frame/total")[0]
    cards = [(f"{number(total['real_time'])} ms", "frame, median")]
    for row in find(report, "ray/"):
        name = row["name"].removeprefix("ray/")
        cards.append((f"{number(row['mrays_per_s'])}", f"Mrays/s, {name}"))
        cards.append((f"{number(row['nodes_per_ray'], 1)}", f"nodes a {name} ray"))
    body = "".join(f"<div><b>{escape(v)}</b><span>{escape(t)}</span></div>" for v, t in cards)
    return f'<div class="facts">{body}</div>'


def frame_bar(report: dict[str, Any]) -> str:
    """The frame as one stacked bar of its passes, in order, with a key."""
    passes = [r for r in find(report, "pass/") if r["real_time"]]
    gaps = find(report, "frame/gaps")[0]["real_time"] or 0.0
    total = sum(r["real_time"] for r in passes) + gaps
    if not total:
        return '<p class="soft">The adapter offers no timestamps.</p>'
    bars, key, x = [], [], 0.0
    parts = [(r["name"].removeprefix("pass/"), r["real_time"]) for r in passes]
    for index, (name, ms) in enumerate([*parts, ("between passes", gaps)]):
        last = index == len(parts)
        fill = "#8884" if last else PASS_COLOURS[index % len(PASS_COLOURS)]
        width = 1000 * ms / total
        text = f"{name}: {ms:,.2f} ms ({100 * ms / total:.1f}%)"
        label = (
            f'<text x="{x + width / 2:.2f}" y="29" text-anchor="middle" font-size="13" '
            f'fill="#fff" pointer-events="none">{100 * ms / total:.0f}%</text>'
            if width > 40 and not last
            else ""
        )
        bars.append(
            f'<rect x="{x:.2f}" y="0" width="{max(width - 0.8, 0.2):.2f}" height="48" '
            f'fill="{fill}"><title>{escape(text)}</title></rect>{label}'
        )
        key.append(f'<span><i style="background:{fill}"></i>{escape(text)}</span>')
        x += width
    return (
        f'<svg viewBox="0 0 1000 48" width="100%" role="img" aria-label="Passes of the frame">'
        f"{''.join(bars)}</svg><div class='key'>{''.join(key)}</div>"
    )


def map_card(ray_type: str, heat: HeatMap) -> str:
    """One heat map with its palette and range."""
    stops = ", ".join("#" + bytes(c).hex() for c in palette(heat.palette_name)[::15])
    middle = (heat.low + heat.high) / 2
    return (
        f'<figure class="card"><img class="pixels" alt="Nodes visited by {escape(ray_type)} rays" '
        f'src="{heat_map_uri(heat)}"><div class="ramp" style="background:linear-gradient('
        f'90deg, {stops})"></div><div class="ends"><span>{heat.low:.0f}</span>'
        f"<span>{middle:.0f}</span><span>{heat.high:.0f}</span></div><figcaption>Box nodes that "
        f"the pixel's {escape(ray_type)} rays fetched; the brightest 0.1% are clamped, the most "
        f"is {heat.maximum:.0f}.</figcaption></figure>"
    )


def ray_rows_table(report: dict[str, Any]) -> str:
    """One column a ray type, one line a number, with the run that gave it."""
    types = find(report, "ray/")
    fields = [f for f in types[0]["run"] if f != "cpu_time"] if types else []
    rows = [
        (RAY_LABELS.get(f, f.replace("_", " ")), *(number(r[f]) for r in types), types[0]["run"][f])
        for f in fields
    ]
    names = [r["name"].removeprefix("ray/") for r in types]
    body = "".join(
        f"<tr><td>{escape(label)}</td>"
        + "".join(f"<td>{escape(value)}</td>" for value in values)
        + f'<td class="soft">{escape(run)}</td></tr>'
        for label, *values, run in rows
    )
    head = "".join(f"<th>{escape(c)}</th>" for c in ("", *names, "run"))
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        '<p class="soft">The timed and the counted run hit the same things: their hits have one '
        "hash. A counted run's times are never used.</p>"
    )


def found_lines(report: dict[str, Any]) -> str:
    """Where reflections were found, if they were looked for on the screen."""
    return "".join(f"<p>{escape(found_sentence(row))}</p>" for row in find(report, FOUND_ROW))


def pass_table(report: dict[str, Any]) -> str:
    rows = [
        (
            pass_label(r),
            number(r["real_time"], 3),
            number(r["real_time_p95"], 3),
            number(100 * r["share_of_frame"] if r.get("share_of_frame") is not None else None, 1),
        )
        for r in (*find(report, "pass/"), *find(report, "frame/"))
    ]
    table = html_table(("pass", "median ms", "p95 ms", "% of frame"), rows)
    sentence = reused_sentence(report)
    return table + (f'<p class="soft">{escape(sentence)}</p>' if sentence else "")


def build_rows_table(report: dict[str, Any]) -> str:
    fields = ("triangles", "builder", "bytes", "nodes_fp16", "nodes_fp32", "fill", "depth", "sah")
    rows = [
        (
            r["name"].removeprefix("build/"),
            *(number(r.get(f)) for f in fields),
            number(r["real_time"], 0),
        )
        for r in sorted(find(report, "build/"), key=lambda r: -r["bytes"])
    ]
    return html_table(("BLAS", *(f.replace("_", " ") for f in fields), "build ms"), rows)


def object_table(report: dict[str, Any]) -> str:
    lines = object_lines(find(report, "object/"), tuple(PAGE_FIELDS), OBJECTS_SHOWN)
    rows = [
        (name, ray_type, number(share, 1), *(number(value) for value in values))
        for name, ray_type, share, *values in lines
    ]
    columns = ("object", "ray type", "% of nodes", *PAGE_FIELDS.values(), "ms, estimated")
    return html_table(columns, rows) + (
        '<p class="soft">Instances of one mesh are one object. Over them and the TLAS counts add '
        "up to the ray type's. The time is an estimate: the traversal's by share of nodes.</p>"
    )


def model_table(report: dict[str, Any]) -> str:
    found = find(report, "model/frame")
    if not found:
        return '<p class="soft">Not fitted: that takes frames of other sizes.</p>'
    model = found[0]
    rows = [
        (field.replace("_", " "), number(model[field], 3))
        for field in model["run"]
        if field != "real_time"
    ]
    return html_table(("term", "ms (or ns)"), rows) + (
        f'<p class="soft">{escape(model["fit"])}.</p>'
    )


def host_table(report: dict[str, Any]) -> str:
    rows = [
        (field.replace("_", " "), number(r[field]))
        for r in find(report, "host/")
        for field in r["run"]
        if field not in ("real_time", "cpu_time", "real_time_p95")
    ]
    return html_table(("what", "value"), rows)


def context_table(context: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, dict):
            return "; ".join(f"{k} {text(v)}" for k, v in value.items())
        if isinstance(value, list):
            return "(" + ", ".join(text(v) for v in value) + ")" if value else "none"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    body = "".join(
        f'<tr><td>{escape(key)}</td><td class="text">{escape(text(value))}</td></tr>'
        for key, value in context.items()
    )
    return f"<table><tbody>{body}</tbody></table>"
