"""The frames that the tests of the display pass show."""

from typing import Any

import pytest

from passes.display import DisplayPass
from passes.hybrid import HybridFrame
from tests.passes.display.by_twins import SIZE


@pytest.fixture(scope="module")
def frame(draw: Any, room: Any, kit: Any) -> HybridFrame:
    settings = dict(gbuffer="rays", count=True, seed=5, **kit.every_ray)
    found: HybridFrame = draw(room, *SIZE, **settings).frame
    return found


@pytest.fixture(scope="module")
def other(draw: Any, room: Any) -> HybridFrame:
    """Other rays: other samples of the light and of rough surfaces."""
    found: HybridFrame = draw(room, *SIZE, gbuffer="rays", count=True, seed=6).frame
    return found


@pytest.fixture(scope="module")
def display(device: Any) -> DisplayPass:
    return DisplayPass(device, *SIZE)
