"""`treeline ablate`: which cause a frame's cost has, from what it takes with one thing off."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from engine.gpu.errors import UserError
from treeline.cli.console import emit_json, note, print_table, steps
from treeline.cli.frame_flags import FrameFlags
from treeline.cli.idle_options import note_idle
from treeline.cli.options import Common, parse_size, with_common
from treeline.cli.pose import ClipOption, TimeOption, choose_pose
from treeline.json_text import json_text
from treeline.outputs import whole_file

if TYPE_CHECKING:
    from treeline.ablate import Ablation
    from treeline.verdict import Verdict

MEASURING = "Measuring"
# Size and pairs on a GPU, and on a CPU driver, where a frame takes seconds.
GPU_DEFAULTS = ("1920x1080", 20)
CPU_DEFAULTS = ("192x108", 8)
FEWEST_PAIRS = 6
GPU_WARMUP_MS = 1000.0
PARTIAL = ".partial"  # after the name of --out, until the ablation is whole


@with_common
def ablate(
    common: Common,
    flags: FrameFlags,
    table: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="F.json",
            help="An ablation instead of a measurement: base_ms, without_ms, half_resolution_ms.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="F.json", help="What was measured, as --from reads it."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="WxH",
            help="Default 1920x1080; 192x108 on a CPU adapter.",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=FEWEST_PAIRS,
            help="Runs on and off of each switch. Default 20; 8 on a CPU adapter.",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME", help="Some switches. Default: all.", rich_help_panel=MEASURING
        ),
    ] = "",
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="What the measurement may take, builds included. Switches, pairs and couples that "
            "do not fit are left out and named. Default: no limit.",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    time: TimeOption = None,
    clip: ClipOption = None,
) -> None:
    """Rank the causes of a frame's cost, and say what to measure next.

    Measures the frame with one thing off at a time, on and off taking turns: characters and their
    updates, foliage, half the resolution of reflections, any-hit, each ray type, builder, node
    kind, refit or rebuild, the hit table; then the three strongest two by two. A scene that moves
    is in its first clip, unless told otherwise. Where a switch changes a term of the cost that its
    option does not declare, that is said. Terms are compared ray by ray, over rays that both frames
    send: what follows from fewer rays is not taken for a change of the rest of them.

    Until it is whole, what is known so far is in OUT.partial, which --from reads from the first
    timed pair on. Structures are built on the GPU unless --on says otherwise, each once.

    Or reads an ablation, --from F.json. It holds milliseconds: base_ms with everything on, and what
    it takes with one thing off: without_ms maps a switch to that, half_resolution_ms is with half
    the width and height of rays. Switches: characters, animation, refit, update; foliage, any_hit;
    builder, nodes, node_kind, leaf, reinsertion; hit_grouping, hit_sort; textures; ray_sort; a ray
    type (reflection, shadow, occlusion); half_resolution; or a cause by its own name
    (characters_update, ray_count, bvh_quality, foliage_any_hit, hit_table, hit_shading,
    divergence). The scene's and other options are not used then.

    A switch's effect is what it saves. Half the resolution leaves a quarter of the rays
    (half_resolution_ray_ratio, if it was another part), so ray_count's effect is what it saves
    divided by the part of the rays that was left out, 0.75; less what another cause makes each ray
    cost (any_hit, builder and the like, not foliage). A cause is primary from 25% of base_ms on,
    secondary from 5%, minor below that or within noise_ms.

    More keys (before_ms, noise_ms, switches with intervals, interactions): see
    treeline/ablation_table.py.
    """
    from treeline.ablation_table import read_table
    from treeline.verdict import verdict

    if table is not None:
        if out is not None:
            raise UserError("--out writes what is measured: not with --from")
        found = verdict(read_table(table))
        emit_json(found.facts(), common.json)
        if not common.to_stdout:
            _print_verdict(found)
        return
    with whole_file(out) if out else nullcontext() as path:
        names = [name.strip() for name in only.split(",") if name.strip()]
        partial = None if out is None else out.with_name(out.name + PARTIAL)
        asked = Asked(flags.fields(), size, pairs, minutes, names, time, clip, partial)
        measured = _measure(common, asked)
        if path is not None:
            path.write_text(json_text(measured.table), encoding="utf-8")
    if partial is not None:
        partial.unlink(missing_ok=True)
    emit_json({**measured.verdict.facts(), "table": measured.table}, common.json)
    if common.to_stdout:
        return
    _print_switches(measured)
    _print_verdict(measured.verdict)
    if out is not None:
        print(out)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured, as the command line has it; what is known so far goes into
    `partial`."""

    frame: dict[str, Any]
    size: str | None
    pairs: int | None
    minutes: float | None
    only: list[str]
    time: float | None
    clip: str | None
    partial: Path | None


