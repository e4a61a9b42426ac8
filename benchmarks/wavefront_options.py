"""Which ways through the ray queues pay: types mixed, compaction by subgroup, rays and hits sorted.

`python -m benchmarks.wavefront_options [--scene F --assets D] [--size WxH] [--out F.json]`

Every option against the default, in one process, frames taking turns; with and without occlusion
rays. First correctness: the same hits by slot and the same picture, timed and counted, else the
command ends with exit code 1. Then for each option

* the net: what all passes but the G-buffer's and updates' take, the option's own passes (keys,
  radix sort, copy) among them; median, spread (5th to 95th percentile), and in how many turns it
  was faster than the default of the same turn;
* by kind of pass, before and after: the term of the cost that the option claims to change beside
  what it takes itself;
* counted, where that can be: nodes (which no option may change), and lane coherence: of the box
  nodes that groups of 32 neighbours in the queue spend time on, the part that each lane needs
  itself (mean over maximum); distinct materials in 32 neighbours that are shaded together.

`--again FIRST.json` runs the options in the opposite order, in this fresh process, and adds what it
finds to the first record, which `--out` then holds whole.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.record import make_context, put_out
from bvh.build import BuildOptions
from bvh.rays import MISS_ID
from engine.gpu.device import Device, open_device
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.option_list import find_option
from passes.prepare import PreparedScene
from passes.rays import REFLECTION, frame_rays
from passes.sorting import hits_of
from treeline import structures
from treeline.report_context import plain
from treeline.scenes import load

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "mixed": {"passes": "mixed"},
    "subgroup": {"compaction": "subgroup"},
    "coarse": {"ray_sort": "coarse"},
    "fine": {"ray_sort": "fine"},
    "coarse, reflection": {"ray_sort": "coarse", "sorted_rays": "reflection"},
    "material": {"hit_sort": "material"},
    "mixed and coarse, reflection": {
        "passes": "mixed",
        "ray_sort": "coarse",
        "sorted_rays": "reflection",
    },
    "all": {
        "passes": "mixed",
        "compaction": "subgroup",
        "ray_sort": "coarse",
        "hit_sort": "material",
    },
}
LANES = 32
# Passes by the first part of their names; shading's keys and sort are told apart from it.
LEFT_OUT = ("gbuffer", "update", "motion")


@dataclass(frozen=True, slots=True)
class Case:
    """A variant's frames of one workload."""

    name: str
    frame: HybridFrame
    options: FrameOptions


def kind_of(name: str) -> str:
    """What a pass is for: one of rays, arguments, sort, traverse, shade, composite."""
    parts = name.split("/")
    return "sort" if parts[-1] in ("keys", "radix", "gather") else parts[0]


def by_kind(stats: FrameStats) -> dict[str, float]:
    """Milliseconds by kind of pass, and their sum as `net`."""
    found: dict[str, float] = {}
    for name, ms in stats.passes.items():
        kind = kind_of(name)
        if kind not in LEFT_OUT:
            found[kind] = found.get(kind, 0.0) + ms
    return {**found, "net": sum(found.values())}


def draw(frame: HybridFrame) -> FrameStats:
    stats = frame.run(0)
    while stats.dropped:  # the next one has room
        stats = frame.run(0)
    if not stats.valid:
        raise SystemExit(f"{frame.options}: {'; '.join(stats.failures)}")
    return stats


