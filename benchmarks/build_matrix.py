"""Is every structure that can be built a valid one that loses no hit? As a record.

`python -m benchmarks.build_matrix [SCENES...] [--thorough] [--out F.json]`

Builders x triangles a block x node formats over each scene (by default the embedded one and all of
the folder of real scenes), as the frame prepares it: grouped, recentred, instances under a TLAS.
The structures are built on the CPU and, of the same triangles, on the GPU. Of scenes of more than
MANY triangles, only a few on the GPU, unless `--thorough`.

`bvh.validate` must find nothing, and what primary, mirror, diffuse, shadow and random rays hit must
be what they hit by the oracle over a reference: the same triangles under binned SAH, one a block,
FP32. Of scenes with few triangles, rays into each BLAS must also hit what the triangle test finds
without any structure. Any fault ends the command with exit code 1.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.record import make_context, put_out
from bvh.blas import LEAF_SIZES, NODE_FORMATS, Blas, BuildOptions
from bvh.brute_force import closest_watertight
from bvh.build import build_blas
from bvh.builders import BUILDERS
from bvh.gpu.blas_builder import GpuBlasBuilder
from bvh.oracle import Trace, trace
from bvh.rays import RayFlags, Rays, make_rays
from bvh.raysets import KINDS, make_rayset
from bvh.scene_bvh import SceneBvh, assemble
from bvh.validate import validate
from engine.gpu.device import Device, open_device
from engine.gpu.errors import UserError
from engine.scene.scene import Scene
from passes.deforming import blas_meshes
from passes.prepare import PreparedScene, prepare
from treeline.scenes import load
from treeline.version import ROOT

REAL_SCENES = ROOT.parent / "shared" / "scenes"
REFERENCE = BuildOptions(leaf=1, nodes="fp32", reinsertion=0)
MANY = 20_000  # triangles that are stored, copies by instances not counted
ROOM = 12_000  # triangles that a builder on the GPU is made for, at least
FEW = 4_000  # triangles of a BLAS that rays are tried against without a structure
SIZE = (40, 25)  # pixels of the view that rays are made for
RANDOM_RAYS = 500
BRUTE_RAYS = 64  # a BLAS
# t is the same but for the order in which a triangle's corners are stored.
SAME_T = 1e-6

# Of large scenes: each builder once, and every block size and format with one of them.
USUAL = (
    ("sah", 2, "auto"),
    ("lbvh", 2, "auto"),
    ("ploc", 2, "auto"),
    ("spatial", 2, "auto"),
    ("ploc", 1, "fp32"),
    ("ploc", 4, "fp16"),
)
EVERY = tuple(
    (b.name, leaf, nodes) for b in BUILDERS for leaf in LEAF_SIZES for nodes in NODE_FORMATS
)

Inputs = tuple[NDArray[np.float32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.bool_]]
Builds = Callable[[BuildOptions, Inputs], Blas]


@dataclass(frozen=True, slots=True)
class Expected:
    """What rays hit in the reference. `closest` rays ask for the nearest hit, `shadow` for any;
    `brute` has rays into single BLASes by number, and their t."""

    closest: Rays
    nearest: Trace
    shadow: Rays
    blocked: NDArray[np.bool_]
    brute: dict[int, tuple[Rays, NDArray[np.float32]]]


def blas_inputs(prepared: PreparedScene) -> list[Inputs]:
    """What each BLAS of the scene was built from."""
    scene, found = prepared.scene, []
    for _, numbers in sorted(blas_meshes(prepared).items()):
        meshes = [scene.meshes[i] for i in numbers]
        counts = [len(mesh.triangles) for mesh in meshes]
        found.append(
            (
                np.concatenate([mesh.positions[mesh.triangles] for mesh in meshes]),
                np.repeat(np.arange(len(meshes), dtype=np.uint32), counts),
                np.concatenate([np.arange(count, dtype=np.uint32) for count in counts]),
                np.array([scene.materials[mesh.material].opaque for mesh in meshes], np.bool_),
            )
        )
    return found


def rebuild(prepared: PreparedScene, options: BuildOptions, build: Builds) -> SceneBvh:
    """The scene's structure with BLASes that `build` makes of the same triangles."""
    bvh = prepared.bvh
    blases = [build(options, inputs) for inputs in blas_inputs(prepared)]
    return assemble(blases, bvh.blas_names, bvh.instances, options)


