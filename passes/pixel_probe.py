"""What the last frame left behind for one pixel: its G-buffer, its rays and their results.

A kernel looks through each ray queue as the traversal drains it, with the ray type's own record
shader, so that nothing but this pixel's rays is read back: two waits and a few hundred bytes
instead of a queue of 80 MB at 1920x1080.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bvh.rays import RAY
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.gpu.stage import Stage
from engine.gpu.structs import Field, Struct
from passes.frame_data import FrameData
from passes.frame_options import FrameOptions
from passes.queue import QUEUE_HEADER
from passes.rays import RayType
from passes.senders import shared_slots
from passes.slot_counts import SLOT_COUNTS, plane_bytes

U32 = NDArray[np.uint32]

FOUND_RAY = Struct(
    "FoundRay",
    Field("origin", "f32", 3),
    Field("t_min", "f32"),
    Field("direction", "f32", 3),
    Field("t_max", "f32"),
    Field("index", "u32"),  # in the queue
    Field("slot", "u32"),
    Field("found", "u32"),  # 1; 0 where the slot's ray was not sent
)
PIXEL_SLOTS = Struct(
    "PixelSlots",
    Field("own", "u32"),  # the pixel
    Field("shared_slots", "u32"),  # bits of the slots whose ray one of its block may have sent
    Field("count", "u32"),  # slots a pixel
    Field("pad", "u32"),
)
TEXTURES = ("visibility", "surface", "depth")
_TEXEL_BYTES = 16  # of the widest
_ROW_BYTES = 256  # a texture copy's row


def wgsl() -> str:
    return FOUND_RAY.wgsl() + PIXEL_SLOTS.wgsl()


@dataclass(frozen=True, slots=True, eq=False)
class QueuedRay:
    """A ray of the pixel's or its block's; where it is `shared`, another pixel sent it. `ray` is
    one RAY as `load_ray` made it of `record`; `result` the words that the traversal stored;
    `counts` what a counted frame counted for its slot, else empty."""

    ray_type: RayType
    slot: int
    index: int  # in the queue
    ray: NDArray[Any]
    record: U32
    result: U32
    counts: dict[str, int]
    shared: bool = False

    @property
    def pixel(self) -> int:
        """That sent it."""
        return self.slot // self.ray_type.slots_per_pixel

    @property
    def starts_at(self) -> str:
        return self.ray_type.starts_at[self.slot % self.ray_type.slots_per_pixel]


@dataclass(frozen=True, slots=True, eq=False)
class PixelProbe:
    """`visibility` and `surface` are the words of passes/shaders/gbuffer.wgsl; `depth` metres
    along the view axis, 0 where nothing is; `rays` in the order of types, then of slots."""

    x: int
    y: int
    visibility: U32
    surface: U32
    depth: float
    rays: tuple[QueuedRay, ...]


class PixelReader:
    """The search kernels of one device and what they write to."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._stages: dict[tuple[RayType, int, bool], Stage] = {}
        self._pixel: dict[RayType, Any] = {}
        self._found: dict[RayType, Any] = {}

    def read(self, data: FrameData, x: int, y: int) -> PixelProbe:
        """Pixel (x, y) of the frame whose buffers `data` are, after a whole frame. UserError for a
        pixel outside the picture."""
        if not (0 <= x < data.width and 0 <= y < data.height):
            raise UserError(f"pixel {x}, {y} is outside the {data.width}x{data.height} picture")
        texels, found = self._search(data, x, y)
        chosen = [
            (ray, int(row["slot"]), row) for ray in data.rays for row in found[ray] if row["found"]
        ]
        visibility, surface, depth = texels
        own = y * data.width + x
        rays = tuple(replace(ray, shared=ray.pixel != own) for ray in self._fetch(data, chosen))
        return PixelProbe(x, y, visibility, surface, float(depth.view(np.float32)[0]), rays)

    def _search(
        self, data: FrameData, x: int, y: int
    ) -> tuple[list[U32], dict[RayType, NDArray[Any]]]:
        encoder = self.device.wgpu.create_command_encoder(label="pixel")
        for ray in data.rays:
            self._prepare(ray)
            shared = shared_slots(data.options, data.rays, ray)
            slots = (y * data.width + x, shared, ray.slots_per_pixel, 0)
            self.device.write(self._pixel[ray], np.array([slots], PIXEL_SLOTS.dtype))
            encoder.clear_buffer(self._found[ray])
        scope = encoder.begin_compute_pass(label="pixel")
        for ray in data.rays:
            resources = {
                **data.resources,
                "queue": data.resources[ray.queue],
                "results": data.resources[ray.results],
                "pixel": self._pixel[ray],
                "found": self._found[ray],
            }
            arguments = data.resources[f"{ray.name}_arguments"]
            stage = self._stage(ray, data.options)
            stage.dispatch_indirect(scope, resources, arguments)
            stage.bind_groups.forget()
        scope.end()
        sizes = [FOUND_RAY.size * ray.slots_per_pixel for ray in data.rays]
        gathered = self._gathering(_ROW_BYTES * len(TEXTURES) + sum(sizes))
        for row, name in enumerate(TEXTURES):
            encoder.copy_texture_to_buffer(
                {"texture": data.textures[name], "mip_level": 0, "origin": (x, y, 0)},
                {
                    "buffer": gathered,
                    "offset": _ROW_BYTES * row,
                    "bytes_per_row": _ROW_BYTES,
                    "rows_per_image": 1,
                },
                (1, 1, 1),
            )
        at = _ROW_BYTES * len(TEXTURES)
        for ray, size in zip(data.rays, sizes, strict=True):
            encoder.copy_buffer_to_buffer(self._found[ray], 0, gathered, at, size)
            at += size
        raw = self._submit_and_read(encoder, gathered)
        texels = [
            raw[_ROW_BYTES * row :][:_TEXEL_BYTES].view(np.uint32) for row in range(len(TEXTURES))
        ]
        found = {}
        at = _ROW_BYTES * len(TEXTURES)
        for ray, size in zip(data.rays, sizes, strict=True):
            found[ray] = raw[at : at + size].view(FOUND_RAY.dtype)
            at += size
        return texels, found

    def _stage(self, ray: RayType, options: FrameOptions) -> Stage:
        key = ray, options.reflection_block, options.sends_narrow
        if key not in self._stages:
            self._stages[key] = Stage(
                self.device,
                f"pixel/{ray.name}",
                "passes/shaders/find_rays.wgsl",
                slots={"record": ray.record_shader},
                constants={"REFLECTION_BLOCK": key[1], "NARROW_OWN": key[2]},
            )
        return self._stages[key]

    def _prepare(self, ray: RayType) -> None:
        if ray in self._pixel:
            return
        self._pixel[ray] = self.device.buffer("pixel", PIXEL_SLOTS.size, "UNIFORM|COPY_DST")
        self._found[ray] = self.device.buffer("found", FOUND_RAY.size * ray.slots_per_pixel)

    def _fetch(
        self, data: FrameData, chosen: Sequence[tuple[RayType, int, Any]]
    ) -> tuple[QueuedRay, ...]:
        """Records, results and counts of the rays that were found."""
        if not chosen:
            return ()
        encoder = self.device.wgpu.create_command_encoder(label="pixel")
        copies: list[tuple[Any, int, int]] = []  # buffer, offset, bytes
        for ray, slot, row in chosen:
            index = int(row["index"])
            at = slot if ray.results_by_slot else index
            offset = QUEUE_HEADER.size + ray.record.size * index
            copies.append((data.resources[ray.queue], offset, ray.record.size))
            copies.append((data.resources[ray.results], ray.result_bytes * at, ray.result_bytes))
            copies += [(buffer, byte, 4) for _, buffer, byte in slot_counts(data, ray, slot)]
        gathered = self._gathering(sum(size for _, _, size in copies))
        at = 0
        for buffer, offset, size in copies:
            encoder.copy_buffer_to_buffer(buffer, offset, gathered, at, size)
            at += size
        words = self._submit_and_read(encoder, gathered).view(np.uint32)
        rays = []
        at = 0
        for ray, slot, row in chosen:
            record = words[at : at + ray.record.size // 4]
            at += len(record)
            result = words[at : at + ray.result_bytes // 4]
            at += len(result)
            names = [name for name, _, _ in slot_counts(data, ray, slot)]
            counts = dict(zip(names, words[at : at + len(names)].tolist(), strict=True))
            at += len(names)
            sent = np.zeros((), RAY)
            for name in RAY.names or ():
                sent[name] = row[name]
            rays.append(QueuedRay(ray, slot, int(row["index"]), sent, record, result, counts))
        return tuple(rays)

    def _gathering(self, size: int) -> Any:
        return self.device.wgpu.create_buffer(
            label="pixel", size=-(-size // 16) * 16, usage="COPY_SRC|COPY_DST"
        )

    def _submit_and_read(self, encoder: Any, buffer: Any) -> NDArray[np.uint8]:
        self.device.wgpu.queue.submit([encoder.finish()])
        return np.asarray(self.device.read(buffer, np.uint8))


def slot_counts(data: FrameData, ray: RayType, slot: int) -> list[tuple[str, Any, int]]:
    """(name, buffer, byte) of every count that this frame keeps for a slot; none unless counted."""
    if not data.options.count:
        return []
    plane = plane_bytes(data.pixels * ray.slots_per_pixel)
    buffer = data.resources[ray.slot_counts]
    return [(name, buffer, i * plane + 4 * slot) for i, name in enumerate(SLOT_COUNTS)]


_READERS: WeakKeyDictionary[Device, PixelReader] = WeakKeyDictionary()


def probe_pixel(data: FrameData, x: int, y: int) -> PixelProbe:
    """`PixelReader.read` with one reader a device."""
    if data.device not in _READERS:
        _READERS[data.device] = PixelReader(data.device)
    return _READERS[data.device].read(data, x, y)
