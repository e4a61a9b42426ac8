"""What several options need: rays of some type, or any."""

from collections.abc import Iterable
from typing import Any

from passes.option import Need
from passes.rays import RAY_TYPES, REFLECTION, SHADOW, RayType

Way = tuple[str, tuple[Any, ...]]


def sent(ray: RayType, text: str = "its rays") -> tuple[Need, ...]:
    """Frames without rays of this type are the same whatever they would do."""
    return tuple(Need(text, (way,)) for way in ways_to_send(ray))


def ways_to_send(ray: RayType) -> list[Way]:
    """The fields of FrameOptions that a type's rays depend on, with the values that send them."""
    chosen: list[Way] = [(ray.choice, ("rays",))] if ray.choice else []
    return chosen + ([(ray.option, (True,))] if ray.option else [])


def some_sent(text: str, rays: Iterable[RayType]) -> Need:
    """Rays of one of several types, each of which depends on one field."""
    return Need(text, tuple(way for ray in rays for way in ways_to_send(ray)))


(REFLECTION_RAYS_SENT,) = sent(REFLECTION, "rays")
(SHADOW_RAYS_SENT,) = sent(SHADOW, "shadow rays")
QUEUES = some_sent("rays", RAY_TYPES)
# Primary rays are in no queue, and traverse, too.
TRAVERSAL_RUNS = Need("rays", (*QUEUES.ways, ("gbuffer", ("rays",))))