def aim(triangles: NDArray[np.float32], rng: np.random.Generator, count: int) -> Rays:
    """Rays at points of random triangles, from a few of their sizes away."""
    chosen = triangles[rng.integers(0, len(triangles), count)].astype(np.float64)
    target = (rng.dirichlet((2, 2, 2), count)[:, :, None] * chosen).sum(axis=1)
    size = np.ptp(chosen, axis=1).max(axis=1, keepdims=True)
    way = rng.normal(size=(count, 3)) * size * 4
    return make_rays(target - way, way / np.linalg.norm(way, axis=1, keepdims=True))


def expect(prepared: PreparedScene, seed: int = 1) -> Expected:
    """Rays of the scene's view and random ones, and what they hit."""
    rng = np.random.default_rng(seed)
    bvh = rebuild(prepared, REFERENCE, lambda options, inputs: build_blas(*inputs, options))
    view = prepared.scene
    light = (view.light.center, view.light.half_u, view.light.half_v)
    sets = {
        kind: make_rayset(
            kind, bvh, view.camera.transform, view.camera.y_fov, *SIZE, light, seed
        ).rays
        for kind in KINDS
    }
    low, high = view.bounds()
    origin = rng.uniform(low, high, (RANDOM_RAYS, 3))
    random = make_rays(origin, rng.normal(size=(RANDOM_RAYS, 3)))
    shadow = sets.pop("shadow")
    closest = np.concatenate([*sets.values(), random])
    brute = {}
    for number, inputs in enumerate(blas_inputs(prepared)):
        if 0 < len(inputs[0]) <= FEW:
            rays = aim(inputs[0], rng, BRUTE_RAYS)
            brute[number] = (rays, closest_watertight(inputs[0], rays)[0])
    return Expected(
        closest=closest,
        nearest=trace(bvh.words, closest, flags=RayFlags.OPAQUE),
        shadow=shadow,
        blocked=trace(bvh.words, shadow, any_hit=True, flags=RayFlags.OPAQUE).hit,
        brute=brute,
    )


def compare(bvh: SceneBvh, expected: Expected) -> dict[str, Any]:
    """How many rays differ; ties are hits of another triangle at the same distance."""
    got, want = trace(bvh.words, expected.closest, flags=RayFlags.OPAQUE), expected.nearest
    both = got.hit & want.hit
    far = np.zeros(len(both), np.bool_)
    far[both] = np.abs(got.t[both] - want.t[both]) > SAME_T * want.t[both]
    other = both & ~far & ((got.object != want.object) | (got.primitive != want.primitive))
    shadows = trace(bvh.words, expected.shadow, any_hit=True, flags=RayFlags.OPAQUE)
    brute_differ = 0
    for number, (rays, t) in expected.brute.items():
        alone = trace(bvh.blas_words(number), rays, flags=RayFlags.OPAQUE)
        same = alone.hit == np.isfinite(t)
        hit = np.isfinite(t) & alone.hit
        same[hit] = np.abs(alone.t[hit] - t[hit]) <= SAME_T * t[hit]
        brute_differ += int((~same | (alone.overflows > 0)).sum())
    lost = int((got.overflows > 0).sum() + (shadows.overflows > 0).sum())
    return {
        "rays": len(expected.closest) + len(expected.shadow),
        "hits": int(want.hit.sum() + expected.blocked.sum()),
        "differ": int(
            ((got.hit != want.hit) | far).sum() + (shadows.hit != expected.blocked).sum()
        ),
        "ties": int(other.sum()),
        "lost": lost,
        "brute_rays": BRUTE_RAYS * len(expected.brute),
        "brute_differ": brute_differ,
    }


def judge(bvh: SceneBvh, expected: Expected) -> dict[str, Any]:
    """`compare`, whether the structure is valid, and what it is made of."""
    faults = validate(bvh)
    stats = bvh.blas_stats
    row = {
        "blas": len(stats),
        "blocks": sum(s.blocks for s in stats),
        "nodes_fp16": sum(s.nodes_fp16 for s in stats),
        "nodes_fp32": sum(s.nodes_fp32 for s in stats),
        "invalid": len(faults),
        "first_fault": str(faults[0]) if faults else "",
        **compare(bvh, expected),
    }
    return {**row, "faults": row["invalid"] + row["differ"] + row["lost"] + row["brute_differ"]}


