"""Further bounces in what people look at: a pixel's rays, tables by object, ablation, tuning."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from passes.hybrid import FrameOptions, HybridFrame
from passes.option_list import ViewSettings
from passes.prepare import PreparedScene
from passes.rays import frame_rays
from treeline.ablate_switches import Setup, find_switches
from treeline.causes import switch_causes
from treeline.tune.measure import FrameMeasurer
from treeline.view.instance_panel import SPENT, shares, spent
from treeline.view.object_rows import object_rows
from treeline.view.pixel_rays import pixel_rays
from treeline.view.ray_overlay import ray_colour


@pytest.fixture(scope="module")
def bounced(device: Any, hall: PreparedScene) -> HybridFrame:
    options = FrameOptions(32, 18, gbuffer="rays", reflection_bounces=2, count=True)
    return HybridFrame(device, hall, options)


def test_children_of_a_further_bounce_stand_below_it(bounced: HybridFrame) -> None:
    assert bounced.run(0).valid
    pixels = bounced.data.read_records(frame_rays(bounced.options)[1])["pixel"]
    depths: dict[tuple[str, int], int] = {}
    for pixel in pixels[:: max(1, len(pixels) // 12)]:
        rays = pixel_rays(bounced, int(pixel) % 32, int(pixel) // 32)
        names = [ray.ray_type for ray in rays]
        second = rays[names.index("reflection_2")]
        assert rays[second.parent].ray_type == "reflection"
        for ray in rays:
            key = (ray.ray_type, ray.depth)
            depths[key] = depths.get(key, 0) + 1
            if ray.parent >= 0 and ray.ray_type == "shadow":
                hit = rays[ray.parent]
                away = hit.point(hit.t) - ray.origin
                assert np.linalg.norm(away) < 1e-2  # it starts where its parent ends
    assert {name for name, _ in depths} == {"primary", "reflection", "reflection_2", "shadow"}
    assert {depth for name, depth in depths if name == "reflection_2"} == {2}
    assert {depth for name, depth in depths if name == "shadow"} == {1, 2, 3}
    assert ray_colour("reflection_2") == ray_colour("reflection") != ray_colour("shadow")


def test_tables_by_object_sum_over_bounces(bounced: HybridFrame) -> None:
    stats = bounced.run(0)
    names = list(dict.fromkeys(name for name, _ in stats.objects))
    column = [key for key, _ in SPENT].index("nodes")
    nodes = spent(names, stats)[column]
    both = sum(stats.rays[name].nodes or 0 for name in ("reflection", "reflection_2"))
    assert sum(n or 0 for n in nodes) == both > (stats.rays["reflection"].nodes or 0)
    assert sum(part or 0 for part in shares(names, stats)[0]) == pytest.approx(100)
    rows = object_rows([stats], stats, "reflection")
    assert {row[1] for row in rows} == {"reflection", "reflection_2"}


def test_the_switch_is_one_bounce_or_a_second_one(hall: PreparedScene) -> None:
    def switched(**options: Any) -> int | None:
        setup = Setup(hall.scene, ViewSettings(FrameOptions(8, 8, **options)))
        found = {switch.name: switch for switch in find_switches(setup, False)[0]}
        if "reflection_bounces" not in found:
            return None
        switch = found["reflection_bounces"]
        assert switch.terms == ("rays",) and "reflection_2" not in found
        return switch.off(setup).settings.frame.reflection_bounces

    assert switch_causes()["reflection_bounces"] == "ray_count"
    assert [switched(reflection_bounces=n) for n in (1, 2, 4)] == [2, 1, 1]
    assert switched(reflections="screen") is None


def test_a_kernel_is_tuned_for_all_bounces_at_once(device: Any, hall: PreparedScene) -> None:
    options = FrameOptions(8, 8, gbuffer="rays", reflection_bounces=2)
    measurer = FrameMeasurer(device, options, {}, lambda _: hall, 0.0)
    assert [ray.name for ray in measurer.rays] == ["reflection", "reflection_2", "shadow"]
    assert [ray.name for ray in measurer.chosen] == ["reflection", "shadow"]

    class Frame:
        def run(self, index: int) -> Any:
            ms = {"traverse/reflection/0": 2.0, "traverse/reflection_2/0": 1.0}
            return SimpleNamespace(passes={**ms, "traverse/shadow/0": 4.0})

    frames: Any = [Frame()]
    assert measurer.turns(frames, 2) == [{"reflection": [3.0, 3.0], "shadow": [4.0, 4.0]}]
