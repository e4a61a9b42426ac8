"""Any output of a frame as a picture for the screen: colours, grey, ids, and heat maps of counts.

One stage shows an output: it binds the frame's resources by name and writes the texture `shown`.
Before it two stages find the range of a depth or a count on the GPU, so that an automatic range
needs no read-back; what a legend says about it arrives later through a ring, without a wait.
"""

from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.compute_scope import ComputePasses
from engine.gpu.device import Device
from engine.gpu.readback_ring import ReadbackRing
from engine.gpu.stage import Dispatch, Stage
from passes.count_planes import CountPlanes
from passes.display_records import (
    DISPLAY_RANGE,
    DISPLAY_UNIFORMS,
    FULL_HISTORY,
    FULL_MOTION,
    RANGE_RESULT_BYTES,
    SURFACE_FIELDS,
)
from passes.display_value import PROBE_BYTES, Probe, Value, describe_value
from passes.hybrid import HybridFrame
from passes.outputs import COUNT_SHADER, SURFACE_SHADER, Output, counted_rays
from passes.palettes import DIVERGING, palette_colours, palette_words
from passes.shadow_slots import shadow_slots
from passes.slot_counts import SLOT_COUNTS, plane_bytes

PIXELS_PER_GROUP = 4096  # of the range stages
RING_SLOTS = 6  # of 100 bytes: a draw that finds none free is not read
UNIT_RANGE = (0.0, 1.0)


