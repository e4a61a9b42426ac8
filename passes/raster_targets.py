"""What shadow maps and probes are drawn into."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.frame.kept import Kept
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from passes import depth_pyramid
from passes.frame_options import LIGHT_FACES, FrameOptions
from passes.frame_uniforms import FRAME_UNIFORMS, FrameInputs
from passes.layer_copy import IDS_FORMAT
from passes.raster_views import CUBE, RasterView, light_views, probe_views
from passes.screen_counts import SCREEN_COUNTS
from passes.view_culling import SeenObjects

STILL = "_still"  # of the name of a target that holds what never moves
PROBE_STAGES = ("probe/light", "probe/blur")  # passes that work on what its faces show


@dataclass(frozen=True, slots=True)
class Target:
    """A texture `name` with a layer a view; layer k is the resource `name`/k, its uniforms are
    `name`/k/view. `size` in pixels, width and height alike. A target whose name ends in STILL has
    the views of the one without."""

    name: str
    texel_format: str
    layers: int
    size: int

    @property
    def base(self) -> str:
        return self.name.removesuffix(STILL)

    @property
    def is_still(self) -> bool:
        return self.name.endswith(STILL)

    @property
    def drawn(self) -> bool:
        """Whether its layers are views; else they are depth buffers of views."""
        return self.base in ("shadow_map", "probe_ids")

    def layer(self, index: int) -> str:
        return f"{self.name}/{index}"

    def view(self, index: int) -> str:
        return f"{self.base}/{index}/view"

    def seen(self, index: int) -> str:
        """Resource of the SeenObjects that are drawn there."""
        return f"{self.layer(index)}/seen"

    def kept(self, index: int) -> str:
        """Resource of the layer's Kept."""
        return f"{self.layer(index)}/kept"

    def views(self, inputs: FrameInputs) -> list[RasterView]:
        """Of each layer; of lights that are out there are none."""
        if self.base == "shadow_map":
            views = [view for light in inputs.lights for view in light_views(light)]
            if len(views) > self.layers:
                there = self.layers // LIGHT_FACES
                raise ValueError(f"{len(inputs.lights)} lights, there are maps of {there}")
            return views
        return probe_views(inputs)


def frame_targets(options: FrameOptions, moves: bool = False) -> list[Target]:
    """Those of a frame with these options, of a scene of which something `moves` or nothing."""
    found = []
    if options.has_shadow_map:
        layers, size = LIGHT_FACES * options.map_lights, options.shadow_map_size
        names = ("shadow_map", f"shadow_map{STILL}") if moves else ("shadow_map",)
        found += [Target(name, "depth32float", layers, size) for name in names]
    if options.has_probe:
        size, faces = options.probe_face, len(CUBE)
        found.append(Target("probe_ids", IDS_FORMAT, faces, size))
        found.append(Target("probe_depth", "depth32float", 1, size))
        if moves:
            found.append(Target(f"probe_ids{STILL}", IDS_FORMAT, faces, size))
            found.append(Target(f"probe_depth{STILL}", "depth32float", faces, size))
    return found


class RasterTargets:
    """Of one frame; without shadow maps and probes it is empty. `given` are the resources that hold
    data before the frame, `cleared` those that begin as zeros. What the views see, and what of them
    has to be drawn, `passes.raster_redraw` says."""

    def __init__(self, device: Device, options: FrameOptions, moves: bool) -> None:
        self.device = device
        self.targets = frame_targets(options, moves)
        self.textures: dict[str, Any] = {}
        self.resources: dict[str, Any] = {}
        self.given: tuple[str, ...] = ()
        self.cleared: dict[str, int | None] = {}
        for target in self.targets:
            self._add(target)
        if options.has_probe:
            self._add_probe(options.probe_size)
        if options.reflections == "screen":
            self._add_pyramid(options.width, options.height)

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
        self.resources |= {f"{name}/kept": Kept() for name in PROBE_STAGES}
        self.given = (*self.given, "probe_light")
        self.cleared["screen_counts"] = None

    def _add_pyramid(self, width: int, height: int) -> None:
        """What reflections are looked for in on the screen (passes/depth_pyramid.py)."""
        across, down = depth_pyramid.texture_size(width, height)
        side = self.device.limits["max-texture-dimension-2d"]
        if max(across, down) > side:
            raise LimitError(
                f"size {width}x{height}: the depth pyramid of {across}x{down} texels is beyond "
                f"{self.device.info.adapter}'s largest texture, {side} a side"
            )
        texture = self.device.wgpu.create_texture(
            label="pyramid",
            size=(across, down, 1),
            format=depth_pyramid.FORMAT,
            usage="TEXTURE_BINDING|STORAGE_BINDING|COPY_SRC",
        )
        self.textures["pyramid"] = texture
        self.resources["pyramid"] = texture.create_view()

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
            if target.drawn:
                self.resources[target.seen(index)] = SeenObjects()
                self.resources[target.kept(index)] = Kept()
            if target.drawn and not target.is_still:
                name = target.view(index)
                usage = "UNIFORM|COPY_DST"
                self.resources[name] = self.device.buffer(name, FRAME_UNIFORMS.size, usage)
                self.given = (*self.given, name)

    def read(self, name: str) -> NDArray[Any]:
        """A target's texels, [layers, size, size] depths or [layers, size, size, 2] ids. Waits."""
        target = next(t for t in self.targets if t.name == name)
        if target.texel_format == IDS_FORMAT:
            return self._read(name, 2).view(np.uint32)
        return self._read(name, 1)[..., 0]

    def read_probe(self) -> NDArray[np.float32]:
        """[size, size + size / 2, 4] its levels (passes/shaders/probe_layout.wgsl). Waits."""
        return self._read("probe", 4)[0]

    def read_pyramid(self) -> NDArray[np.uint32]:
        """[height, width, 2] its levels (passes/depth_pyramid.py). Waits."""
        return self._read("pyramid", 2)[0].view(np.uint32)

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