def coherence(values: NDArray[Any]) -> float:
    """Mean over maximum in groups of LANES neighbours: what part of a group's time a lane needs."""
    whole = values[: len(values) // LANES * LANES].reshape(-1, LANES).astype(np.float64)
    return float(whole.sum() / max(1.0, LANES * whole.max(axis=1, initial=0.0).sum()))


def materials_a_group(frame: HybridFrame) -> float:
    """Distinct materials in groups of LANES hits as they are shaded, misses as one of their own."""
    data = frame.data
    hits = data.read_results(REFLECTION, data.read_records(REFLECTION))
    if frame.options.hit_sort != "none":
        order = data.resources[f"{hits_of(REFLECTION)}_order"]
        hits = hits[data.device.read(order, np.uint32, count=len(hits))]
    scene = frame.scene.prepared.scene
    of_object = np.array([scene.meshes[item.mesh].material for item in scene.instances] + [-1])
    objects = np.where(hits["object"] == MISS_ID, len(of_object) - 1, hits["object"])
    groups = of_object[objects[: len(objects) // LANES * LANES]].reshape(-1, LANES)
    ordered = np.sort(groups, axis=1)
    return float(1.0 + (np.diff(ordered, axis=1) != 0).sum(axis=1).mean()) if len(groups) else 0.0


def count(case: Case, on_gpu: GpuScene, device: Device, prepared: PreparedScene) -> dict[str, Any]:
    """What a counted frame says, and that it hits what the timed one hits."""
    frame = HybridFrame(device, prepared, replace(case.options, count=True), on_gpu)
    stats = draw(frame)
    found: dict[str, Any] = {"hash": frame.result_hash()}
    for ray in frame_rays(case.options):
        nodes = frame.data.read_slot_counts(ray, "nodes")
        slots = frame.data.read_records(ray)[ray.slot_field]
        found[ray.name] = {
            "rays": stats.rays[ray.name].rays,
            "nodes": stats.rays[ray.name].nodes,
            "lane_coherence": coherence(nodes[slots]),
        }
    return found | {"materials_a_group": materials_a_group(frame)}


def check_same(cases: list[Case]) -> None:
    """Hits by slot and pictures are the default's."""
    first = cases[0].frame
    expected, picture = first.result_hash(), first.image()
    for case in cases[1:]:
        if case.frame.result_hash() != expected:
            raise SystemExit(f"{case.name}: other hits than by default")
        if not np.array_equal(case.frame.image(), picture):
            raise SystemExit(f"{case.name}: another picture than by default")


def summary(values: list[float]) -> dict[str, float]:
    low, middle, high = np.percentile(values, (5, 50, 95))
    return {"median": float(middle), "low": float(low), "high": float(high)}


def claims(options: dict[str, Any]) -> list[str]:
    return sorted({find_option(name).cost_term for name in options})


def measure(
    device: Device, prepared: PreparedScene, base: FrameOptions, names: list[str], repeats: int
) -> list[dict[str, Any]]:
    """One row a variant, the default first."""
    on_gpu = GpuScene(device, prepared)
    cases = []
    for name in names:
        options = replace(base, **VARIANTS[name])
        cases.append(Case(name, HybridFrame(device, prepared, options, on_gpu), options))
    for case in cases:
        draw(case.frame)
    check_same(cases)
    counted = {case.name: count(case, on_gpu, device, prepared) for case in cases}
    if len({item["hash"] for item in counted.values()} | {cases[0].frame.result_hash()}) != 1:
        raise SystemExit("counted frames hit something else")
    # An idle GPU clocks down.
    began = time.perf_counter()
    while not device.info.is_cpu and time.perf_counter() - began < 1.0:
        draw(cases[0].frame)
    turns: dict[str, list[dict[str, float]]] = {case.name: [] for case in cases}
    passes: dict[str, list[dict[str, float]]] = {case.name: [] for case in cases}
    for _ in range(repeats):
        for case in cases:
            stats = draw(case.frame)
            turns[case.name].append(by_kind(stats))
            passes[case.name].append(stats.passes)
    check_same(cases)  # after many frames, too
    first = turns[cases[0].name]
    rows = []
    for case in cases:
        own = turns[case.name]
        pairs = [b["net"] - a["net"] for a, b in zip(first, own, strict=True)]
        rows.append(
            {
                "variant": case.name,
                "options": VARIANTS[case.name],
                "claims": claims(VARIANTS[case.name]),
                "net_ms": summary([turn["net"] for turn in own]),
                "net_change_ms": summary(pairs),
                "faster_turns": sum(pair < 0 for pair in pairs) / len(pairs),
                "kinds_ms": {k: float(np.median([turn[k] for turn in own])) for k in own[0]},
                "passes_ms": {
                    name: float(np.median([turn[name] for turn in passes[case.name]]))
                    for name in passes[case.name][0]
                },
                "counted": {k: v for k, v in counted[case.name].items() if k != "hash"},
            }
        )
    return rows


def main(
    scene: Annotated[Path | None, typer.Option(help="Default: the embedded hall.")] = None,
    assets: Annotated[str | None, typer.Option(help="A folder that scene files may use.")] = None,
    size: str = "1920x1080",
    repeats: int = 60,
    adapter: str | None = None,
    variants: Annotated[str, typer.Option(help="Some of them, with semicolons.")] = ";".join(
        VARIANTS
    ),
    again: Annotated[Path | None, typer.Option(help="The record of the first process.")] = None,
    out: Path | None = None,
) -> None:
    device = open_device(adapter)
    names = [name for name in VARIANTS if not variants or name in variants.split(";")]
    if "subgroup" not in device.features:
        names = [n for n in names if VARIANTS[n].get("compaction") != "subgroup"]
    names = ["default", *[name for name in names if name != "default"][:: -1 if again else 1]]
    width, height = (int(part) for part in size.split("x"))
    loaded = load(scene, [assets] if assets else ())
    options = BuildOptions()
    prepared = structures.build(loaded, options, "static", device=device, or_cpu=True).prepared
    workloads = {}
    for occlusion in (False, True):
        base = FrameOptions(width, height, occlusion=occlusion)
        rows = measure(device, prepared, base, names, repeats)
        workloads["occlusion" if occlusion else "no occlusion"] = rows
        for row in rows:
            net, change = row["net_ms"], row["net_change_ms"]
            print(
                f"{loaded.name} {'+ occlusion' if occlusion else ''} {row['variant']:28s} net "
                f"{net['median']:.3f} ({net['low']:.3f} to {net['high']:.3f}) ms, change "
                f"{change['median']:+.3f}, faster in {row['faster_turns']:.0%}; "
                + ", ".join(f"{k} {v:.3f}" for k, v in row["kinds_ms"].items() if k != "net")
            )
    record: dict[str, Any] = {
        "context": make_context(device)
        | plain(
            {
                "scene": loaded.name,
                "scene_sha256": loaded.sha256,
                "width": width,
                "height": height,
                "repeats": repeats,
                "equal_hits_and_pictures": True,
            }
        ),
        "workloads": workloads,
    }
    if again:
        record = json.loads(again.read_text()) | {"fresh_process": workloads}
    put_out(record, out)


if __name__ == "__main__":
    typer.run(main)