class DisplayPass:
    """`texture` is rgba8unorm with sRGB bytes, of one picture size; frames of that size may take
    turns. It holds the frame that it showed last."""

    def __init__(self, device: Device, width: int, height: int) -> None:
        self.device = device
        self.width, self.height = width, height
        self.texture = device.wgpu.create_texture(
            label="shown",
            size=(width, height, 1),
            format="rgba8unorm",
            usage="TEXTURE_BINDING|STORAGE_BINDING|COPY_SRC|RENDER_ATTACHMENT",
        )
        self.view = self.texture.create_view()
        self._uniforms = device.buffer("display", DISPLAY_UNIFORMS.size, "UNIFORM|COPY_DST")
        self._range = device.buffer("display_range", DISPLAY_RANGE.size)
        self._palette = device.buffer("palette", 4 * 256)
        self._palette_name = ""
        self._written: Any = None  # what the uniforms are of
        self._outputs: tuple[tuple[Output, ...], dict[str, Output]] = ((), {})
        self._passes = ComputePasses()
        self._probe = Probe(device)
        self._counts = CountPlanes(device, width, height)
        self._ring = ReadbackRing(device, RANGE_RESULT_BYTES + PROBE_BYTES, RING_SLOTS)
        self._frame: HybridFrame | None = None
        self._stages: dict[tuple[Any, ...], Stage] = {}
        self._ranges: dict[tuple[str, bool], tuple[float, float, float]] = {}
        self._value: Value | None = None
        self._planned: tuple[Any, ...] = ()  # what is to be shown, and how
        self._plan: Any = None

    def encode(
        self,
        encoder: Any,
        frame: HybridFrame,
        output: str,
        palette: str = "viridis",
        value_range: tuple[float, float] | None = None,
        baseline: Any = None,
        *,
        cursor: tuple[int, int] | None = None,
    ) -> None:
        """Shows `output` of the frame's newest picture. Once a submission; call `submitted` after
        it.

        `value_range` is what the palette (of depth: white to black, metres) spans, None: found in
        this picture. With a `baseline` (of `keep`) it shows the difference from that in the
        palette for differences, as far to both sides of 0 as the range's farther end. `cursor` is
        the pixel that `value` is to tell of. ValueError for an output that the frame has not,
        another size, or a baseline of another."""
        self._receive()
        wanted = (frame, frame.made, output, palette, value_range, baseline)
        if wanted != self._planned:
            self._planned = ()
            self._plan = self._make_plan(frame, output, palette, value_range, baseline)
            self._planned = wanted
        found, dispatches = self._plan
        ranged = has_range(found)
        encoder.clear_buffer(self._range)
        scope = self._passes.begin(encoder, "display")
        for dispatch in dispatches:
            dispatch.encode(scope)
        scope.end()
        if cursor is None and not ranged:
            return
        copies = [(self._range, 0, RANGE_RESULT_BYTES)]
        if cursor is not None:
            self._encode_probe(encoder, frame, found, cursor, baseline)
            copies.append((self._probe.buffer, 0, PROBE_BYTES))
        self._ring.encode(encoder, copies, (frame, found, baseline is not None, cursor))

    def _make_plan(
        self,
        frame: HybridFrame,
        output: str,
        palette: str,
        value_range: tuple[float, float] | None,
        baseline: Any,
    ) -> tuple[Output, list[Dispatch]]:
        """What shows an output, until something else is to be shown, or in another way; writes what
        it reads."""
        found = self._find(frame, output)
        self._check_baseline(frame, found, baseline)
        self._write_uniforms(frame, found, value_range, baseline)
        self._write_palette(palette if baseline is None else DIVERGING)
        resources = self._resources(frame, found, baseline)
        is_light = found.kind == "colour" and found.ray_type is not None
        constants = _light_constants(frame, found) if is_light else {}
        tiles = (-(-self.width // 8), -(-self.height // 8))
        shown = self._stage(found.shader, constants).prepare(resources, tiles)
        sums = self._counts.dispatches(frame, found)
        return found, [*sums, *self._range_dispatches(found, resources), shown]

    def submitted(self) -> None:
        """After the submission of what was encoded: its range and value begin to come back."""
        self._ring.submitted()

    def show(self, frame: HybridFrame, output: str, *args: Any, **settings: Any) -> None:
        """`encode` in a submission of its own."""
        encoder = self.device.wgpu.create_command_encoder(label="display")
        self.encode(encoder, frame, output, *args, **settings)
        self.device.wgpu.queue.submit([encoder.finish()])
        self.submitted()

    def auto_range(self, output: str, *, difference: bool = False) -> tuple[float, float] | None:
        """The newest automatic range of an output that was shown; None: not known yet. Counts: 0
        to what 99.9% of the pixels that sent a ray stay within (in steps of 3%), 1 at least."""
        return self.seen(output, difference=difference)[0]

    @staticmethod
    def _plain_range(output: str) -> tuple[float, float]:
        if output.startswith("history_"):
            return (0.0, FULL_HISTORY)
        return (0.0, FULL_MOTION) if output == "motion" else UNIT_RANGE

    def maximum(self, output: str, *, difference: bool = False) -> float | None:
        """The largest value (of differences: magnitude) with that range."""
        return self.seen(output, difference=difference)[1]

    def seen(
        self, output: str, *, difference: bool = False
    ) -> tuple[tuple[float, float] | None, float | None, Value | None]:
        """`auto_range`, `maximum` and `value` as of one look at what has arrived."""
        self._receive()
        known = self._ranges.get((output, difference))
        if output.startswith(("motion", "history_")) or (
            output in SURFACE_FIELDS and output != "depth"
        ):
            shown: tuple[float, float] | None = self._plain_range(output)
        else:
            shown = known[:2] if known else None
        return shown, known[2] if known else None, self._value

    def value(self) -> Value | None:
        """The newest value under a cursor that has arrived, without waiting."""
        self._receive()
        return self._value

    def keep(self, frame: HybridFrame, output: str) -> Any:
        """A copy of a count's plane as it is now, to be a baseline. ValueError for another kind."""
        found = self._find(frame, output)
        if found.kind != "count":
            raise ValueError(f"{output} is no count: only counts have differences")
        slots = counted_rays(frame.data.rays, found).slots_per_pixel
        size = plane_bytes(frame.data.pixels * slots)
        kept = self.device.buffer(f"kept {output}", size)
        encoder = self.device.wgpu.create_command_encoder(label="keep")
        self._counts.encode(encoder, frame, found)
        offset = SLOT_COUNTS.index(found.count or "") * size
        encoder.copy_buffer_to_buffer(self._counts.planes(frame, found), offset, kept, 0, size)
        self.device.wgpu.queue.submit([encoder.finish()])
        return kept

    def read_value(
        self, frame: HybridFrame, output: str, x: int, y: int, baseline: Any = None
    ) -> str:
        """What pixel (x, y) of an output that is shown holds, as text with its unit. Waits for the
        GPU: for a request, not for a frame loop, where `encode` takes a cursor."""
        found = self._find(frame, output)
        encoder = self.device.wgpu.create_command_encoder(label="value")
        self._counts.encode(encoder, frame, found)
        self._encode_probe(encoder, frame, found, (x, y), baseline)
        self.device.wgpu.queue.submit([encoder.finish()])
        words = self.device.read(self._probe.buffer, np.uint32, count=PROBE_BYTES // 4)
        return describe_value(frame, found, words, baseline is not None)

    def read_picture(self) -> NDArray[np.uint8]:
        """[height, width, 3] sRGB as shown. Waits for the GPU: for exports."""
        data = self.device.wgpu.queue.read_texture(
            {"texture": self.texture, "mip_level": 0, "origin": (0, 0, 0)},
            {"offset": 0, "bytes_per_row": 4 * self.width, "rows_per_image": self.height},
            (self.width, self.height, 1),
        )
        self.device.forced_waits += 1
        self.device.readback_bytes += 4 * self.width * self.height
        pixels = np.frombuffer(data, np.uint8).reshape(self.height, self.width, 4)
        return pixels[..., :3].copy()

    def _find(self, frame: HybridFrame, name: str) -> Output:
        data = frame.data
        if (data.width, data.height) != (self.width, self.height):
            raise ValueError(
                f"a display of {self.width}x{self.height} shows no frame of "
                f"{data.width}x{data.height}"
            )
        outputs = frame.outputs()
        if outputs is not self._outputs[0]:
            self._outputs = (outputs, {output.name: output for output in outputs})
        found = self._outputs[1]
        if name not in found:
            raise ValueError(f"the frame has no output '{name}', there are {', '.join(found)}")
        if frame is not self._frame:
            # Stages keep what they have bound: that of an old frame would stay alive.
            self._frame = frame
            self._stages.clear()
            self._counts.forget()
        return found[name]

    def _encode_probe(
        self,
        encoder: Any,
        frame: HybridFrame,
        output: Output,
        pixel: tuple[int, int],
        baseline: Any,
    ) -> None:
        planes = None if output.count is None else self._counts.planes(frame, output)
        self._probe.encode(encoder, frame, output, pixel, self.texture, planes, baseline)

    def fits_baseline(self, frame: HybridFrame, output: str, baseline: Any) -> bool:
        """Whether what `keep` gave can be compared with this output of this frame."""
        try:
            self._check_baseline(frame, self._find(frame, output), baseline)
        except ValueError:
            return False
        return True

    def _check_baseline(self, frame: HybridFrame, output: Output, baseline: Any) -> None:
        if baseline is None:
            return
        if output.kind != "count":
            raise ValueError(f"{output.name} is no count: only counts have differences")
        slots = frame.data.pixels * counted_rays(frame.data.rays, output).slots_per_pixel
        if not 0 <= baseline.size - plane_bytes(slots) < 16:
            raise ValueError(f"the baseline of {output.name} was kept at another size")

    def _write_uniforms(
        self,
        frame: HybridFrame,
        output: Output,
        value_range: tuple[float, float] | None,
        baseline: Any,
    ) -> None:
        slots = 0
        if output.count is not None:
            slots = counted_rays(frame.data.rays, output).slots_per_pixel
        wanted = (output, slots, value_range, baseline is not None)
        if wanted == self._written:
            return
        self._written = wanted
        record = np.zeros(1, DISPLAY_UNIFORMS.dtype)
        if output.count is not None:
            record["field"] = SLOT_COUNTS.index(output.count)
            record["slots_per_pixel"] = slots
        elif output.name in SURFACE_FIELDS:
            record["field"] = SURFACE_FIELDS.index(output.name)
        record["difference"] = baseline is not None
        record["automatic"] = value_range is None
        low, high = value_range or self._plain_range(output.name)
        if baseline is not None:
            high = max(abs(low), abs(high))
            low = -high
        record["low"], record["high"] = low, high
        self.device.write(self._uniforms, record)

    def _write_palette(self, name: str) -> None:
        if name != self._palette_name:
            self.device.write(self._palette, palette_words(name))
            self._palette_name = name

    def _resources(self, frame: HybridFrame, output: Output, baseline: Any) -> dict[str, Any]:
        resources = {
            **frame.data.resources,
            "display": self._uniforms,
            "display_range": self._range,
            "palette": self._palette,
            "shown": self.view,
        }
        if output.light is not None:
            own = {n: resources.get(f"{output.light}_{n}") for n in ("history", "filtered")}
            resources |= {name: buffer for name, buffer in own.items() if buffer is not None}
        if output.kind == "count":
            counts = self._counts.planes(frame, output)
            resources |= {
                "slot_counts": counts,
                "baseline": counts if baseline is None else baseline,
            }
        return resources

    def _range_dispatches(self, output: Output, resources: dict[str, Any]) -> list[Dispatch]:
        if not has_range(output):
            return []
        kind = "depth" if output.name == "depth" else "counts"
        gather = self._stage(f"passes/shaders/display_range_{kind}.wgsl")
        groups = -(-self.width * self.height // PIXELS_PER_GROUP)
        resolve = "passes/shaders/display_range_resolve.wgsl"
        constants = {"DEPTH": 1.0} if kind == "depth" else {}
        return [
            gather.prepare(resources, groups),
            self._stage(resolve, constants).prepare(resources, 1),
        ]

    def _stage(self, path: str, constants: Mapping[str, float] = MappingProxyType({})) -> Stage:
        key = (path, *sorted(constants.items()))
        if key not in self._stages:
            name = path.rpartition("/")[2].removesuffix(".wgsl")
            self._stages[key] = Stage(self.device, name, path, constants=constants)
        return self._stages[key]

    def _receive(self) -> None:
        for (frame, output, difference, cursor), data in self._ring.poll():
            words = np.frombuffer(data, np.uint32)
            if has_range(output):
                head = np.frombuffer(data[:RANGE_RESULT_BYTES], np.uint32)
                low, high = head[3:5].view(np.float32).tolist()
                most = float(head[:1].view(np.float32)[0]) if output.name == "depth" else head[0]
                self._ranges[output.name, difference] = (low, high, float(most))
            if cursor is not None:
                text = describe_value(frame, output, words[RANGE_RESULT_BYTES // 4 :], difference)
                self._value = Value(cursor, output.name, text)


def has_range(output: Output) -> bool:
    """Whether an automatic range is found for it."""
    return output.kind == "count" or output.name == "depth"


def _light_constants(frame: HybridFrame, output: Output) -> dict[str, float]:
    """What the shader of a ray type's light is made with."""
    return shadow_slots(frame.options).constants(PurePath(output.shader).stem)


__all__ = [
    "COUNT_SHADER",
    "SURFACE_SHADER",
    "DisplayPass",
    "Output",
    "Value",
    "has_range",
    "palette_colours",
]
