"""How a frame goes through its ray queues: the options of every command that draws frames."""

from typing import Annotated, Any, Literal

import typer

from engine.gpu.errors import UserError

WAVEFRONT = "Wavefront"

PassesOption = Annotated[
    Literal["own", "mixed"],
    typer.Option(
        help="Each ray type traced in a pass of its own, or those that do not wait for each other "
        "mixed in one.",
        rich_help_panel=WAVEFRONT,
    ),
]
CompactionOption = Annotated[
    Literal["workgroup", "subgroup"],
    typer.Option(
        help="How rays get their places in a queue: votes in workgroup memory, or prefix sums by "
        "subgroup.",
        rich_help_panel=WAVEFRONT,
    ),
]
RaySortOption = Annotated[
    Literal["none", "coarse", "fine"],
    typer.Option(
        help="Rays by octant and origin (Morton code, 4 or 9 bits an axis) before they are traced.",
        rich_help_panel=WAVEFRONT,
    ),
]
SortedRaysOption = Annotated[
    str,
    typer.Option(
        metavar="all|TYPE", help="Which ray types --ray-sort is for.", rich_help_panel=WAVEFRONT
    ),
]
HitSortOption = Annotated[
    Literal["none", "material"],
    typer.Option(help="Hits by material before they are shaded.", rich_help_panel=WAVEFRONT),
]


def wavefront_fields(
    passes: str, compaction: str, ray_sort: str, sorted_rays: str, hit_sort: str
) -> dict[str, Any]:
    """The fields of FrameOptions; also what a report says of them. UserError for a ray type that
    there is not."""
    from passes.option_list import find_option

    known = find_option("sorted_rays").choices
    if sorted_rays not in known:
        raise UserError(f"--sorted-rays is one of {', '.join(known)}, not {sorted_rays}")
    return {
        "passes": passes,
        "compaction": compaction,
        "ray_sort": ray_sort,
        "sorted_rays": sorted_rays,
        "hit_sort": hit_sort,
    }
