"""Shadows of the lights, and how much of the ambient light arrives."""

from passes.frame_options import LIGHT_CHOICES, MOST_SHADOW_RAYS, SHADOW_MAP_SIZES, SHADOWS
from passes.option import Need, Option, of_frame

MAP = Need(
    "a map",
    (("shadows", ("map",)), ("reflections", ("screen",)), ("rough_fallback", ("probe",))),
)
OCCLUSION_RAYS = Need("occlusion", (("occlusion", (True,)),))

SHADOW_MAP: tuple[Option, ...] = (
    of_frame(
        "shadows",
        "shadows",
        "choice",
        "frame",
        "rays",
        choices=SHADOWS,
        help="The lights' shadows by rays, or by maps of depths that are drawn from them.",
        follows=(("raster", "maps of depths are drawn"),),
    ),
    of_frame(
        "shadow_map_size",
        "shadow map size",
        "choice",
        "frame",
        "raster",
        choices=SHADOW_MAP_SIZES,
        needs=(MAP,),
        help="Pixels a side of each of a shadow map's five faces; 0: by the picture's size.",
    ),
)

SHADOW_RAYS: tuple[Option, ...] = (
    of_frame(
        "shadow_rays",
        "shadow rays",
        "number",
        "frame",
        "rays",
        low=1,
        high=MOST_SHADOW_RAYS,
        step=1,
        help="Shadow rays that a surface sends: to each light in turn, or to lights drawn where "
        "there are more.",
    ),
    of_frame(
        "light_choice",
        "light choice",
        "choice",
        "frame",
        "rays",
        choices=LIGHT_CHOICES,
        help="Of more lights than shadow rays: drawn by what they might bring, or all alike.",
    ),
)

OCCLUSION: tuple[Option, ...] = (
    of_frame(
        "occlusion",
        "ambient occlusion",
        "flag",
        "frame",
        "rays",
        help="An occlusion ray a pixel: ambient light arrives where nothing near is in its way.",
    ),
    of_frame(
        "occlusion_radius",
        "occlusion radius",
        "number",
        "view",
        "nodes",
        high=50.0,
        step=0.05,
        needs=(OCCLUSION_RAYS,),
        help="How far occlusion rays reach, metres; 0: a part of the scene's size.",
        follows=(("any-hit", "rays that reach further meet more candidates"),),
    ),
)
