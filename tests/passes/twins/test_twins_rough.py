"""What stands for the reflection rays of rough surfaces: stages against their twins, and the
environment over a lobe against its integral."""

from typing import Any

import numpy as np
import pytest

from engine.scene.light import DEFAULT_ENVIRONMENT
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FrameInputs, pack_uniforms
from passes.twins.environment import environment
from passes.twins.frame import cpu_passes
from passes.twins.rough_radiance import lobe_environment
from passes.twins.sampling import sample_visible_normal
from passes.twins.wgsl_functions import reflect

SMALL: dict[str, Any] = dict(shadow_map_size=128, probe_size=32, roughness_cutoff=0.25)
CASES: dict[str, dict[str, Any]] = {
    "lobe": dict(rough_fallback="lobe"),
    "probe, half of the reflections": dict(
        rough_fallback="probe", reflection_scale="half", probe_position="scene"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_stages_equal_their_twins(
    rich_scene: Any, walk_new: Any, differences: Any, case: str
) -> None:
    options = {**SMALL, **CASES[case]}
    steps = walk_new(rich_scene, 41, 27, every_ray=False, **options)
    names = [item.name for item in cpu_passes(FrameOptions(41, 27, gbuffer="rays", **options))]
    assert list(steps) == names and ("probe/blur" in names) == ("probe" in case)
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in steps}


def test_fallbacks_differ_on_rough_surfaces_alone(rich_scene: Any, draw: Any, strict: bool) -> None:
    pictures = {
        name: draw(rich_scene, 41, 27, gbuffer="rays", rough_fallback=name, **SMALL)
        for name in ("environment", "lobe", "probe")
    }
    plain = pictures["environment"]
    seen = plain.aov("object") >= 0
    rough = seen & (plain.aov("roughness") > SMALL["roughness_cutoff"])
    assert 100 < rough.sum() < seen.sum() - 100
    for name in ("lobe", "probe"):
        radiance = pictures[name].radiance
        # The kernels are compiled apart: each of some 20 roundings of a sum may be fused in one.
        within = 0.0 if strict else 2 * 20 * 2.0**-24
        other = ~np.isclose(radiance, plain.radiance, rtol=within, atol=0).all(-1)
        assert other[rough].mean() > 0.9 and not other[~rough].any()
        assert pictures[name].frame.result_hash() == plain.frame.result_hash()


@pytest.mark.parametrize("roughness", [0.6, 0.8, 1.0])
def test_lobe_is_nearer_to_the_integral_than_one_direction(
    rich_scene: Any, rng: Any, roughness: float
) -> None:
    """The environment's mean over GGX reflections of visible normals, about surfaces that face any
    way, seen from any side."""
    inputs = FrameInputs(rich_scene.scene.camera, rich_scene.scene.light, DEFAULT_ENVIRONMENT)
    frame = pack_uniforms(inputs, 4, 4, (0, 0, 0, 0))
    off = {"environment": 0.0, "lobe": 0.0}
    for _ in range(40):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0].astype(np.float32)
        cosine = rng.uniform(0.2, 1.0)
        view = np.array([[np.sqrt(1 - cosine**2), 0, cosine]], np.float32)
        r1, r2 = rng.uniform(size=(2, 2000)).astype(np.float32)
        alpha = np.full(2000, roughness**2, np.float32)
        half = sample_visible_normal(np.repeat(view, 2000, 0), alpha, r1, r2)
        light = reflect(np.repeat(-view, 2000, 0), half)
        up = light[:, 2] > 0
        mean = environment(frame, light[up] @ turn.T).mean(0)
        normal, mirrored = turn[:, 2][None], reflect(-view, np.eye(3, dtype=np.float32)[2]) @ turn.T
        rough = np.array([roughness], np.float32)
        off["environment"] += np.abs(environment(frame, mirrored)[0] - mean).mean()
        off["lobe"] += np.abs(lobe_environment(frame, mirrored, normal, rough)[0] - mean).mean()
    assert off["lobe"] < 0.6 * off["environment"]
