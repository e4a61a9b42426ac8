"""Raster or rays for what pixels see: no ray type's time, so not tuned, but worth a line where the
other way is faster."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.gpu.errors import UserError
from passes.frame_options import GBUFFERS
from treeline.tune.cases import Case
from treeline.tune.measure import FrameMeasurer


@dataclass(frozen=True, slots=True)
class Visibility:
    """`ms[gbuffer]` of the pass that finds what pixels see, median; `used` is the frame's own of
    GBUFFERS. `differing` is the share of pixels that are shown in another colour by the other."""

    used: str
    ms: Mapping[str, float]
    differing: float

    def facts(self) -> dict[str, Any]:
        return {"used": self.used, "ms": dict(self.ms), "differing_pixels": self.differing}

    def text(self) -> str | None:
        """None where the frame's own way is the faster one."""
        other = min(self.ms, key=lambda name: self.ms[name])
        if other == self.used:
            return None
        return (
            f"besides: what pixels see takes {self.ms[self.used]:.3g} ms by {self.used}, "
            f"{self.ms[other]:.3g} by --gbuffer {other} ({100 * self.differing:.2g}% of pixels "
            "differ); that is no ray type's time, and not in the profile"
        )


def compare_visibility(measurer: FrameMeasurer, case: Case, turns: int) -> Visibility | None:
    """Both ways over the structure and kernels of `case`, in turns; None where the adapter has
    only one."""
    frames = {}
    try:
        for gbuffer in GBUFFERS:
            options = replace(measurer.options, gbuffer=gbuffer)
            frames[gbuffer] = replace(measurer, options=options).frame(case)
            frames[gbuffer].run(0)
    except UserError:
        return None
    pictures = [frame.image() for frame in frames.values()]
    ms: dict[str, list[float]] = {gbuffer: [] for gbuffer in frames}
    for _ in range(turns):
        for gbuffer, frame in frames.items():
            ms[gbuffer].append(frame.run(0).passes[f"gbuffer/{gbuffer}"])
    return Visibility(
        measurer.options.gbuffer,
        {gbuffer: float(np.median(values)) for gbuffer, values in ms.items()},
        float((pictures[0] != pictures[1]).any(axis=-1).mean()),
    )
