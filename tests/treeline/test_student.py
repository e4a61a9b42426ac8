"""Student's t against scipy's."""

import pytest
from scipy import stats

from treeline.student import quantile, within


@pytest.mark.parametrize("free", [1, 2, 3, 4, 9, 60])
def test_the_distance_that_holds_a_part(free: int) -> None:
    for coverage in (0.5, 0.95, 0.9995):
        t = quantile(free, coverage)
        assert t == pytest.approx(stats.t.ppf((1 + coverage) / 2, free), rel=1e-6)
        assert within(t, free) == pytest.approx(coverage)