class GpuBuilds:
    """BLASes on the GPU; a builder is kept while the next triangles fit it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._made: dict[BuildOptions, GpuBlasBuilder] = {}

    def __call__(self, options: BuildOptions, inputs: Inputs) -> Blas:
        kept = self._made.get(options)
        if kept is None or kept.capacity < len(inputs[0]):
            kept = GpuBlasBuilder(self.device, max(len(inputs[0]), ROOM), options)
            self._made[options] = kept
        return kept.build(*inputs)

    def forget(self) -> None:
        """Gives the memory of large builders back."""
        self._made = {k: kept for k, kept in self._made.items() if kept.capacity <= ROOM}


def scene_rows(
    scene: Scene, name: str, device: Device, gpu: GpuBuilds, thorough: bool, group: str = "static"
) -> Iterator[dict[str, Any]]:
    """One row a structure."""
    stored = sum(len(mesh.triangles) for mesh in scene.meshes)
    large = stored > MANY and not thorough
    cases: Sequence[tuple[str, int, str]] = USUAL if large else EVERY
    known: dict[bool, tuple[PreparedScene, Expected]] = {}
    for builder, leaf, nodes in cases:
        # Other vertices, by a rounding: other expectations.
        recentred = large or nodes != "fp32"
        if recentred not in known:
            quick = BuildOptions("lbvh", "auto" if recentred else "fp32", 1, reinsertion=0)
            prepared = prepare(scene, quick, group)
            known[recentred] = (prepared, expect(prepared))
        prepared, expected = known[recentred]
        options = BuildOptions(builder=builder, leaf=leaf, nodes=nodes)
        for where in ("gpu",) if large else ("cpu", "gpu"):
            row = {"scene": name, "triangles": stored, "where": where, "builder": builder}
            row |= {"leaf": leaf, "nodes": nodes, "scene_sha256": scene.sha256}
            start = time.perf_counter()
            try:
                if where == "cpu":
                    bvh = prepare(scene, options, group).bvh
                else:
                    near = replace(options, pairing="near", reinsertion=2)
                    bvh = rebuild(prepared, near, gpu)
            except UserError as error:
                yield {**row, "refused": str(error), "faults": 0}
                continue
            row["seconds"] = time.perf_counter() - start
            yield row | judge(bvh, expected)


def find_scenes() -> list[Path | None]:
    """The embedded scene and the real ones that are here."""
    files = sorted(REAL_SCENES.glob("*")) if REAL_SCENES.is_dir() else []
    return [None, *(path for path in files if path.suffix in (".glb", ".obj"))]


def main(
    scenes: Annotated[list[Path] | None, typer.Argument(help="Default: all that are here")] = None,
    thorough: Annotated[bool, typer.Option(help="every structure of large scenes, too")] = False,
    adapter: Annotated[str | None, typer.Option(help="index or part of the name")] = None,
    out: Annotated[Path | None, typer.Option(help="record to write")] = None,
) -> None:
    """Prints one line a structure with faults and one a scene, and the record or where it is."""
    device = open_device(adapter)
    gpu = GpuBuilds(device)
    rows: list[dict[str, Any]] = []
    skipped = {} if REAL_SCENES.is_dir() else {"real scenes": f"{REAL_SCENES.name} is not here"}
    for path in scenes or find_scenes():
        name = "hall" if path is None else path.name
        start, first = time.perf_counter(), len(rows)
        try:
            scene = load(path)
        except UserError as error:
            skipped[name] = str(error)
            continue
        for row in scene_rows(scene, name, device, gpu, thorough):
            rows.append(row)
            if row["faults"]:
                print({k: v for k, v in row.items() if k != "scene_sha256"}, flush=True)
        gpu.forget()
        new = rows[first:]
        print(
            f"{name}: {len(new)} structures, {sum(bool(r['faults']) for r in new)} with faults, "
            f"{sum('refused' in r for r in new)} refused ({time.perf_counter() - start:.0f} s)",
            flush=True,
        )
    faults = sum(row["faults"] for row in rows)
    record = {
        "context": make_context(device),
        "thorough": thorough,
        "skipped": skipped,
        "faults": faults,
        "rows": rows,
    }
    put_out(record, out)
    raise typer.Exit(1 if faults else 0)


if __name__ == "__main__":
    typer.run(main)
