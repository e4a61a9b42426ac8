"""Lights that passes between the rays and the composite work on: twins, and what they add up to."""

from typing import Any

import numpy as np
import pytest

from passes.frame_options import UPSAMPLES, FrameOptions
from passes.lights_apart import LIGHTS_APART
from passes.rays import REFLECTION, with_every_ray
from passes.twins.frame import cpu_passes
from passes.twins.gbuffer import NOTHING

HALF = {"reflection_scale": "half"}
PLAIN = {**HALF, "upsample": "plain"}
PASSES = [item.name for item in cpu_passes(with_every_ray(FrameOptions(1, 1, **HALF)))]


@pytest.mark.parametrize("upsample", UPSAMPLES)
@pytest.mark.parametrize("scale", ["half", "quarter"])
@pytest.mark.parametrize("size", [(61, 43), (17, 9), (3, 5), (1, 1)])
def test_stages_equal_their_twins(
    rich_scene: Any, walk: Any, differences: Any, size: tuple[int, int], scale: str, upsample: str
) -> None:
    steps = walk(rich_scene, *size, frame_index=size[0], reflection_scale=scale, upsample=upsample)
    assert list(steps) == PASSES
    assert PASSES[-3:] == ["light/reflection", "light/direct", "composite"]
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in PASSES}


def test_frames_that_need_none_have_none() -> None:
    options = FrameOptions(1, 1)
    assert not options.lights_apart
    assert not [item.name for item in cpu_passes(options) if item.name.startswith("light/")]


def halves(words: Any) -> Any:
    """[n, 2 k] words -> [n, 4 k]"""
    return np.ascontiguousarray(words).view(np.float16).astype(np.float32)


def test_lights_add_up_to_what_rays_brought(rich_scene: Any, walk: Any) -> None:
    after = walk(rich_scene, 61, 43, frame_index=61, **PLAIN)["composite"].gpu
    lit = after["shadow_results"].reshape(-1, 2)
    direct, found = halves(after["direct"]), halves(after[LIGHTS_APART["direct"]])
    covered = after["visibility"][..., 0].ravel() != NOTHING
    seen = covered & direct[:, :3].any(-1) & (lit[:, 0] == 1)
    np.testing.assert_array_equal(found[seen], np.append(direct[seen, :3], lit[seen, :1], -1))
    assert seen.sum() > 100 and not found[~seen].any()

    queue = after[REFLECTION.queue]
    sent = queue.records["pixel"][: queue.count]
    hits = after[REFLECTION.results][: queue.count]
    brought = halves(after["reflected"])[sent]
    shown = halves(after[LIGHTS_APART["reflected"]])
    light = brought[:, :3] + brought[:, 4:7] * lit[sent, 1:]
    np.testing.assert_allclose(shown[sent, :3], light, rtol=2**-10, atol=1e-6)
    distance = np.where(hits["object"] == 0xFFFFFFFF, 65504.0, hits["t"])
    np.testing.assert_allclose(shown[sent, 3], distance, rtol=2**-10)
    assert (distance < 65504).sum() > 50 and (distance == 65504).sum() > 50
    assert (shown[~covered] == [0, 0, 0, 65504]).all()
