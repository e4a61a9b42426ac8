"""report.html: one page that needs nothing else: picture, bar of the frame, heat maps, tables.

Pictures are data URIs, the bar is inline SVG; the page follows the reader's light or dark mode.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treeline.pictures import HeatMap, heat_map, heat_map_uri, palette, picture_uri
from treeline.report_table import RAY_COLUMNS, find, number, timing_label

# Neighbours in the bar differ in hue and lightness (Tableau 10).
PASS_COLOURS = (
    "#4e79a7 #f28e2b #59a14f #e15759 #76b7b2 #edc948 #b07aa1 #ff9da7 #9c755f #bab0ac".split()
)

STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5d6677; --page: #f7f7f4;
  --card: #ffffff; --line: #dfe1e6; --accent: #b45309; --bad: #b91c1c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ee; --soft: #9aa3b2; --page: #14161b;
  --card: #1c1f26; --line: #31353f; --accent: #f0a04b; --bad: #f87171; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 34px 0 10px; }
p { margin: 6px 0; } .soft { color: var(--soft); } .bad { color: var(--bad); font-weight: 600; }
.timing { border-left: 3px solid var(--accent); padding: 2px 0 2px 10px; margin: 10px 0; }
figure { margin: 0; } img { width: 100%; height: auto; display: block; border-radius: 6px; }
.pixels { image-rendering: pixelated; }
figcaption { color: var(--soft); font-size: 13px; margin-top: 6px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 14px; overflow-x: auto; }
.maps { display: grid; grid-template-columns: repeat(auto-fit, minmax(380px, 1fr)); gap: 16px; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 18px 0; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 14px; }
.facts b { display: block; font-size: 21px; font-variant-numeric: tabular-nums; }
.facts span { color: var(--soft); font-size: 13px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { padding: 5px 10px; text-align: right; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } tr:last-child td { border-bottom: 0; }
th:first-child, td:first-child { text-align: left; }
td.text { text-align: left; white-space: normal; word-break: break-word; }
.key { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 13px; margin-top: 10px; }
.key i { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
  margin-right: 6px; }
.ramp { height: 12px; border-radius: 3px; margin-top: 8px; }
.ends { display: flex; justify-content: space-between; font-size: 12px; color: var(--soft);
  font-variant-numeric: tabular-nums; }
"""


def report_html(
    report: dict[str, Any], image: NDArray[np.uint8], nodes: dict[str, NDArray[Any]]
) -> str:
    """The page; `nodes` holds the nodes a pixel [h, w] of each ray type, from the counted run."""
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
<figcaption>The frame that was timed (frame.png beside this page is lossless).</figcaption></figure>
<h2>Where the frame goes</h2><div class="card">{frame_bar(report)}</div>
<h2>What each ray type costs</h2><div class="card">{ray_rows_table(report)}</div>
<h2>Node visits a pixel</h2>
<div class="maps">{"".join(map_card(t, m) for t, m in maps.items())}</div>
<h2>Passes</h2><div class="card">{pass_table(report)}</div>
<h2>Structures</h2><div class="card">{build_rows_table(report)}</div>
<h2>What each object costs</h2><div class="card">{object_table(report)}</div>
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
        cards.append((f"{number(row['mrays_per_s'], 1)}", f"Mrays/s, {name}"))
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


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def ray_rows_table(report: dict[str, Any]) -> str:
    extra = {
        "nodes_per_hit_ray": "nodes, hit",
        "nodes_per_miss_ray": "nodes, miss",
        "texture_fetches_per_hit": "fetches a hit",
        "payload_bytes": "record bytes",
    }
    columns = {**RAY_COLUMNS, **extra}
    rows = [
        (r["name"].removeprefix("ray/"), *(number(r[field]) for field in columns))
        for r in find(report, "ray/")
    ]
    return html_table(("ray type", *columns.values()), rows) + (
        '<p class="soft">Times and ray counts are from the timed run; nodes, tests and any-hit '
        "calls a ray from the counted run, whose hits have the same hash.</p>"
    )


def pass_table(report: dict[str, Any]) -> str:
    rows = [
        (r["name"], number(r["real_time"], 3), number(r["real_time_p95"], 3))
        for r in (*find(report, "pass/"), *find(report, "frame/"))
    ]
    return html_table(("pass", "median ms", "p95 ms"), rows)


def build_rows_table(report: dict[str, Any]) -> str:
    fields = ("triangles", "builder", "bytes", "nodes_fp16", "nodes_fp32", "fill", "depth", "sah")
    rows = [
        (
            r["name"].removeprefix("build/"),
            *(number(r.get(f)) for f in fields),
            number(r["real_time"], 0),
        )
        for r in find(report, "build/")
    ]
    return html_table(("BLAS", *(f.replace("_", " ") for f in fields), "build ms"), rows)


def object_table(report: dict[str, Any]) -> str:
    rows = []
    for r in sorted(find(report, "object/"), key=lambda r: -(r["nodes"] or 0)):
        name, _, ray_type = r["name"].removeprefix("object/").rpartition("/")
        share = None if r["nodes_share"] is None else 100 * r["nodes_share"]
        counts = (number(r[f]) for f in ("nodes", "triangle_tests", "any_hits"))
        rows.append((name, ray_type, *counts, number(share, 1), number(r["real_time"])))
    columns = ("object", "ray type", "nodes", "triangle tests", "any-hit calls", "% of nodes")
    return html_table((*columns, "ms, estimated"), rows) + (
        '<p class="soft">The time is an estimate: the traversal\'s by share of nodes.</p>'
    )


def model_table(report: dict[str, Any]) -> str:
    model = find(report, "model/frame")[0]
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
