"""The frame's buffers and textures, and what can be read out of them.

Pixel-indexed buffers hold pixel y * width + x. Everything that grows with the picture is checked
against the adapter's limits before it is allocated.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.counters import counter_words, table_words
from engine.gpu.device import Device
from engine.gpu.errors import LimitError, UserError
from passes.candidates import CANDIDATE, queue_names, round_count
from passes.frame_options import PRIMARY, FrameOptions
from passes.frame_stats import FrameStats
from passes.frame_uniforms import FRAME_UNIFORMS, FrameInputs, UniformRecord
from passes.gpu_scene import GpuScene
from passes.hit_records import upload_hit_records
from passes.light_history import LightHistory, filter_bytes
from passes.lights_apart import LIGHT_BYTES, LIGHTS_APART, NO_REFLECTION_QUEUE
from passes.lobe_table import upload_lobe_table
from passes.mixed import MIXED, MIXED_ARGUMENTS, mixes
from passes.motion import PreviousPicture
from passes.motion_records import MOTION_BYTES
from passes.node_histogram import BINS
from passes.queue import QUEUE_HEADER
from passes.raster_redraw import RasterRedraw
from passes.raster_targets import RasterTargets
from passes.rays import REFLECTION, SHADOW, RayType, frame_rays
from passes.shadow_slots import shadow_slots
from passes.slot_counts import SLOT_COUNTS, buffer_bytes, plane_bytes
from passes.sorting import cleared_bytes, sort_buffers

TEXTURES = {
    "ids": "rg32uint",
    "visibility": "rgba32uint",
    "surface": "rgba32uint",
    "depth": "r32float",
    "raster_depth": "depth32float",
}
PIXEL_BYTES = {"accumulated": 16, "picture": 4}


class FrameData:
    """Allocated once for a picture size; queues grow after a frame that overflowed. `rays` are the
    types whose rays the frame sends."""

    def __init__(self, device: Device, scene: GpuScene, options: FrameOptions) -> None:
        self.device = device
        self.scene = scene
        self.options = options
        self.rays = frame_rays(options)
        self.width, self.height = options.width, options.height
        self.pixels = self.width * self.height
        self.objects, object_rows = scene.prepared.objects()
        self.counters = counter_words(object_rows)
        self.capacities = {
            ray.name: max(1, int(self.pixels * ray.slots_per_pixel * options.queue_fraction))
            for ray in self.rays
        }
        self.rounds = round_count(options, scene.rays_ask)
        # Few rays of a frame meet candidates; where more do, the next frame has room for all.
        self.waiting = {name: -(-count // 4) for name, count in self.capacities.items()}
        self._posed = 0  # MovingScene.serial when the last frame began
        self._check_limits()
        self.textures: dict[str, Any] = {}
        self.resources: dict[str, Any] = dict(scene.buffers)
        self._uniforms = UniformRecord(self.width, self.height, scene.bases)
        self.resources["frame"] = device.buffer("frame", FRAME_UNIFORMS.size, "UNIFORM|COPY_DST")
        for name, texel_format in TEXTURES.items():
            self._add_texture(name, texel_format)
        for name, size in self._pixel_bytes().items():
            self.resources[name] = device.buffer(name, size * self.pixels)
        self.resources["primary_failed"] = device.buffer("primary_failed", 4)
        self.textures["lobe_table"] = upload_lobe_table(device)
        self.resources["lobe_table"] = self.textures["lobe_table"].create_view()
        self.given = (*scene.buffers, "frame", "accumulated", "lobe_table")
        if options.hit_table == "fine":
            self.textures["hit_records"] = upload_hit_records(device, scene.prepared)
            self.resources["hit_records"] = self.textures["hit_records"].create_view()
            self.given = (*self.given, "hit_records")
        self.targets = RasterTargets(device, options, scene.moving is not None)
        self._redraw = RasterRedraw(self.targets, scene.prepared) if self.targets.targets else None
        self.resources |= self.targets.resources
        self.given = (*self.given, *self.targets.given)
        self._add_raster_shadows()
        self.previous: PreviousPicture | None = None
        if options.finds_motion:
            self.previous = PreviousPicture(device, scene, self.width / self.height)
            self.resources |= self.previous.resources
            self.given = (*self.given, *self.previous.resources)
            self.resources["motion"] = device.buffer("motion", MOTION_BYTES * self.pixels)
        self.light_history: LightHistory | None = None
        if options.filtered:
            self.light_history = LightHistory(device, options, scene.prepared.diagonal)
            self.resources |= self.light_history.resources
            self.given = (*self.given, *self.light_history.given)
        # Only a queue's header is cleared: its records are overwritten before they are read.
        self.cleared: dict[str, int | None] = {"primary_failed": None, **self.targets.cleared}
        for ray in self.rays:
            self._add_queue(ray)
            slots = self.pixels * ray.slots_per_pixel
            self.resources[ray.results] = device.buffer(ray.results, ray.result_bytes * slots)
            self._add_arguments(ray.name)
            if options.count:
                self.resources[f"{ray.name}_counters"] = device.upload("counters", self.counters)
                self.resources[ray.slot_counts] = device.buffer(
                    ray.slot_counts, buffer_bytes(slots)
                )
                histogram = f"{ray.name}_node_histogram"
                self.resources[histogram] = device.buffer(histogram, 4 * BINS)
                self.cleared |= {
                    f"{ray.name}_counters": 4 * table_words(len(self.objects)),
                    ray.slot_counts: None,
                    histogram: None,
                }
            self.cleared[ray.queue] = QUEUE_HEADER.size
            self.cleared |= cleared_bytes(options, ray)
            self._add_candidates(ray)
            for name in self.candidate_queues(ray):
                self._add_arguments(name)
                self.cleared[name] = QUEUE_HEADER.size
        if options.lights_apart and not REFLECTION.is_sent(options):
            size = QUEUE_HEADER.size
            self.resources[NO_REFLECTION_QUEUE] = device.buffer(NO_REFLECTION_QUEUE, size)
            self.cleared[NO_REFLECTION_QUEUE] = None
        if mixes(options, scene.rays_ask):
            for name in MIXED:
                self._add_arguments(name, MIXED_ARGUMENTS.size)

    def _add_raster_shadows(self) -> None:
        """What stands in the place of shadow rays' results."""
        if self.options.shadows == "map":
            size = SHADOW.result_bytes * SHADOW.of(self.options).slots_per_pixel * self.pixels
            self.resources[SHADOW.results] = self.device.buffer(SHADOW.results, size)
            self.given = (*self.given, SHADOW.results)

    def _check_limits(self) -> None:
        side = self.device.limits["max-texture-dimension-2d"]
        size = f"{self.width}x{self.height}"
        if max(self.width, self.height) > side:
            raise LimitError(
                f"size {size} is beyond {self.device.info.adapter}'s largest picture, {side} a side"
            )
        for ray in self.rays:
            self.device.check_binding(f"size {size}: the {ray.name} queue", self._queue_bytes(ray))
            if self.options.count:
                slots = self.pixels * ray.slots_per_pixel
                self.device.check_binding(
                    f"size {size}: the counts of {ray.name} rays", buffer_bytes(slots)
                )
        motion = {"motion": MOTION_BYTES} if self.options.finds_motion else {}
        sizes = self._pixel_bytes() | motion | filter_bytes(self.options)
        for name, item in sizes.items():
            self.device.check_binding(f"size {size}: the {name} buffer", item * self.pixels)

    def _pixel_bytes(self) -> dict[str, int]:
        slots = shadow_slots(self.options)
        arriving = {"direct": slots.direct_bytes, "reflected": slots.reflected_bytes}
        lights = LIGHTS_APART.values() if self.options.lights_apart else ()
        return arriving | PIXEL_BYTES | dict.fromkeys(lights, LIGHT_BYTES)

    def _queue_bytes(self, ray: RayType) -> int:
        return QUEUE_HEADER.size + ray.record.size * self.capacities[ray.name]

    def _add_queue(self, ray: RayType) -> None:
        self.resources[ray.queue] = self.device.buffer(ray.queue, self._queue_bytes(ray))
        sizes = sort_buffers(self.options, ray, self.capacities[ray.name])
        for name, size in sizes.items():
            self.resources[name] = self.device.buffer(name, size)

    def _add_arguments(self, queue: str, size: int = 12) -> None:
        name = f"{queue}_arguments"
        usage = "STORAGE|INDIRECT|COPY_SRC|COPY_DST"
        self.resources[name] = self.device.buffer(name, size, usage)

    def candidate_queues(self, ray: RayType) -> tuple[str, ...]:
        """Of all rounds; none where rays test inline."""
        return tuple(name for i in range(self.rounds) for name in queue_names(ray.name, i))

    def _add_candidates(self, ray: RayType) -> None:
        size = QUEUE_HEADER.size + CANDIDATE.size * self.waiting[ray.name]
        for name in self.candidate_queues(ray):
            self.device.check_binding(f"the candidates of {ray.name} rays", size)
            self.resources[name] = self.device.buffer(name, size)

    def _add_texture(self, name: str, texel_format: str) -> None:
        usage = "TEXTURE_BINDING|RENDER_ATTACHMENT|COPY_SRC"
        if name != "raster_depth":
            usage += "|STORAGE_BINDING"
        texture = self.device.wgpu.create_texture(
            label=name, size=(self.width, self.height, 1), format=texel_format, usage=usage
        )
        self.textures[name] = texture
        self.resources[name] = texture.create_view()

    def write_inputs(
        self, inputs: FrameInputs, *, again: bool = False, dropped: bool = False
    ) -> None:
        """Before a frame is encoded: its uniforms, the pose of a scene that moves, and what it
        remembers. `again`: it takes the last one's place, whose rays were `dropped` or which gave
        no picture. UserError for a clip that the scene does not have."""
        moving = self.scene.moving
        if moving:
            self._posed = moving.begin(
                inputs.clip,
                inputs.time,
                loop=inputs.loop,
                # Nothing is rebuilt where nobody traces it.
                update=self.options.update if self.options.traces else "refit",
                again=inputs.sample_count > 1,
            )
        elif inputs.clip is not None:
            name = self.scene.prepared.scene.name
            raise UserError(f"{name}: no clip '{inputs.clip}', nothing moves here")
        if self.previous is not None:
            self.previous.begin(inputs, again=again or inputs.sample_count > 1)
        if self.light_history is not None:
            pose = moving.pose if moving else None
            self.light_history.begin(
                inputs, pose, self.scene.hidden, whole=not again, dropped=dropped
            )
        record = self._uniforms.pack(inputs)
        self.device.write(self.resources["frame"], record)
        if self._redraw is not None:
            pose = moving.pose if moving else None
            self._redraw.write(inputs, record, pose, self.scene.hidden)

    @property
    def history_lost(self) -> str:
        """Why the newest frame remembers no light; "" where it does, or is not to."""
        return self.light_history.lost if self.light_history else ""

    def hold_pose(self, inputs: FrameInputs) -> None:
        """Before a frame that began with `inputs` goes on: the scene is in its pose again, where
        another frame has posed it since."""
        moving = self.scene.moving
        if moving and moving.serial != self._posed:
            self._posed = moving.hold(inputs.clip, inputs.time, loop=inputs.loop)

    def read_arrays(self) -> dict[str, Any]:
        """What the frame's twins take of the scene, as it is now, and of the picture before."""
        previous = self.previous.read_arrays() if self.previous else {}
        filters = self.light_history.read_arrays() if self.light_history else {}
        return {**self.scene.read_arrays(), **previous, **filters}

    def read_motion(self) -> NDArray[np.float32]:
        """[height, width, 2] pixels; see passes/motion.py."""
        values = self.device.read(self.resources["motion"], np.float32, count=2 * self.pixels)
        return values.reshape(self.height, self.width, 2)

    def grow_queues(self, stats: FrameStats) -> None:
        """Makes room for what the last frame dropped, and for the rays that each dropped one might
        have led to: one in each slot that starts at another ray's hit."""
        for ray in self.rays:
            led_to = sum(start != PRIMARY for start in ray.starts_at)
            wanted = stats.rays[ray.name].rays + stats.dropped * max(1, led_to)
            wanted = min(wanted, self.pixels * ray.slots_per_pixel)
            if wanted > self.capacities[ray.name]:
                self.capacities[ray.name] = wanted
                self._add_queue(ray)
            if stats.rays[ray.name].candidates_dropped:
                self.waiting[ray.name] = self.capacities[ray.name]
                self._add_candidates(ray)

    def read_header(self, ray: RayType) -> dict[str, int]:
        record = self.device.read(self.resources[ray.queue], QUEUE_HEADER.dtype, count=1)[0]
        return {field.name: int(record[field.name]) for field in QUEUE_HEADER.fields}

    def read_records(self, ray: RayType) -> NDArray[Any]:
        """The rays that were traced in the last frame, in queue order."""
        header = self.read_header(ray)
        count = min(header["count"], header["capacity"])
        return self.device.read(
            self.resources[ray.queue], ray.record.dtype, offset=QUEUE_HEADER.size, count=count
        )

    def read_results(self, ray: RayType, records: NDArray[Any]) -> NDArray[Any]:
        """What each of `read_records` found: `ray.result_dtype`, in the same order."""
        count = len(records)
        if ray.results_by_slot:
            count = self.pixels * ray.slots_per_pixel
        found = self.device.read(self.resources[ray.results], ray.result_dtype, count=count)
        return found[records[ray.slot_field]] if ray.results_by_slot else found

    def read_picture(self) -> NDArray[np.uint8]:
        words = self.device.read(self.resources["picture"], np.uint8, count=4 * self.pixels)
        return words.reshape(self.height, self.width, 4)[..., :3].copy()

    def read_radiance(self) -> NDArray[np.float32]:
        """[height, width, 3] the running mean, linear."""
        sums = self.device.read(self.resources["accumulated"], np.float32, count=4 * self.pixels)
        sums = sums.reshape(self.height, self.width, 4)
        return sums[..., :3] / sums[..., 3:]

    def read_texture(self, name: str) -> NDArray[Any]:
        """[height, width, words] uint32 (float32 for depth)."""
        words = 4 if TEXTURES[name] == "rgba32uint" else 1
        data = self.device.wgpu.queue.read_texture(
            {"texture": self.textures[name], "mip_level": 0, "origin": (0, 0, 0)},
            {"offset": 0, "bytes_per_row": 4 * words * self.width, "rows_per_image": self.height},
            (self.width, self.height, 1),
        )
        self.device.forced_waits += 1
        self.device.readback_bytes += 4 * words * self.pixels
        kind = np.float32 if name == "depth" else np.uint32
        return np.frombuffer(data, kind).reshape(self.height, self.width, words)

    def read_slot_counts(self, ray: RayType, name: str) -> NDArray[np.uint32]:
        """One plane of passes.slot_counts.SLOT_COUNTS, [pixels * slots_per_pixel]. ValueError
        where the frame does not count."""
        if not self.options.count:
            raise ValueError(f"{name}/{ray.name} needs a counted frame")
        count = self.pixels * ray.slots_per_pixel
        offset = SLOT_COUNTS.index(name) * plane_bytes(count)
        return self.device.read(
            self.resources[ray.slot_counts], np.uint32, offset=offset, count=count
        )

    def hash_results(self) -> str:
        digest = hashlib.sha256()
        for ray in self.rays:
            records = self.read_records(ray)
            results = self.read_results(ray, records)
            slots = records[ray.slot_field]
            found = [results] if ray.any_hit else [results["object"], results["primitive"]]
            order = np.argsort(slots, kind="stable")
            for column in (slots, *found):
                digest.update(np.ascontiguousarray(column[order]).tobytes())
        return digest.hexdigest()
