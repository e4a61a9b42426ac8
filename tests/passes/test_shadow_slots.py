"""Places of shadow rays and of what they bring: each its own, and with one ray a surface and one
bounce two slots a pixel."""

import numpy as np
import pytest

from passes.frame_options import MOST_BOUNCES, MOST_SHADOW_RAYS, reflection_name
from passes.rays import SHADOW
from passes.shadow_slots import MOST_SLOTS, ONE_RAY, ShadowSlots
from passes.twins.shadow_slot import (
    direct_place,
    reflected_light_place,
    reflected_place,
    shadow_slot,
)

PIXELS = np.arange(7, dtype=np.uint32)


@pytest.mark.parametrize("bounces", range(1, MOST_BOUNCES + 1))
@pytest.mark.parametrize("rays", range(1, MOST_SHADOW_RAYS + 1))
def test_every_place_is_taken_once(rays: int, bounces: int) -> None:
    slots = ShadowSlots(rays, bounces)
    found = [
        shadow_slot(slots, PIXELS, kind, number)
        for kind in range(1 + bounces)
        for number in range(rays)
    ]
    count = len(slots.starts_at)
    assert sorted(np.concatenate(found)) == list(range(len(PIXELS) * count)) and count <= MOST_SLOTS
    starts = [slots.starts_at[slot % count] for slot in np.stack(found, 1)[3]]
    hits = [reflection_name(1 + bounce) for bounce in range(bounces)]
    assert starts == [start for start in ("primary", *hits) for _ in range(rays)]

    direct = [direct_place(slots, PIXELS, number) for number in range(rays)]
    assert sorted(np.concatenate(direct)) == list(range(len(PIXELS) * slots.direct_bytes // 8))
    reflected = [reflected_place(slots, PIXELS)] + [
        reflected_light_place(slots, PIXELS, kind, number)
        for kind in range(1, 1 + bounces)
        for number in range(rays)
    ]
    places = len(PIXELS) * slots.reflected_bytes // 8
    assert sorted(np.concatenate(reflected)) == list(range(places))


def test_one_ray_a_surface() -> None:
    assert (shadow_slot(ONE_RAY, PIXELS, 0, 0) == 2 * PIXELS).all()
    assert (shadow_slot(ONE_RAY, PIXELS, 1, 0) == 2 * PIXELS + 1).all()
    assert SHADOW.starts_at == ("primary", "reflection")
    assert not ONE_RAY.constants("shadow") and not ShadowSlots(2, 3).constants("resolve")
    assert ShadowSlots(2, 3).constants("shade") == {"SHADOW_RAYS": 2, "REFLECTION_BOUNCES": 3}