def _measure(common: Common, asked: Asked) -> "Ablation":
    from engine.scene.pose import moves
    from passes.frame_options import FrameOptions
    from passes.option_list import ViewSettings
    from passes.prepare import PreparedScene
    from treeline.ablate import ablate as measure
    from treeline.ablate_switches import Setup
    from treeline.report_context import plain, structure_context
    from treeline.shared_builds import SharedBuilds
    from treeline.time_limit import TimeLimit

    if asked.size is not None:
        parse_size(asked.size)
    budget = TimeLimit.of(asked.minutes)
    with steps(common.quiet) as progress:
        device = common.open_device()
        defaults = CPU_DEFAULTS if device.info.is_cpu else GPU_DEFAULTS
        if device.info.is_cpu:
            note(
                f"{device.info.adapter} is a CPU adapter: its times are wall clock, and no GPU's",
                quiet=common.quiet,
            )
        width, height = parse_size(asked.size or defaults[0])
        build = common.build_options()
        note_idle(FrameOptions(width, height, **asked.frame), quiet=common.quiet)
        progress.begin("loading the scene")
        scene = common.load_scene()
        time = asked.time
        if time is None and asked.clip is None and moves(scene):
            time = 0.0
        pose = choose_pose(scene, time, asked.clip)
        settings = ViewSettings(FrameOptions(width, height, **asked.frame), build, common.group)
        place = None if common.on == "cpu" else device
        builds = SharedBuilds(place, common.blas_cache(), or_cpu=common.on == "auto")

        def prepare(setup: Setup) -> PreparedScene:
            return builds.prepare(setup.scene, setup.settings.build, setup.settings.group)

        context = structure_context(scene, common.scene_name, device, build, common.group)
        context |= {"width": width, "height": height, "minutes": asked.minutes, **asked.frame}
        context |= pose.fields() if pose else {}

        def keep(table: dict[str, Any]) -> None:
            table["context"] = plain(context | table["context"])
            if asked.partial is not None:
                with whole_file(asked.partial) as path:
                    path.write_text(json_text(table), encoding="utf-8")

        measured = measure(
            device,
            Setup(scene, settings),
            prepare,
            (width, height),
            pose.fields() if pose else {},
            progress,
            pairs=asked.pairs or defaults[1],
            only=asked.only,
            warmup_ms=0.0 if device.info.is_cpu else GPU_WARMUP_MS,
            budget=budget,
            keep=keep,
        )
        measured.table["context"] = plain(context | measured.table["context"])
    return measured


def _print_switches(measured: "Ablation") -> None:
    """What was measured: one row a switch, one a pair of switches."""
    from treeline.ablate import BASE
    from treeline.report_reuse import REUSED, kept_sentence

    table, context = measured.table, measured.table["context"]
    by = "wall clock" if "wall" in context["timing_source"] else context["timing_source"]
    shown = Table(
        title=f"{context['scene']} {context['width']}x{context['height']}, "
        f"{context['pairs']} pairs, {context['adapter']}, {by}",
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    shown.add_column("off", no_wrap=True)
    shown.add_column("the frame is", overflow="fold")
    shown.add_column("ms", justify="right", no_wrap=True)
    shown.add_column("saves, ms", justify="right", no_wrap=True)
    shown.add_column("declared", overflow="fold")
    shown.add_column("follows", overflow="fold")
    shown.add_column("undeclared", overflow="fold")
    for name, fields in table["switches"].items():
        terms, (low, high) = context["terms"][name], fields["interval_ms"]
        shown.add_row(
            name,
            terms["off"],
            f"{fields['off_ms']:.3g} of {fields['on_ms']:.3g}",
            f"{fields['effect_ms']:.3g} ({low:.3g} .. {high:.3g})",
            ", ".join(_declared(term, terms) for term in terms["declared"]),
            ", ".join(_change(t, terms["changes"][t]) for t in terms["follows"]) or "-",
            ", ".join(_change(t, terms["changes"][t]) for t in terms["undeclared"]) or "-",
        )
    print_table(shown)
    for item in table["interactions"]:
        low, high = item["interval_ms"]
        print(
            f"{' and '.join(item['switches'])}: {item['effect_ms']:+.3g} ms "
            f"({low:.3g} .. {high:.3g}) beyond the sum"
        )
    for name, facts in context.get(REUSED, {}).items():
        print(kept_sentence(name if name == BASE else f"{name} off", facts))
    for name, reason in context["left_out"].items():
        print(f"{name}: not switched off, {reason}")
    for what in context["unmeasured"]:
        print(f"not measured, no time was left: {what}")


def _declared(term: str, terms: dict[str, Any]) -> str:
    if term in terms["changes"]:
        return _change(term, terms["changes"][term])
    return f"{term} unknown" if term in terms["unjudged"] else f"{term} same"


def _change(term: str, change: float) -> str:
    return f"{term} {100 * change:+.0f}%"


def _print_verdict(found: "Verdict") -> None:
    title = f"{found.base_ms:.4g} ms"
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
