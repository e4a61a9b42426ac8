"""A skinned figure refitted frame after frame, beside a fresh build of every frame.

`python -m benchmarks.refit_drift [--scene F.glb] [--clip NAME] [--frames 300] [--out F.json]`

The BLAS that the file's pose gave is posed and refitted in place, 60 frames a second of the clip,
never rebuilt. In every frame the same vertices are built anew, and the same rays (from around the
figure towards it) traced through both on the adapter. `unequal` counts rays for which only one of
the two hits, or t differs by more than CLOSE of itself. With one triangle a block (`--leaf 1`) t
has to be equal bit for bit: `rounded` counts rays for which it is not. With more, a fresh build
may pair other triangles and so turn corners, and the test then adds the same numbers in another
order. Where the primitive differs two triangles lie at that t: `ties`. `sah` is that of exact
boxes, `nodes` the mean box nodes a ray. At the end stands the frame in which the rebuild policy,
asked with these numbers, would have built anew.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.record import make_context, write_record
from bvh.build import Blas, BuildOptions, build_blas
from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.refit_cost import GpuRefitCost
from bvh.gpu.trace_rays import GpuTrace, RayTracer, Variant
from bvh.header import unpack_header
from bvh.rays import MISS_ID, make_rays
from bvh.rebuild_policy import PolicyOptions, RebuildTracker
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance
from bvh.validate import validate
from engine.gpu.device import Device, open_device
from engine.scene.scene import Scene
from passes.deforming import DeformingObjects, deforming_blases
from passes.gpu_scene import GpuScene
from passes.prepare import prepare
from treeline.scenes import load

F32 = NDArray[np.float32]

FRAMES_A_SECOND = 60.0
CLOSE = 1e-5  # what the kernel promises of t is 2e-5 of itself (bvh/shaders/ray_triangle.wgsl)
CHECK_EVERY = 50  # frames between two runs of the validator


def only_deforming(scene: Scene) -> Scene:
    """The scene without what does not deform."""
    assert scene.animation is not None
    kept = [i for i, item in enumerate(scene.instances) if item.lifetime == "deforming"]
    same = {i: i for i in range(len(scene.meshes))}
    instances = tuple(scene.instances[i] for i in kept)
    return replace(scene, instances=instances, animation=scene.animation.renumbered(same, kept))


def around(rng: np.random.Generator, bounds: F32, count: int) -> NDArray[Any]:
    """Rays from a box of three times the size towards points in the middle one."""
    low, size = bounds[0], bounds[1] - bounds[0]
    origin = low + size * (3 * rng.random((count, 3)) - 1)
    target = low + size * rng.random((count, 3))
    return make_rays(origin.astype(np.float32), (target - origin).astype(np.float32))


def one_blas_scene(blas: Blas) -> SceneBvh:
    """The BLAS under one instance."""
    return assemble([blas], ["figure"], [BvhInstance(0)])


class Drift:
    """The figure on the GPU, and what each frame showed."""

    def __init__(self, device: Device, scene: Scene, options: BuildOptions, rays: int) -> None:
        self.device, self.options = device, options
        self.prepared = prepare(only_deforming(scene), options)
        self.gpu = GpuScene(device, self.prepared)
        self.moving = DeformingObjects(device, self.prepared, self.gpu.bases[2])
        # The largest one: Fox and figure have one each.
        blases = deforming_blases(self.prepared)
        self.number = max(blases, key=lambda i: self.prepared.bvh.blas_stats[i].triangles)
        self.cost = GpuRefitCost(self.moving.refits[self.number])
        triangles = blases[self.number]
        counts = [len(part) for part in triangles]
        self.flat = np.concatenate(triangles)
        self.geometry = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
        self.primitive = np.concatenate([np.arange(n, dtype=np.uint32) for n in counts])
        self.opaque = np.ones(len(counts), np.bool_)
        stats = self.prepared.bvh.blas_stats[self.number]
        scene_bytes = 2 * stats.bytes + (1 << 16)  # a fresh build may take more nodes
        variant = Variant(
            "drift",
            has_alpha=False,
            has_fans=options.leaf == 4,
            loops=default_kernel(device.info).loops,
        )
        self.words = device.buffer("traced scene", scene_bytes)
        self.tracer = RayTracer(
            device, np.zeros(0, np.uint32), variant, counted=True, bvh_buffer=self.words
        )
        bounds = unpack_header(self.prepared.bvh.blas_words(self.number)).bounds
        self.tracer.upload(around(np.random.default_rng(5), bounds, rays))

    def frame(self, clip: Any, time: float, check: bool) -> dict[str, Any]:
        """Poses, refits, builds, traces."""
        self.moving.pose(clip, time)
        encoder = self.device.wgpu.create_command_encoder(label="drift")
        scope = encoder.begin_compute_pass(label="drift")
        self.moving.encode(scope, self.gpu.buffers)
        self.cost.encode(scope)
        scope.end()
        self.device.wgpu.queue.submit([encoder.finish()])
        old = self.prepared.bvh.blas_words(self.number)
        words = self.device.read(
            self.gpu.buffers["bvh"],
            offset=int(self.prepared.bvh.blas_bases[self.number]),
            count=len(old),
        )
        stats = self.prepared.bvh.blas_stats[self.number]
        header = unpack_header(words)
        start = int(self.prepared.bvh.blas_bases[self.number]) // 64
        parents = self.prepared.bvh.parents[start : start + header.size_units]
        refitted = Blas(words, parents, stats, header.bounds, header.geometry_count)
        corners = self._vertices()[self.flat]
        fresh = build_blas(corners, self.geometry, self.primitive, self.opaque, self.options)
        scenes = [one_blas_scene(refitted), one_blas_scene(fresh)]
        faults = sum(len(validate(scene)) for scene in scenes) if check else 0
        moved, built = (self._trace(scene) for scene in scenes)
        hit = built.hits["object"] != MISS_ID
        found = hit == (moved.hits["object"] != MISS_ID)
        both = found & hit
        one, other = (np.where(both, trace.hits["t"], 0) for trace in (moved, built))
        found &= np.abs(one - other) <= CLOSE * np.abs(other)
        same = (moved.hits["object"] == built.hits["object"]) & (
            moved.hits["primitive"] == built.hits["primitive"]
        )
        assert moved.nodes is not None and built.nodes is not None
        return {
            "hits": int(hit.sum()),
            "unequal": int((~found).sum()),
            "rounded": int((found & (one != other)).sum()),
            "ties": int((found & ~same).sum()),
            "faults": faults,
            "failed_traces": len(moved.failures) + len(built.failures),
            "sah_refit": self.cost.read(),
            "sah_rebuild": fresh.stats.sah,
            "nodes_refit": float(moved.nodes.mean()),
            "nodes_rebuild": float(built.nodes.mean()),
        }

    def _vertices(self) -> F32:
        first = 4 * self.gpu.bases[2]
        count = len(self.prepared.pack.vertices)
        raw = self.device.read(self.gpu.buffers["geometry"], np.float32, first, 8 * count)
        return np.asarray(raw).reshape(-1, 8)[:, :3]

    def _trace(self, scene: SceneBvh) -> GpuTrace:
        # One buffer for all: bind groups are kept, and keep what they name.
        self.device.write(self.words, scene.words)
        return self.tracer.read(self.tracer.dispatch())


def would_rebuild(frames: list[dict[str, Any]], sah: float, options: PolicyOptions) -> list[str]:
    """What the policy says to the curve up to its first build, one line each."""
    tracker = RebuildTracker("figure", "deforming", options)
    tracker.built(-options.least_frames, sah=sah, visits=frames[0]["nodes_refit"])
    for number, frame in enumerate(frames):
        tracker.measured(sah=frame["sah_refit"], visits=frame["nodes_refit"])
        decision = tracker.decide(number, changed=True)
        if decision.action == "rebuild":
            return [str(decision)]
    return []


def main(
    scene: Annotated[Path | None, typer.Option(help="A .glb; the embedded hall without.")] = None,
    clip: Annotated[str | None, typer.Option(help="Its first clip without.")] = None,
    frames: int = 300,
    rays: int = 20_000,
    builder: str = "sah",
    leaf: int = 2,
    reinsertion: int = 5,
    adapter: str | None = None,
    out: Path | None = None,
) -> None:
    """Prints the drift and writes a record."""
    device = open_device(adapter)
    loaded = load(scene)
    if loaded.animation is None:
        raise typer.BadParameter(f"{loaded.name} has no animation")
    moves = loaded.animation.clip(clip)
    options = BuildOptions(builder=builder, leaf=leaf, reinsertion=reinsertion)
    drift = Drift(device, loaded, options, rays)
    stats = drift.prepared.bvh.blas_stats[drift.number]
    found = []
    for number in range(frames):
        check = number % CHECK_EVERY == 0 or number == frames - 1
        found.append(drift.frame(moves, number / FRAMES_A_SECOND, check))
    ratio = np.array([f["sah_refit"] / f["sah_rebuild"] for f in found])
    visits = np.array([f["nodes_refit"] / f["nodes_rebuild"] for f in found])
    counted = ("hits", "unequal", "rounded", "ties", "faults", "failed_traces")
    totals = {key: sum(frame[key] for frame in found) for key in counted}
    policy = would_rebuild(found, stats.sah, PolicyOptions())
    record = {
        "context": make_context(device),
        "scene": loaded.name,
        "clip": moves.name,
        "triangles": stats.triangles,
        "blocks": stats.blocks,
        "leaf": leaf,
        "builder": options.builder,
        "reinsertion": reinsertion,
        "frames": frames,
        "rays_a_frame": rays,
        "totals": totals,
        "sah_ratio": {"median": float(np.median(ratio)), "worst": float(ratio.max())},
        "visits_ratio": {"median": float(np.median(visits)), "worst": float(visits.max())},
        "policy": policy,
        "drift": {
            key: [round(f[key], 4) for f in found]
            for key in ("sah_refit", "sah_rebuild", "nodes_refit", "nodes_rebuild")
        },
    }
    print(f"{loaded.name}, {moves.name}: {frames} frames, {totals}")
    print(f"SAH refit / rebuild {record['sah_ratio']}, node visits {record['visits_ratio']}")
    print("\n".join(policy) or "the policy would not rebuild")
    if out:
        write_record(out, record)


if __name__ == "__main__":
    typer.run(main)
