"""Measures the choices that ARCHITECTURE.md lists: each against its alternative, on ray sets.

`python -m benchmarks.choices --scene F.glb --rays primary.npz ... --out F.json`

Kernel choices (run-time checks, stack length, loop shape, counters) run over one structure, tree
choices (collapse, reinsertion, triangles a block, node format) over one each. All variants of a
ray set share submissions; hits are compared with the first variant's.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bvh.build import BuildOptions
from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import RayTracer, Variant, fit_variant, time_interleaved
from bvh.rays import MISS_ID
from bvh.raysets import RaySet, load
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device, open_device
from engine.scene.load import load_scene
from passes.prepare import prepare
from treeline.report_context import structure_context

BASE = BuildOptions(nodes="fp32")
TREES = {
    "default": BASE,
    "collapse greedy": replace(BASE, collapse="greedy"),
    "no reinsertion": replace(BASE, reinsertion=0),
    "greedy, no reinsertion": replace(BASE, collapse="greedy", reinsertion=0),
    "one triangle a block": replace(BASE, leaf=1),
    "fp16": replace(BASE, nodes="fp16"),
    "auto": replace(BASE, nodes="auto"),
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One build of the kernel, relative to the default."""

    name: str
    variant: Variant
    stack: int = 32
    trusted: bool = True
    counted: bool = False


def kernels(base: Variant) -> list[Kernel]:
    """The default first, then each choice undone."""
    return [
        Kernel("default", base),
        Kernel("run-time checks", base, trusted=False),
        Kernel("stack of 64", base, stack=64),
        Kernel(
            "while-while" if base.loops == "one" else "one loop",
            replace(base, loops="two" if base.loops == "one" else "one"),
        ),
        Kernel("sorted" if base.any_hit else "unsorted", replace(base, sort=base.any_hit)),
        Kernel("through the TLAS", replace(base, two_level=True)),
        Kernel("counted", base, counted=True),
    ]


def run(
    device: Device,
    cases: Sequence[tuple[str, SceneBvh, Kernel]],
    rayset: RaySet,
    repeats: int,
    warmup_ms: float,
) -> list[dict[str, Any]]:
    """One row a case: median, spread and how many rays hit something else than in the first."""
    tracers = []
    buffers: dict[int, Any] = {}
    for _, bvh, kernel in cases:
        buffer = buffers.setdefault(id(bvh), device.upload("bvh", bvh.words))
        tracer = RayTracer(
            device,
            bvh.words,
            kernel.variant,
            bvh_buffer=buffer,
            stack=kernel.stack,
            trusted=kernel.trusted,
            counted=kernel.counted,
        )
        tracer.upload(rayset.rays)
        tracers.append(tracer)
    ms = time_interleaved(device, tracers, repeats, warmup_ms)
    expected = np.isfinite(rayset.expected_t)
    rows = []
    for (name, _, _), tracer, times in zip(cases, tracers, ms, strict=True):
        trace = tracer.read()
        hit = trace.hits["object"] != MISS_ID
        rows.append(
            {
                "name": f"choices/{rayset.kind}/{name}",
                "run_name": f"choices/{rayset.kind}/{name}",
                "run_type": "iteration",
                "iterations": repeats,
                "real_time": float(np.median(times)),
                "cpu_time": 0.0,
                "time_unit": "ms",
                "real_time_min": float(times.min()),
                "real_time_max": float(times.max()),
                "rays": len(rayset.rays),
                "mrays_per_s": len(rayset.rays) / (1e3 * float(np.median(times))),
                "hit_or_miss_differs": int((hit != expected).sum()),
                "failures": list(trace.failures),
            }
        )
    return rows


def main(
    scene: Annotated[Path, typer.Option(help="The scene that the ray sets were made from.")],
    rays: Annotated[list[Path], typer.Option(help="Ray sets of `treeline rays`.")],
    out: Annotated[Path, typer.Option(help="The record, JSON.")],
    repeats: int = 30,
    warmup_ms: float = 1000.0,
) -> None:
    """Write the record."""
    device = open_device()
    loaded = load_scene(scene)
    bvhs = {name: prepare(loaded, options, "all").bvh for name, options in TREES.items()}
    rows: list[dict[str, Any]] = []
    for path in rays:
        rayset = load(path)
        base = Variant(
            "",
            any_hit=rayset.any_hit,
            sort=not rayset.any_hit,
            loops=default_kernel(device.info).loops,
        )

        def fit(bvh: SceneBvh, base: Variant = base) -> Variant:
            return fit_variant(base, bvh, has_alpha=False)

        default = bvhs["default"]
        cases = [(f"kernel: {k.name}", default, k) for k in kernels(fit(default))]
        rows += run(device, cases, rayset, repeats, warmup_ms)
        trees = [(f"tree: {name}", b, Kernel(name, fit(b))) for name, b in bvhs.items()]
        rows += run(device, trees, rayset, repeats, warmup_ms)
    for name, bvh in bvhs.items():
        stats = bvh.blas_stats[0]
        rows.append(
            {
                "name": f"choices/build/{name}",
                "run_name": f"choices/build/{name}",
                "run_type": "iteration",
                "iterations": 1,
                "real_time": stats.build_ms,
                "cpu_time": stats.build_ms,
                "time_unit": "ms",
                "sah": stats.sah,
                "fill": stats.fill,
                "bytes": stats.bytes,
                "depth": stats.depth,
            }
        )
    context = structure_context(loaded, scene.name, device, BASE, "all")
    document = {"context": context, "benchmarks": rows}
    out.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for row in rows:
        if "mrays_per_s" in row:
            print(f"{row['name']:44s} {row['mrays_per_s']:9.1f} Mrays/s")


if __name__ == "__main__":
    typer.run(main)
