"""The rays of one pixel of a frame, as the frame traced them, and every step that one of them took.

Children follow their parents: the reflection ray starts at what the primary ray sees, a shadow ray
at either one's hit. What a ray carries is enough to trace it again after the frame has moved on:
its record, the scene's bytes and the kernel's constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.ray_log import without_start
from bvh.gpu.trace_rays import HIT
from bvh.layout import UNIT_BYTES
from bvh.oracle import Trace
from bvh.ray_steps import Step, oracle_steps
from bvh.rays import MISS_ID, RayFlags, make_rays
from bvh.scene_bvh import SceneBvh
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from passes.frame_uniforms import pack_uniforms
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.pixel_probe import PixelProbe, QueuedRay, probe_pixel
from passes.traverse_passes import traversal
from passes.twins.camera import camera_direction
from passes.twins.rays.reflection import INFINITE_T
from passes.twins.traverse_queue import alpha_test

PRIMARY = "primary"


@dataclass(frozen=True, slots=True, eq=False)
class TracedScene:
    """What a frame's rays were traced through: `bvh` are the bytes of TLAS and BLASes, `uniforms`
    the frame's uniform block, one record."""

    scene: GpuScene
    bvh: SceneBvh
    uniforms: NDArray[Any]

    def bvh_buffer(self, device: Device) -> Any:
        """The same bytes on the GPU: the scene's own, or a copy where these have moved on."""
        if self.bvh is self.scene.prepared.bvh:
            return self.scene.buffers["bvh"]
        return device.upload("bvh", self.bvh.words)

    def instance_of(self, object: int) -> int:
        """The TLAS instance that holds an object of the scene; -1 for MISS_ID."""
        if object == MISS_ID:
            return -1
        firsts = [i.first_object for i in self.bvh.instances]
        order = np.argsort(firsts, kind="stable")
        return int(order[np.searchsorted(np.array(firsts)[order], object, side="right") - 1])


@dataclass(frozen=True, slots=True, eq=False)
class PixelRay:
    """`kind` says in words what the ray is for; `parent` is its parent's place in the pixel's list
    and `depth` how many parents it has. `t_max` of what the camera and reflections send is the
    largest float32. `hit`: any-hit rays were stopped, and know no more (`t` NaN, ids MISS_ID);
    `t` is in units of `direction`. `counts` are those of the ray's slot in a counted frame."""

    ray_type: str
    kind: str
    slot: int  # -1: no queue held it
    index: int  # in its queue
    parent: int
    depth: int
    ray: NDArray[Any]  # [] of RAY
    any_hit: bool
    hit: bool
    t: float
    object: int
    primitive: int
    instance: int
    counts: Mapping[str, int]
    kernel: tuple[Mapping[str, str], Mapping[str, float]]  # slots and constants
    traced: TracedScene
    queued: QueuedRay | None = None

    @property
    def origin(self) -> NDArray[np.float32]:
        return np.asarray(self.ray["origin"])

    @property
    def direction(self) -> NDArray[np.float32]:
        return np.asarray(self.ray["direction"])

    @property
    def t_max(self) -> float:
        return float(self.ray["t_max"])

    @property
    def constants(self) -> Mapping[str, float]:
        return self.kernel[1]

    @property
    def contract(self) -> bool:
        """Traced through the instruction, whose kernel keeps no step log."""
        return "GROWTH" in self.constants

    @property
    def start_byte(self) -> int:
        """The instance node that the kernel starts inside, 0 where it starts at the TLAS."""
        if self.constants["TWO_LEVEL"]:
            return 0
        return UNIT_BYTES * int(self.constants["START_INSTANCE_UNIT"])

    @property
    def result(self) -> str:
        """What came of it, in a few words."""
        if self.any_hit:
            return "occluded" if self.hit else "free"
        if not self.hit:
            return "miss"
        return f"hit at t = {self.t:.6g}, object {self.object}, primitive {self.primitive}"

    def point(self, t: float) -> NDArray[np.float64]:
        """[3] along the ray, world space."""
        return self.origin.astype(np.float64) + t * self.direction.astype(np.float64)


def traced_scene(frame: HybridFrame) -> TracedScene:
    """What the frame's last run traced through. UserError where the scene has moved on since."""
    data, scene = frame.data, frame.scene
    if not _in_pose(frame):
        raise UserError("the scene has moved on since this picture: stop it to pick a pixel")
    uniforms = pack_uniforms(frame.inputs, data.width, data.height, scene.bases)
    return TracedScene(scene, frame.bvh(), uniforms)


def _in_pose(frame: HybridFrame) -> bool:
    """Whether a scene that moves is still where the frame had it: others may show it, too."""
    moving, inputs = frame.moving, frame.inputs
    if moving is None or inputs.clip is None:
        return moving is None or moving.pose.clip is None
    clip = moving.animation.clip(inputs.clip)
    return moving.pose.key == (clip.name, clip.wrapped(inputs.time, inputs.loop))


