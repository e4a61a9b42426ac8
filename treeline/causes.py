"""The causes that a frame's cost is traced back to, in the order in which to look for them.

The order is the ray tracing chapter's, section 37.1: build and update apart from tracing, then rays
by type, then the structure, any-hit, the hit table, shading, and divergence last. Each switch that
an ablation may turn off belongs to one cause.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from passes.rays import RAY_TYPES

HALF_RESOLUTION = "half_resolution"
BOUNCE_LIMIT = "reflection_bounces"
SHADOW_BUDGET = "shadow_rays"
# Half the width and half the height; a table may say what really was left.
HALF_RESOLUTION_RAY_RATIO = 0.25


@dataclass(frozen=True, slots=True)
class Cause:
    """`per_ray`: it makes each ray dear and leaves their number alone. `measure` is what to look at
    next where this cause matters or is unknown."""

    name: str
    title: str
    per_ray: bool
    measure: str


CAUSES = (
    Cause(
        "characters_update",
        "characters and updates",
        False,
        "build and update apart from tracing: refit or rebuild of each object that moves, TLAS",
    ),
    Cause(
        "ray_count",
        "ray count",
        False,
        "rays, hits and misses of each ray type, and its time; check that time follows the rays",
    ),
    Cause(
        "bvh_quality",
        "BVH quality",
        True,
        "nodes and triangle tests a ray by ray type, SAH and overlap; another builder, a rebuild",
    ),
    Cause(
        "foliage_any_hit",
        "foliage and any-hit",
        True,
        "any-hit calls and alpha samples of the foliage by ray type; its instance mask",
    ),
    Cause(
        "hit_table",
        "hit table",
        True,
        "how many hit groups there are, and how hits of one material lie together",
    ),
    Cause(
        "hit_shading",
        "hit shading",
        True,
        "time a hit, texture fetches a hit, bytes of a ray's record",
    ),
    Cause(
        "divergence",
        "divergence",
        True,
        "active lanes, distinct nodes and distinct materials a subgroup; rays or hits sorted",
    ),
)
CAUSE_BY_NAME: Mapping[str, Cause] = {cause.name: cause for cause in CAUSES}

# Switch -> cause, beside the causes' own names and the ray types.
_SWITCHES = {
    "characters": "characters_update",
    "animation": "characters_update",
    "refit": "characters_update",
    "update": "characters_update",
    HALF_RESOLUTION: "ray_count",
    BOUNCE_LIMIT: "ray_count",
    SHADOW_BUDGET: "ray_count",
    "light_choice": "ray_count",
    "rough_fallback": "hit_shading",
    "reflections": "ray_count",
    "shadows": "ray_count",
    "builder": "bvh_quality",
    "nodes": "bvh_quality",
    "node_kind": "bvh_quality",
    "leaf": "bvh_quality",
    "reinsertion": "bvh_quality",
    "foliage": "foliage_any_hit",
    "any_hit": "foliage_any_hit",
    "hit_grouping": "hit_table",
    "hit_sort": "hit_table",
    "textures": "hit_shading",
    "upsample": "hit_shading",
    "narrow_lobes": "ray_count",
    "history": "hit_shading",
    "denoiser": "hit_shading",
    "ray_sort": "divergence",
}
# Switches that take something out of the picture, and its rays' work with it: that a frame without
# foliage is cheaper does not say that its rays were dear.
_CONTENT = frozenset({"characters", "animation", "foliage"})
# Switches of work that is done by pixels, however many rays there are.
_BY_PIXEL = frozenset({"upsample", "history", "denoiser", "rough_fallback"})


def switch_causes() -> dict[str, str]:
    """Every switch that a table may hold, with its cause."""
    return {
        **_SWITCHES,
        **{ray_type.name: "ray_count" for ray_type in RAY_TYPES},
        **{cause.name: cause.name for cause in CAUSES},
    }


def makes_rays_dear(switch: str, cause: str) -> bool:
    """Whether what the switch turns off makes each ray dearer, in the same picture."""
    return CAUSE_BY_NAME[cause].per_ray and switch not in _CONTENT | _BY_PIXEL
