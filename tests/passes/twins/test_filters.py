"""Stages that filter light against their twins: frames that begin, go on as the view moves, and add
samples to a picture."""

import copy
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.scene.camera import look_at
from passes.filter_records import PASTS
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.light_history import LIGHTS
from passes.rays import with_every_ray
from passes.twins import denoise, filter_light, history
from passes.twins.frame import cpu_passes
from passes.twins.read_back import read_resources

SIZE = (45, 35)
CASES: dict[str, dict[str, Any]] = {
    "history": dict(history=8),
    "both": dict(history=8, denoiser=2),
    "denoiser": dict(denoiser=2, reflection_scale="half"),
}
STAGES = ("motion", "light", "history", "denoise", "composite")


def stage_differences(frame: HybridFrame, differences: Any) -> dict[str, Any]:
    """Pass -> what its twin makes otherwise of what the last frame left on the GPU."""
    found = {}
    gpu = read_resources(frame.data, frame.inputs)
    for item in cpu_passes(frame.options):
        if item.name.split("/")[0] not in STAGES:
            continue
        cpu = {
            name: copy.deepcopy(gpu[name]) for name in (item.bind.get(b, b) for b in item.bindings)
        }
        if "reflection_queue" in cpu:
            cpu["reflection_queue"].header[["widened", "unlike"]] = (0, 0)
        written = {"motion", "depth_before"} if item.name == "motion" else {"picture"}
        for name in written | {item.bind.get("filtered", "")}:
            if name in cpu:  # so that what a twin does not write shows
                cpu[name][:] = 7
        if frame.inputs.sample_count == 1 or frame.options.filtered:
            item.run(cpu)
            found[item.name] = differences(SimpleNamespace(gpu={n: gpu[n] for n in cpu}, cpu=cpu))
    return found


@pytest.mark.parametrize("case", CASES)
def test_stages_equal_their_twins(
    device: Any, rich_scene: Any, differences: Any, case: str
) -> None:
    options = with_every_ray(FrameOptions(*SIZE, gbuffer="rays", **CASES[case]))
    frame = HybridFrame(device, rich_scene, options)
    camera = look_at(np.array([0.9, 1.4, 4.6]), np.array([0.1, 0.0, 0.0]), 0.7)
    moved = replace(frame.inputs, camera=camera)
    pasts = []
    shown = [(frame.inputs, 1), (frame.inputs, 1), (moved, 1), (moved, 2)]
    for index, (inputs, sample) in enumerate(shown):
        assert frame.run(index, sample, inputs).valid
        found = stage_differences(frame, differences)
        names = [p.name for p in frame.passes if p.name.split("/")[0] in STAGES]
        assert found == {name: [] for name in names}
        arrays = frame.data.read_arrays()
        pasts.append(PASTS[int(arrays["filter_view"]["past"])])
    before = "moved" if options.history else "nothing"
    assert pasts == ["nothing", before, before, "same"]
    for light in LIGHTS:
        assert arrays[f"{light}_filtered"].any()
        if options.history:
            # So that every branch was taken: pixels that went on, and such as began anew.
            length = frame.aov(f"history_{light}")
            assert (length == 3).sum() > 50 and (length == 1).sum() > 20


def test_five_rounds_equal_their_twins(device: Any, rich_scene: Any) -> None:
    """One after the other, which share two buffers."""
    options = FrameOptions(*SIZE, gbuffer="rays", denoiser=5)
    frame = HybridFrame(device, rich_scene, options)
    assert frame.run().valid
    gpu = read_resources(frame.data, frame.inputs)
    cpu = copy.deepcopy(gpu)
    for item in cpu_passes(options):
        if item.name.startswith("denoise"):
            item.run(cpu)
    for light in LIGHTS:
        a, b = (
            v[f"{light}_filtered"].view(np.float16).astype(np.float32).reshape(-1, 4)
            for v in (gpu, cpu)
        )
        assert np.isclose(a, b, rtol=5e-3, atol=1e-3).all(-1).mean() > 0.99 and a[:, :3].any()


def test_constants_of_the_twins_are_the_shaders() -> None:
    for module, names in (
        (
            history,
            (
                "SAME_NORMAL",
                "SAME_PLANE",
                "CLAMP_DEVIATIONS",
                "DOUBT_DEVIATIONS",
                "BLUR_NOISE",
                "DIRECT_FRAMES",
                "GLOSSY",
                "LIKE_NORMAL",
                "SHARP_FRAMES",
                "SHARP_STALE",
                "LEAST_FOCUS",
                "LEAST_SAMPLES",
                "REACH",
            ),
        ),
        (
            denoise,
            (
                "NORMAL_POWER",
                "PLANE_PIXELS",
                "DIRECT_DEVIATIONS",
                "REFLECTION_DEVIATIONS",
                "ROUGHNESS_APART",
            ),
        ),
        (filter_light, ("LEAST_FACTOR",)),
    ):
        text = Path(f"passes/shaders/{module.__name__.rpartition('.')[2]}.wgsl").read_text()
        for name in names:
            found = re.search(rf"const {name}: \w+ = ([\d.]+)", text)
            assert found and np.float32(getattr(module, name)) == np.float32(found[1]), name
