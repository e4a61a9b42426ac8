"""Where the window's regions are: they fill the window and never overlap, at any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeline.view.layout import BORDER, LEAST_PANEL, PANEL_SHARE, arrange, fit_inside

SIZES = st.tuples(st.floats(2, 5000), st.floats(2, 3000))


@given(SIZES, st.floats(0.05, 0.95))
def test_regions_fill_the_window_side_by_side(size, share):
    layout = arrange(size, 24.0, 26.0, share)
    assert layout.picture.width >= 1 and layout.picture.height >= 1
    if size[0] > 10:
        assert layout.panels.width > 0
        right = layout.panels.x + layout.panels.width
        assert right == pytest.approx(max(size[0], right), abs=1e-3)
    assert layout.border.x == layout.picture.x + layout.picture.width
    assert layout.panels.x == pytest.approx(layout.border.x + BORDER)
    assert layout.status.y == layout.picture.y + layout.picture.height
    heights = {layout.picture.height, layout.border.height, layout.panels.height}
    assert len(heights) == 1


def test_a_small_window_keeps_panels_readable():
    layout = arrange((480, 270), 20, 20, PANEL_SHARE)
    assert layout.panels.width == LEAST_PANEL


def test_the_share_is_of_the_windows_width():
    wide, narrow = (arrange((width, 900), 20, 20, 0.4) for width in (2000, 1000))
    assert wide.panels.width == 2 * narrow.panels.width == 800


def test_a_frame_keeps_its_proportions_in_any_place():
    assert fit_inside((600, 400), (1920, 1080)) == (600, 337.5)
    assert fit_inside((600, 100), (1920, 1080)) == pytest.approx((177.78, 100), abs=0.01)
    assert fit_inside((300, 300), (100, 100)) == (300, 300)
