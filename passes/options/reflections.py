"""Reflections: which surfaces send rays, and what is shown where there are none."""

from passes.frame_options import (
    MOST_BOUNCES,
    MOST_SCREEN_STEPS,
    NARROW_LOBES,
    PROBE_POSITIONS,
    PROBE_SIZES,
    REFLECTION_BLOCKS,
    REFLECTIONS,
    ROUGH_FALLBACKS,
    UPSAMPLES,
)
from passes.option import Need, Option, of_frame
from passes.options.needs import REFLECTION_RAYS_SENT

BLOCKS = Need("half scale", (("reflection_scale", ("half", "quarter")),))
SCREEN = Need("screen", (("reflections", ("screen",)),))
PROBE = Need("a probe", (("reflections", ("screen",)), ("rough_fallback", ("probe",))))
CAMERA_PROBE = Need("the camera's", (("probe_position", ("camera",)),))

REFLECTION_RAYS: tuple[Option, ...] = (
    of_frame(
        "roughness_cutoff",
        "roughness cutoff",
        "number",
        "view",
        "rays",
        help="Surfaces up to this roughness send a reflection ray.",
    ),
    of_frame(
        "reflection_scale",
        "reflection scale",
        "choice",
        "frame",
        "rays",
        choices=tuple(REFLECTION_BLOCKS),
        help="Reflection rays at the picture's size, or one for each 2x2 or 4x4 pixels.",
        follows=(
            ("queues", "a block of pixels is looked at once"),
            ("filters", "light of rays that are shared is upsampled"),
        ),
    ),
    of_frame(
        "upsample",
        "upsampling",
        "choice",
        "frame",
        "filters",
        choices=UPSAMPLES,
        needs=(BLOCKS,),
        help="What pixels without a reflection ray are shown: what rays nearby bring to surfaces "
        "like theirs, or their block's ray as it is.",
    ),
    of_frame(
        "narrow_lobes",
        "narrow lobes",
        "choice",
        "frame",
        "rays",
        choices=NARROW_LOBES,
        needs=(BLOCKS,),
        help="Where rays are shared, pixels whose reflection is sharper than these can show, as of "
        "mirrors, send a ray of their own besides, or share as all others do.",
        follows=(
            ("queues", "a block of pixels sends in as many rounds as it has rays"),
            ("filters", "light of rays that are shared is upsampled"),
        ),
    ),
    of_frame(
        "reflection_bounces",
        "reflection bounces",
        "number",
        "frame",
        "rays",
        low=1,
        high=MOST_BOUNCES,
        step=1,
        needs=(REFLECTION_RAYS_SENT,),
        help="The most rays of a path of reflections; what the last one hits reflects the "
        "environment.",
    ),
)

SCREEN_REFLECTIONS: tuple[Option, ...] = (
    of_frame(
        "reflections",
        "reflections",
        "choice",
        "frame",
        "rays",
        choices=REFLECTIONS,
        help="Reflections by rays, or found on the screen and in a probe.",
        follows=(("raster", "they are found in the picture and in a probe"),),
    ),
    of_frame(
        "screen_steps",
        "screen steps",
        "number",
        "frame",
        "raster",
        low=1,
        high=MOST_SCREEN_STEPS,
        step=1,
        needs=(SCREEN,),
        help="The most cells of the depth pyramid that a reflection looks at on its way over the "
        "screen; one that is cut off there is counted, and the probe is shown.",
    ),
    of_frame(
        "probe_size",
        "probe size",
        "choice",
        "frame",
        "raster",
        choices=PROBE_SIZES,
        needs=(PROBE,),
        help="Pixels a side of the probe that shows what a reflection does not find on the screen; "
        "0: by the picture's size.",
    ),
    of_frame(
        "probe_position",
        "probe position",
        "choice",
        "frame",
        "raster",
        choices=PROBE_POSITIONS,
        needs=(PROBE,),
        help="Where the probe stands: at the camera, or in the middle of the scene's box.",
    ),
    of_frame(
        "probe_distance",
        "probe distance",
        "number",
        "view",
        "raster",
        needs=(PROBE, CAMERA_PROBE),
        help="How far a moving camera goes until its probe is drawn again, as a part of the "
        "scene's diagonal.",
    ),
)

ROUGH_FALLBACK: tuple[Option, ...] = (
    of_frame(
        "rough_fallback",
        "rough fallback",
        "choice",
        "frame",
        "raster",
        choices=ROUGH_FALLBACKS,
        help="What surfaces too rough for a reflection ray show: the environment in one direction, "
        "its mean over their lobe, or a probe.",
    ),
)
