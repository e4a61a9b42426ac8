"""What the picture shows first, how its light is filtered, and its random numbers."""

from passes.frame_options import GBUFFERS, MOST_DENOISER, MOST_HISTORY
from passes.option import Need, Option, of_frame
from passes.sampler import SAMPLERS

GBUFFER: tuple[Option, ...] = (
    of_frame(
        "gbuffer",
        "G-buffer",
        "choice",
        "frame",
        "raster",
        choices=GBUFFERS,
        help="What each pixel sees first, by the rasteriser or by rays.",
    ),
)

FILTERS: tuple[Option, ...] = (
    of_frame(
        "history",
        "history",
        "number",
        "frame",
        "filters",
        high=MOST_HISTORY,
        step=1,
        help="Frames that light is remembered for while things move, found by motion vectors; 0: "
        "none.",
        follows=(("raster", "motion vectors are drawn for it"),),
    ),
    of_frame(
        "denoiser",
        "denoiser",
        "number",
        "frame",
        "filters",
        high=MOST_DENOISER,
        step=1,
        help="Rounds of a filter that smooths noise between edges, each twice as wide; 0: none.",
    ),
)

MOTION: tuple[Option, ...] = (
    of_frame(
        "motion",
        "motion vectors",
        "flag",
        "frame",
        "raster",
        help="A pass for how far what each pixel shows has moved since the picture before.",
        needs=(Need("no history", (("history", (0,)),)),),
    ),
)

PICTURE: tuple[Option, ...] = (
    of_frame(
        "exposure",
        "exposure",
        "number",
        "view",
        "none",
        low=0.05,
        high=20.0,
        step=0.05,
        help="Factor of the light before it is tone-mapped.",
    ),
    of_frame(
        "seed",
        "seed",
        "number",
        "view",
        "none",
        high=999,
        step=1,
        help="Of every random number in the frame.",
    ),
    of_frame(
        "sampler",
        "sampler",
        "choice",
        "view",
        "none",
        choices=SAMPLERS,
        help="Random numbers: each by itself, blue noise between pixels, or a Sobol sequence a "
        "pixel.",
    ),
)
