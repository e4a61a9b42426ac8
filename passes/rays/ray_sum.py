"""Ray types whose counts are looked at together: all bounces of a family, and all that a frame
sends."""

from collections.abc import Sequence
from dataclasses import dataclass

from passes.frame_options import EVERY_TYPE
from passes.rays.ray_type import RayType


@dataclass(frozen=True, slots=True)
class RaySum:
    """To whom shows counts it is a type with one slot a pixel, whose planes are the sums over the
    pixel's slots of `rays`, of stack_max the maximum."""

    name: str
    rays: tuple[RayType, ...]

    @property
    def slots_per_pixel(self) -> int:
        return 1


def with_sums(rays: Sequence[RayType]) -> tuple[RayType | RaySum, ...]:
    """All whose counts a frame that sends `rays` can show."""
    return (*rays, *ray_sums(rays))


def ray_sums(rays: Sequence[RayType]) -> tuple[RaySum, ...]:
    """Of a frame that sends `rays`; none that would be a type's own counts, or another sum's."""
    families: dict[str, list[RayType]] = {}
    for ray in rays:
        families.setdefault(ray.family, []).append(ray)
    sums = [
        RaySum(f"{EVERY_TYPE}_{family}", tuple(members))
        for family, members in families.items()
        if len(members) > 1
    ]
    if len(families) > 1:
        sums.append(RaySum(EVERY_TYPE, tuple(rays)))
    return tuple(sums)