def pixel_rays(frame: HybridFrame, x: int, y: int) -> tuple[PixelRay, ...]:
    """All rays of pixel (x, y) of the frame's last run, parents before their children. UserError
    for a pixel outside the picture."""
    return list_rays(frame, probe_pixel(frame.data, x, y), traced_scene(frame))


def list_rays(frame: HybridFrame, probe: PixelProbe, traced: TracedScene) -> tuple[PixelRay, ...]:
    """The rays of a pixel that was probed; the first is the primary ray."""
    rays = [_primary(frame, probe, traced)]

    def add(parent: int) -> None:
        for queued in probe.rays:
            if queued.starts_at == rays[parent].ray_type:
                rays.append(_from_queue(frame, queued, traced, parent, rays[parent].depth + 1))
                add(len(rays) - 1)

    add(0)
    return tuple(rays)


def _primary(frame: HybridFrame, probe: PixelProbe, traced: TracedScene) -> PixelRay:
    uniforms = traced.uniforms
    direction = camera_direction(uniforms, np.array([probe.x]), np.array([probe.y]))
    object, primitive = int(probe.visibility[0]), int(probe.visibility[1])
    hit = object != MISS_ID
    return PixelRay(
        ray_type=PRIMARY,
        kind="primary ray"
        if frame.options.gbuffer == "rays"
        else "primary ray (rasterised: the ray through the pixel's centre)",
        slot=-1,
        index=-1,
        parent=-1,
        depth=0,
        ray=make_rays(uniforms["camera_origin"][:3], direction, 0.0, INFINITE_T)[0],
        any_hit=False,
        hit=hit,
        # One unit of the direction is one metre along the view axis, as depth is.
        t=probe.depth if hit else float("inf"),
        object=object,
        primitive=primitive,
        instance=traced.instance_of(object),
        counts={},
        kernel=traversal(frame.scene, replace(frame.options, count=False), None),
        traced=traced,
    )


def _from_queue(
    frame: HybridFrame, queued: QueuedRay, traced: TracedScene, parent: int, depth: int
) -> PixelRay:
    ray_type = queued.ray_type
    found: dict[str, Any] = {"t": float("nan"), **dict.fromkeys(_IDS, MISS_ID)}
    if ray_type.any_hit:
        hit = int(queued.result[0]) == 0
    else:
        record = queued.result.view(HIT.dtype)[0]
        hit = int(record["object"]) != MISS_ID
        found = {"t": float(record["t"]) if hit else float("inf")}
        found |= {name: int(record[name]) for name in _IDS}
    way = f"{ray_type.name} ray from the {queued.starts_at} ray's hit"
    if ray_type.goes_to is not None:
        way += ray_type.goes_to(queued.record.view(ray_type.record.dtype)[0], traced.uniforms)
    return PixelRay(
        ray_type=ray_type.name,
        kind=way + _whose(queued, traced),
        slot=queued.slot,
        index=queued.index,
        parent=parent,
        depth=depth,
        ray=queued.ray,
        any_hit=ray_type.any_hit,
        hit=hit,
        counts=queued.counts,
        kernel=traversal(frame.scene, replace(frame.options, count=False), ray_type),
        traced=traced,
        queued=queued,
        **found,
    )


def _whose(queued: QueuedRay, traced: TracedScene) -> str:
    """Which pixel sent a ray that the picked one shares, in words."""
    y, x = divmod(queued.pixel, int(traced.uniforms["width"]))
    return f", sent by pixel {x}, {y} for its block" if queued.shared else ""


_IDS = ("object", "primitive", "instance")


def trace_steps(ray: PixelRay) -> tuple[list[Step], Trace]:
    """Every step of the ray through the oracle, from the TLAS's root on, and its result."""
    arrays, constants = ray.traced.scene.arrays, ray.constants
    accept = None
    if constants["HAS_ALPHA"]:
        accept = alpha_test(arrays["alpha"], arrays["texels"])
    return oracle_steps(
        ray.traced.bvh.words,
        ray.ray.reshape(1),
        # The instruction sorts all four children.
        kernel_order=not ray.contract,
        any_hit=bool(constants["ANY_HIT"]),
        sort=bool(constants["SORT"]),
        mask=int(constants["RAY_MASK"]),
        flags=RayFlags(int(constants["RAY_FLAGS"])),
        accept=accept,
    )


def steps(ray: PixelRay) -> list[Step]:
    """The steps of the ray by the oracle, in the order of the kernel. Where that starts inside the
    scene's only instance they are those inside it: none for a ray that passes its box by, which
    costs the kernel the BLAS's root."""
    return without_start(trace_steps(ray)[0], ray.start_byte)
