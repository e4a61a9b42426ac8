"""`treeline build` from a scene to rows: every BLAS with the time of its phases, how good it is,
how large it is, and what compaction made of it.

On a GPU the phases of one build are passes of their own, so that their sum is a little more than a
build in one pass takes; `treeline bench build` repeats builds and says how times spread.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bvh.blas import Blas, BuildOptions
from bvh.blas_cache import BlasCache
from bvh.build import build_blas
from bvh.coordinate_range import check_range
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.gpu.compaction import Container, GpuCompaction, plan_compaction
from bvh.layout import UNIT_BYTES
from bvh.phase_clock import PhaseClock
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from engine.gpu.errors import CheckFailed, UserError
from engine.gpu.stage import submit_pass
from engine.scene.scene import Scene
from passes.build_blases import SharedBuilder
from passes.prepare import PreparedScene, prepare
from treeline.measure import Progress
from treeline.pass_times import time_once
from treeline.structure_rows import structure_row

WARMUP_TRIANGLES = 64  # enough to have every pipeline compiled
SUMS = (
    "triangles",
    "dropped_degenerate",
    "dropped_nonfinite",
    "blocks",
    "pairs",
    "fans",
    "nodes_fp16",
    "nodes_fp32",
    "bytes",
    "bytes_with_links",
)


@dataclass(slots=True)
class BuildLog:
    """Builds a scene's BLASes on the `device`, or the CPU where there is none, and notes the phases
    in ms and, if asked for, what compaction did, by the number of the BLAS. One that comes from a
    cache leaves nothing."""

    device: Device | None
    compact: bool
    progress: Progress
    phases_ms: dict[int, dict[str, float]] = field(default_factory=dict)
    compaction: dict[int, dict[str, Any]] = field(default_factory=dict)
    _shared: SharedBuilder | None = None
    _warm: GpuBlasBuilder | None = None
    _current: int = 0

    def __post_init__(self) -> None:
        if self.device is not None:
            self._shared = SharedBuilder(self.device)
        elif self.compact:
            raise UserError("compaction is the GPU's: add --on gpu --pairing near")

    def prepare(
        self, scene: Scene, options: BuildOptions, group: str, cache: BlasCache | None
    ) -> PreparedScene:
        """As `passes.prepare.prepare`."""
        return prepare(scene, options, group, cache, build=self.build, told=self.told)

    def told(self, index: int, name: str, done: int, total: int) -> None:
        """Before each BLAS."""
        self._current = index
        if done:
            self.progress.advance(name)
            return
        where = "the CPU" if self.device is None else self.device.info.adapter
        self.progress.begin(f"building {total} BLAS on {where}", total)

    def build(
        self, triangles: Any, geometry: Any, primitive: Any, opaque: Any, options: BuildOptions
    ) -> Blas:
        """As `build_blas`."""
        given = (triangles, geometry, primitive, opaque)
        if self._shared is None:
            clock = PhaseClock()
            blas = build_blas(*given, options, clock=clock)
            self.phases_ms[self._current] = clock.ms
            return blas
        check_range(triangles, geometry)
        builder = self._shared.builder(len(triangles), options)
        if builder is not self._warm:
            few = slice(WARMUP_TRIANGLES)
            builder.build(triangles[few], geometry[few], primitive[few], opaque)
            self._warm = builder
        builder.upload(*given)
        builder.device.wait()
        phases = builder.phases()
        times = time_once(builder.device, list(phases.values()))
        blas = builder.read(build_ms=float(times.sum()))
        self.phases_ms[self._current] = dict(zip(phases, times.tolist(), strict=True))
        if self.compact:
            self.compaction[self._current] = compact_output(builder, blas)
        return blas


def compact_output(builder: GpuBlasBuilder, blas: Blas) -> dict[str, Any]:
    """Bytes (parent links included) and ms of copying the builder's output to a buffer of its exact
    size. CheckFailed if it came out as another container."""
    device, room = builder.device, UNIT_BYTES * builder.output_units
    used = 4 * len(blas.words)
    plan = plan_compaction([Container("BLAS", 0, used, room)], room)
    stage = GpuCompaction(device, plan)
    loose = {
        "loose": builder.resources["words"],
        "loose_links": builder.resources["parent_links"],
    }
    submit_pass(device, lambda scope: stage.encode(scope, loose, 0), label="warm-up")
    times = time_once(device, [lambda scope: stage.encode(scope, loose, 0)])
    words = device.read(stage.tight, count=len(blas.words))
    links = device.read(stage.tight_links, count=len(blas.parents))
    if not (np.array_equal(words, blas.words) and np.array_equal(links, blas.parents)):
        raise CheckFailed("compaction changed a container")
    return {
        "before_bytes": plan.before_bytes,
        "after_bytes": plan.after_bytes,
        "peak_bytes": plan.peak_bytes,
        "ms": float(times[0]),
    }


def build_rows(
    bvh: SceneBvh, log: BuildLog, samples: int, progress: Progress
) -> list[dict[str, Any]]:
    """One a BLAS, in the scene's order."""
    progress.begin("measuring quality", len(bvh.blas_names))
    rows = []
    for index, (name, stats) in enumerate(zip(bvh.blas_names, bvh.blas_stats, strict=True)):
        rows.append(
            {
                "name": name,
                "builder": stats.builder,
                "cached": index not in log.phases_ms,
                "build_ms": stats.build_ms,
                "phases_ms": log.phases_ms.get(index, {}),
                **structure_row(bvh.blas_words(index), stats, samples),
                "compaction": log.compaction.get(index),
            }
        )
        progress.advance(name)
    return rows


def total_row(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What adds up. BLASes leave the builder's output one by one, so that at the peak the largest
    of these is there with all tight copies."""
    total: dict[str, Any] = {name: sum(row[name] for row in rows) for name in SUMS}
    total["triangles_per_block"] = total["triangles"] / max(total["blocks"], 1)
    total["bytes_per_triangle"] = total["bytes_with_links"] / max(total["triangles"], 1)
    total["build_ms"] = sum(row["build_ms"] for row in rows if not row["cached"])
    phases = dict.fromkeys(name for row in rows for name in row["phases_ms"])
    total["phases_ms"] = {
        name: sum(row["phases_ms"].get(name, 0.0) for row in rows) for name in phases
    }
    tight = [row["compaction"] for row in rows if row["compaction"]]
    total["compaction"] = None
    if tight:
        total["compaction"] = {
            "before_bytes": sum(item["before_bytes"] for item in tight),
            "after_bytes": sum(item["after_bytes"] for item in tight),
            "peak_bytes": max(item["before_bytes"] for item in tight)
            + sum(item["after_bytes"] for item in tight),
            "ms": sum(item["ms"] for item in tight),
        }
    return total
