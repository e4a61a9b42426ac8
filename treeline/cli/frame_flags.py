"""The options of every command that draws frames, declared once, as fields of FrameOptions.

A command takes them as one parameter (`treeline.cli.options.with_common`).
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from engine.gpu.errors import UserError
from treeline.cli.options import SeedOption

WAVEFRONT = "Wavefront"

TraversalOption = Annotated[
    Literal["fast", "contract"],
    typer.Option(help="contract: every node through the BVH instruction as defined; slow."),
]


@dataclass(frozen=True, slots=True)
class RaysSent:
    """Which rays a frame sends."""

    seed: SeedOption = 0
    sampler: Annotated[
        Literal["hash", "blue", "sobol"],
        typer.Option(
            help="Random numbers: each by itself, blue noise between pixels, or a Sobol sequence a "
            "pixel."
        ),
    ] = "hash"
    gbuffer: Annotated[
        Literal["raster", "rays"], typer.Option(help="Primary visibility by raster or by rays.")
    ] = "raster"
    reflection_scale: Annotated[
        Literal["full", "half", "quarter"],
        typer.Option(help="Reflection rays at the picture's size, or one for 2x2 or 4x4 pixels."),
    ] = "full"
    upsample: Annotated[
        Literal["edge", "plain"],
        typer.Option(
            help="Pixels without a reflection ray are shown what rays nearby bring to surfaces "
            "like theirs, or their block's ray as it is."
        ),
    ] = "edge"
    narrow_lobes: Annotated[
        Literal["own", "shared"],
        typer.Option(
            help="At half or quarter scale, mirrors and what is nearly one send a ray a pixel, or "
            "share theirs as all others do."
        ),
    ] = "own"
    reflection_bounces: Annotated[
        int, typer.Option(min=1, max=4, help="The most rays of a path of reflections.")
    ] = 1
    reflections: Annotated[
        Literal["rays", "screen"],
        typer.Option(help="Reflections by rays, or found on the screen and in a probe."),
    ] = "rays"
    shadows: Annotated[
        Literal["rays", "map"],
        typer.Option(help="Shadows by rays, or by maps of depths that are drawn from the lights."),
    ] = "rays"
    shadow_map_size: Annotated[
        int,
        typer.Option(
            metavar="PIXELS", help="Side of each of a map's five faces; 0: by the picture's size."
        ),
    ] = 0
    probe_size: Annotated[
        int,
        typer.Option(
            metavar="PIXELS",
            help="Side of the probe that shows what the screen does not; 0: by the picture's size.",
        ),
    ] = 0
    probe_position: Annotated[
        Literal["camera", "scene"],
        typer.Option(help="The probe stands at the camera, or in the middle of the scene."),
    ] = "camera"
    probe_distance: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="How far a moving camera goes until its probe is drawn again, as a part of the "
            "scene's diagonal; 0: in every frame.",
        ),
    ] = 0.02
    screen_steps: Annotated[
        int, typer.Option(min=1, max=4096, help="The most steps of a reflection over the screen.")
    ] = 512
    history: Annotated[
        int,
        typer.Option(min=0, max=256, help="Frames that light is remembered for; 0: none."),
    ] = 0
    denoiser: Annotated[
        int,
        typer.Option(min=0, max=5, help="Rounds of the filter that smooths noise; 0: none."),
    ] = 0
    roughness_cutoff: Annotated[
        float,
        typer.Option(min=0, max=1, help="Surfaces up to this roughness send a reflection ray."),
    ] = 0.6
    rough_fallback: Annotated[
        Literal["environment", "lobe", "probe"],
        typer.Option(help="What surfaces show that are too rough for a reflection ray."),
    ] = "environment"
    shadow_rays: Annotated[
        int, typer.Option(min=1, max=4, help="Shadow rays that a surface sends to the lights.")
    ] = 1
    light_choice: Annotated[
        Literal["importance", "uniform"],
        typer.Option(help="How a shadow ray's light is drawn where there are more lights."),
    ] = "importance"
    occlusion: Annotated[
        bool, typer.Option("--occlusion", help="Occlude ambient light, by a ray a pixel.")
    ] = False
    occlusion_radius: Annotated[
        float | None,
        typer.Option(
            metavar="METRES", help="How far those rays reach. Default: by the scene's size."
        ),
    ] = None

    def fields(self) -> dict[str, Any]:
        """Those of FrameOptions. UserError for a radius of rays that are not sent, or for one that
        is no distance."""
        radius = self.occlusion_radius
        if radius is not None and not self.occlusion:
            raise UserError("--occlusion-radius needs --occlusion")
        if radius is not None and not radius > 0:
            raise UserError(f"--occlusion-radius is more than 0 metres, not {radius:g}")
        return {
            "seed": self.seed,
            "sampler": self.sampler,
            "gbuffer": self.gbuffer,
            "reflection_scale": self.reflection_scale,
            "upsample": self.upsample,
            "narrow_lobes": self.narrow_lobes,
            "reflection_bounces": self.reflection_bounces,
            "reflections": self.reflections,
            "shadows": self.shadows,
            "shadow_map_size": self.shadow_map_size,
            "probe_size": self.probe_size,
            "probe_position": self.probe_position,
            "probe_distance": self.probe_distance,
            "screen_steps": self.screen_steps,
            "history": self.history,
            "denoiser": self.denoiser,
            "roughness_cutoff": self.roughness_cutoff,
            "rough_fallback": self.rough_fallback,
            "shadow_rays": self.shadow_rays,
            "light_choice": self.light_choice,
            "occlusion": self.occlusion,
            "occlusion_radius": radius or 0.0,
        }


@dataclass(frozen=True, slots=True)
class FrameFlags(RaysSent):
    """And how it traces and shades them."""

    traversal: TraversalOption = "fast"
    force_opaque: Annotated[
        bool, typer.Option("--force-opaque", help="Rays take every triangle for opaque.")
    ] = False
    force_reject: Annotated[
        bool,
        typer.Option(
            "--force-reject",
            help="Rays reject every triangle that may have a hole: the worst case.",
        ),
    ] = False
    any_hit_mode: Annotated[
        Literal["inline", "queue"],
        typer.Option(help="Where rays test for holes: inline, or in passes between rounds."),
    ] = "inline"
    hit_table: Annotated[
        Literal["coarse", "fine"],
        typer.Option(help="Where a hit finds its material: by its object, or in its own record."),
    ] = "coarse"
    update: Annotated[
        Literal["refit", "rebuild", "policy"],
        typer.Option(help="What becomes of a structure that deforms, each frame."),
    ] = "refit"
    passes: Annotated[
        Literal["own", "mixed"],
        typer.Option(
            help="Each ray type traced in a pass of its own, or those that do not wait for each "
            "other mixed in one.",
            rich_help_panel=WAVEFRONT,
        ),
    ] = "own"
    compaction: Annotated[
        Literal["workgroup", "subgroup"],
        typer.Option(
            help="How rays get their places in a queue: votes in workgroup memory, or prefix sums "
            "by subgroup.",
            rich_help_panel=WAVEFRONT,
        ),
    ] = "workgroup"
    ray_sort: Annotated[
        Literal["none", "coarse", "fine"],
        typer.Option(
            help="Rays by octant and origin (Morton code, 4 or 9 bits an axis) before they are "
            "traced.",
            rich_help_panel=WAVEFRONT,
        ),
    ] = "none"
    sorted_rays: Annotated[
        str,
        typer.Option(
            metavar="all|TYPE", help="Which ray types --ray-sort is for.", rich_help_panel=WAVEFRONT
        ),
    ] = "all"
    hit_sort: Annotated[
        Literal["none", "material"],
        typer.Option(help="Hits by material before they are shaded.", rich_help_panel=WAVEFRONT),
    ] = "none"

    def fields(self) -> dict[str, Any]:
        """Those of FrameOptions. UserError also where --force-opaque and --force-reject are both
        asked for, and for a ray type that there is not."""
        from passes.option_list import find_option

        if self.force_opaque and self.force_reject:
            raise UserError("--force-opaque and --force-reject exclude each other")
        known = find_option("sorted_rays").choices
        if self.sorted_rays not in known:
            raise UserError(f"--sorted-rays is one of {', '.join(known)}, not {self.sorted_rays}")
        any_hit = "opaque" if self.force_opaque else "reject" if self.force_reject else "test"
        return RaysSent.fields(self) | {
            "traversal": self.traversal,
            "any_hit": any_hit,
            "any_hit_mode": self.any_hit_mode,
            "hit_table": self.hit_table,
            "update": self.update,
            "passes": self.passes,
            "compaction": self.compaction,
            "ray_sort": self.ray_sort,
            "sorted_rays": self.sorted_rays,
            "hit_sort": self.hit_sort,
        }
