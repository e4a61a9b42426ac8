"""The cost model recovers costs that really are sums, and says what it left unexplained."""

from typing import Any

import pytest

from treeline.cost_model import (
    TypeCost,
    fit,
    is_shading_of,
    is_tracing_of,
    is_traversal_of,
    predict,
    predict_frame,
)
from treeline.measure import measure


def cost(rays: int, hits: int, trace: float, hit: float, miss: float) -> TypeCost:
    misses = rays - hits
    return TypeCost(rays, hits, misses, rays * trace, hits * hit + misses * miss)


def test_exact_costs_are_recovered() -> None:
    samples = [cost(1000, 900, 2.0, 5.0, 1.0), cost(2000, 800, 2.0, 5.0, 1.0)]
    found = fit(samples)
    assert (found.traversal, found.hit, found.miss) == pytest.approx((2.0, 5.0, 1.0))
    assert not found.shared
    other = cost(5000, 3000, 2.0, 5.0, 1.0)
    assert predict(found, other) == pytest.approx(other.trace_ms + other.shade_ms)


def test_proportional_hits_and_misses_share_one_coefficient() -> None:
    samples = [cost(1000, 750, 1.0, 3.0, 1.0), cost(4000, 3000, 1.0, 3.0, 1.0)]
    found = fit(samples)
    assert found.shared
    assert found.hit == found.miss == pytest.approx(2.5)


def test_a_type_without_rays_costs_nothing() -> None:
    found = fit([TypeCost(0, 0, 0, 0.1, 0.1)] * 2)
    assert (found.traversal, found.hit, found.miss) == (0, 0, 0)


def test_no_coefficient_is_negative() -> None:
    samples = [TypeCost(100, 90, 10, 1.0, 1.0), TypeCost(100, 10, 90, 1.0, 100.0)]
    found = fit(samples)
    assert min(found.hit, found.miss, found.traversal) >= 0


def test_passes_belong_to_types_by_their_path() -> None:
    assert is_traversal_of("shadow", "traverse/shadow/0")
    assert not is_traversal_of("shadow", "traverse/reflection/0")
    assert not is_traversal_of("shadow", "shade/shadow")
    assert is_shading_of("reflection", "shade/reflection/0")
    assert is_tracing_of("reflection", "rays/reflection")
    assert not is_tracing_of("reflection", "shade/reflection/0")
    assert not is_tracing_of("reflection", "composite")


def test_a_linear_frame_is_predicted_exactly(fake_frame: Any, silent: Any) -> None:
    measured = measure(fake_frame, 80, 40, 3, 1, silent)
    prediction = predict_frame(measured.main, measured.smaller)
    assert prediction.measured == pytest.approx(7.0 * 3.2)
    assert prediction.residual == pytest.approx(0.0, abs=1e-9)
    assert prediction.fit_sizes == ("40x20", "60x30")


def test_a_fixed_cost_shows_as_residual(fake_frame: Any, silent: Any) -> None:
    class Slow(fake_frame):
        def run(self, frame_index: int = 0) -> Any:
            stats = super().run(frame_index)
            if self.size == (80, 40):
                stats.passes["traverse/shadow/0"] += 5.0
            return stats

    measured = measure(Slow, 80, 40, 3, 1, silent)
    assert predict_frame(measured.main, measured.smaller).residual == pytest.approx(5.0)
