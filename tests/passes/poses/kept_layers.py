"""What frames keep of shadow maps and probes, and what they show by them."""

from typing import Any

import numpy as np

from passes.frame_uniforms import FrameInputs
from passes.hybrid import HybridFrame

FALLBACK: dict[str, Any] = dict(
    reflections="screen", shadows="map", shadow_map_size=128, probe_size=32
)
MAPS = {f"shadow_map/depth/{i}" for i in range(5)}
FACES = {f"probe/ids/{i}" for i in range(6)}
LIT = {"probe/light", "probe/blur"}
STILL = {f"shadow_map/still/{i}" for i in range(5)} | {f"probe/still/{i}" for i in range(6)}


def shown(frame: HybridFrame) -> dict[str, Any]:
    """All that a frame keeps for the next one, and its picture."""
    targets = frame.data.targets
    found = {name: targets.read(name) for name in ("shadow_map", "probe_ids")}
    return {**found, "probe": targets.read_probe(), "picture": frame.image()}


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def whole(frame: HybridFrame, inputs: FrameInputs) -> dict[str, Any]:
    """What a frame shows that has drawn nothing before."""
    other = HybridFrame(frame.device, frame.scene.prepared, frame.options, frame.scene)
    assert other.run(0, inputs=inputs).reused == ()
    return shown(other)
