"""Stages of shadow maps, probes and reflections from the screen against their twins."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from passes.frame_options import FrameOptions
from passes.twins.frame import cpu_passes

SMALL = dict(shadow_map_size=128, probe_size=32)
CASES = {
    "both": dict(reflections="screen", shadows="map", count=True),
    "screen alone, few steps": dict(reflections="screen", screen_steps=20),
    "map alone, two lights": dict(shadows="map", shadow_rays=2),
    "half of the reflections, two lights": dict(
        reflections="screen", shadows="map", reflection_scale="half", probe_position="scene"
    ),
}
# Where a driver's rounding leads a ray to the next pixel its whole result is another.
OTHER_PIXELS = 0.01


def other_pixels(step: Any, name: str, words: int) -> float:
    """Part of the pixels whose halves differ by more than 2%."""
    gpu, cpu = (
        v[name].reshape(-1, words).view(np.float16).astype(float) for v in (step.gpu, step.cpu)
    )
    return float((~np.isclose(gpu, cpu, rtol=0.02, atol=1e-3)).any(1).mean())


@pytest.mark.parametrize("case", CASES)
def test_stage_equals_its_twin(
    rich_scene: Any, walk_new: Any, differences: Any, kit: Any, case: str
) -> None:
    options = {**SMALL, **CASES[case]}
    scene, lights = rich_scene, 2 if "two lights" in case else 1
    if lights > 1:
        second = kit.lamp((-2.0, 1.5, 2.0), 0.3, (1.0, -0.6, -1.0), (2.0, 3.0, 4.0))
        scene = replace(scene, scene=replace(scene.scene, more_lights=(second,)))
    steps = walk_new(scene, 61, 43, every_ray=False, **options)
    whole = FrameOptions(61, 43, gbuffer="rays", **options).sized(lights)
    assert list(steps) == [item.name for item in cpu_passes(whole)]
    if "screen/reflection" in steps:
        step = steps.pop("screen/reflection")
        apart = other_pixels(step, "reflected", step.gpu["reflected"].size // (61 * 43))
        assert apart < OTHER_PIXELS
        if options.get("count"):
            gpu, cpu = (v["screen_counts"].astype(int) for v in (step.gpu, step.cpu))
            assert np.abs(gpu - cpu).max() <= OTHER_PIXELS * gpu.sum() and gpu[:3].min() > 30
    for name in ("shadow_map/visible", "shadow_map/reflection"):
        if name in steps:
            step = steps.pop(name)
            gpu, cpu = (v["shadow_results"].astype(int) for v in (step.gpu, step.cpu))
            assert (np.abs(gpu - cpu) > 1).mean() < OTHER_PIXELS
            assert ((gpu > 0) & (gpu < 65535)).sum() > 20
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in steps}
