"""`treeline ablate`: which cause a frame's cost has, from what it takes with one thing off."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from treeline.cli.console import emit_json, print_table
from treeline.cli.options import Common, with_common


@with_common
def ablate(
    common: Common,
    table: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="F.json",
            help="An ablation: base_ms, without_ms, half_resolution_ms.",
            show_default=False,
        ),
    ],
) -> None:
    """Rank the causes of a frame's cost from an ablation, and say what to measure next.

    F.json holds milliseconds: base_ms with everything on, and what it takes with one thing off:
    without_ms maps a switch to that, half_resolution_ms is with half the width and height of rays.
    Switches: characters, animation, refit, update; foliage, any_hit; builder, nodes, node_kind,
    leaf, reinsertion; hit_grouping, hit_sort; textures; ray_sort; a ray type (reflection, shadow,
    occlusion); half_resolution; or a cause by its own name (characters_update, ray_count,
    bvh_quality, foliage_any_hit, hit_table, hit_shading, divergence).

    A switch's effect is what it saves. Half the resolution leaves a quarter of the rays
    (half_resolution_ray_ratio, if it was another part), so ray_count's effect is what it saves
    divided by the part of the rays that was left out, 0.75; less what another cause makes each ray
    cost (any_hit, builder and the like, not foliage). A cause is primary from 25% of base_ms on,
    secondary from 5%, minor below that or within noise_ms.

    More keys (before_ms, noise_ms, switches with intervals, interactions): see
    treeline/ablation_table.py. The scene options are not used.
    """
    from treeline.ablation_table import read_table
    from treeline.verdict import verdict

    found = verdict(read_table(table))
    emit_json(found.facts(), common.json)
    if common.to_stdout:
        return
    title = f"{found.base_ms:g} ms"
    if found.before_ms is not None:
        title += f", {found.before_ms:g} before"
    shown = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    shown.add_column("cause", no_wrap=True)
    shown.add_column("rank", no_wrap=True)
    shown.add_column("effect, ms", justify="right", no_wrap=True)
    shown.add_column("% of it", justify="right")
    shown.add_column("evidence", overflow="fold")
    for f in found.findings:
        interval = ""
        if f.interval_ms is not None:
            interval = f" ({f.interval_ms[0]:.2f} .. {f.interval_ms[1]:.2f})"
        shown.add_row(
            f.cause, f.rank, f"{f.effect_ms:.2f}{interval}", f"{100 * f.share:.0f}", f.evidence
        )
    print_table(shown)
    measure = found.facts()["measurements"]
    for place, cause in enumerate(found.next, 1):
        print(f"next {place}: {cause}: {measure[cause]}")
