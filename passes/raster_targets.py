"""What shadow maps and probes are drawn into, and the uniforms of their views."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FRAME_UNIFORMS, FrameInputs
from passes.gbuffer import IDS_FORMAT
from passes.prepare import PreparedScene
from passes.raster_views import CUBE, HALF_CUBE, RasterView, light_views, probe_views
from passes.screen_counts import SCREEN_COUNTS
from passes.view_culling import SeenObjects, object_boxes

NO_QUEUE = "no_queue"  # what a stage binds whose rays nobody traces


@dataclass(frozen=True, slots=True)
class Target:
    """A texture `name` with a layer a view; layer k is the resource `name`/k, its uniforms
    `name`/k/view. `size` in pixels, width and height alike."""

    name: str
    texel_format: str
    layers: int
    size: int

    def layer(self, index: int) -> str:
        return f"{self.name}/{index}"

    def view(self, index: int) -> str:
        return f"{self.layer(index)}/view"

    def seen(self, index: int) -> str:
        """Resource of the SeenObjects of the view."""
        return f"{self.layer(index)}/seen"

    def views(self, inputs: FrameInputs) -> list[RasterView]:
        """Of each layer; none of a depth buffer that other views share."""
        if self.name == "probe_depth":
            return []
        return light_views(inputs.light) if self.name == "shadow_map" else probe_views(inputs)


def frame_targets(options: FrameOptions) -> list[Target]:
    """Those of a frame with these options."""
    found = []
    if options.has_shadow_map:
        found.append(Target("shadow_map", "depth32float", len(HALF_CUBE), options.shadow_map_size))
    if options.has_probe:
        size = options.probe_size // 2  # six faces have about as many texels as the probe
        found.append(Target("probe_ids", IDS_FORMAT, len(CUBE), size))
        found.append(Target("probe_depth", "depth32float", 1, size))
    return found


class RasterTargets:
    """Of one frame; without shadow maps and probes it is empty. `given` are the resources that hold
    data before the frame, `cleared` those that begin as zeros."""

    def __init__(self, device: Device, options: FrameOptions, prepared: PreparedScene) -> None:
        self.device = device
        self._boxes = object_boxes(prepared) if options.has_shadow_map else None
        self.targets = frame_targets(options)
        self.textures: dict[str, Any] = {}
        self.resources: dict[str, Any] = {}
        self.given: tuple[str, ...] = ()
        self.cleared: dict[str, int | None] = {}
        for target in self.targets:
            self._add(target)
        if options.has_probe:
            self._add_probe(options.probe_size)

    def _add_probe(self, size: int) -> None:
        """What the probe's faces become (passes/probe_passes.py), and who looked it up."""
        device = self.device
        texture = device.wgpu.create_texture(
            label="probe",
            size=(size + size // 2, size, 1),
            format="rgba32float",
            usage="TEXTURE_BINDING|STORAGE_BINDING|COPY_SRC",
        )
        self.textures["probe"] = texture
        self.resources["probe"] = texture.create_view()
        self.resources["probe_light"] = device.buffer("probe_light", 16 * size * size)
        self.resources["screen_counts"] = device.buffer("screen_counts", SCREEN_COUNTS.size)
        self.given = (*self.given, "probe_light")
        self.cleared["screen_counts"] = None

    def _add(self, target: Target) -> None:
        side = self.device.limits["max-texture-dimension-2d"]
        if target.size > side:
            raise LimitError(
                f"the {target.name} of {target.size} pixels is beyond "
                f"{self.device.info.adapter}'s largest texture, {side} a side"
            )
        texture = self.device.wgpu.create_texture(
            label=target.name,
            size=(target.size, target.size, target.layers),
            format=target.texel_format,
            usage="TEXTURE_BINDING|RENDER_ATTACHMENT|COPY_SRC",
        )
        self.textures[target.name] = texture
        self.resources[target.name] = texture.create_view(dimension="2d-array")
        for index in range(target.layers):
            self.resources[target.layer(index)] = texture.create_view(
                dimension="2d", base_array_layer=index, array_layer_count=1
            )
            if target.name != "probe_depth":
                name = target.view(index)
                usage = "UNIFORM|COPY_DST"
                self.resources[name] = self.device.buffer(name, FRAME_UNIFORMS.size, usage)
                self.resources[target.seen(index)] = SeenObjects()
                self.given = (*self.given, name)

    def write(self, inputs: FrameInputs, record: NDArray[np.void]) -> None:
        """Before a frame is encoded: the views' uniforms, after the picture's `record`, and what
        they see."""
        for target in self.targets:
            for index, view in enumerate(target.views(inputs)):
                own = record.copy()
                view.put_into(own, target.size)
                self.device.write(self.resources[target.view(index)], own)
                if self._boxes is not None:
                    self.resources[target.seen(index)].mask = self._boxes.seen(view)

    def read(self, name: str) -> NDArray[Any]:
        """A target's texels, [layers, size, size] depths or [layers, size, size, 2] ids. Waits."""
        target = next(t for t in self.targets if t.name == name)
        if target.texel_format == IDS_FORMAT:
            return self._read(name, 2).view(np.uint32)
        return self._read(name, 1)[..., 0]

    def read_probe(self) -> NDArray[np.float32]:
        """[size, size + size / 2, 4] its levels (passes/shaders/probe_layout.wgsl). Waits."""
        return self._read("probe", 4)[0]

    def _read(self, name: str, words: int) -> NDArray[np.float32]:
        """[layers, height, width, words]"""
        texture = self.textures[name]
        width, height, layers = texture.size
        raw = self.device.wgpu.queue.read_texture(
            {"texture": texture, "mip_level": 0, "origin": (0, 0, 0)},
            {"offset": 0, "bytes_per_row": 4 * words * width, "rows_per_image": height},
            (width, height, layers),
        )
        return np.frombuffer(raw, np.float32).reshape(layers, height, width, words).copy()
