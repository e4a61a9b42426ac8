"""What a frame remembers of light, so that few rays look like many (`FrameOptions.history`), and
the buffers of all filters of light (`FrameOptions.denoiser`).

The area light and reflections are each blended with what is remembered of them
(passes/shaders/history.wgsl): the nth frame counts 1/n, down to 1/`history`. While things move, a
pixel's past is where its surface was (`motion`, passes/motion.py), and of reflections where what is
reflected was seen: as far behind the surface as it lies before it, nearer or farther where the
surface bends, as a thin lens has it. Of a bending mirror nothing is remembered: too much fits
between two of its pixels for any of it to be found again, and a lamp's outline would stay behind. A
past must have shown the same object, facing the same way, in the same plane;
else the pixel begins anew; of the area light the newest sample makes up for what of the past was of
other surfaces, in sharp images it counts the more, and so it does where what is found again between
pixels differs by more than noise: each frame blurs that a little. Where only light may have changed
(the scene moved; of reflections and of surfaces that shine more than they scatter, the camera too),
what is remembered has to fit the newest samples around a pixel: it is clamped to 1.5 standard
deviations about their mean, which leaves no trail but is biased where few of many samples are
bright. So reflections are not clamped, but forgotten as far as they are beyond 3 of them, and while
nothing moves nothing is: then what is remembered is a plain mean.

With the running mean of a picture at rest (`FrameInputs.sample_count`) this acts as one: a further
sample of a picture is blended with equal weight and without a limit, and the composite, whose light
is that mean already, adds nothing up. So a picture at rest begins with what was remembered, which
counts as so many samples as it has frames, and converges as any other; a denoiser smooths that mean
the less the surer it is.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.scene.camera import Camera
from passes.filter_records import (
    CLAMPED_DIFFUSE,
    CLAMPED_GLOSSY,
    FILTER_VIEW,
    FILTERED_BYTES,
    GUIDE_BYTES,
    HISTORY_BYTES,
    MOST_SAMPLES,
    PASTS,
)
from passes.frame_options import FrameOptions
from passes.frame_uniforms import FrameInputs, camera_axes
from passes.moving import Pose

LIGHTS = ("reflection", "direct")
# Numbers of frames from here on are for those that are drawn to be remembered: a picture's samples,
# which begin at 0, have other random numbers.
OTHER_FRAMES = 1 << 20
CUT_PART = 0.25  # of the scene's diagonal: a camera that moves farther in a frame was cut


def filter_bytes(options: FrameOptions) -> dict[str, int]:
    """Name -> bytes a pixel of the buffers that filters need."""
    if not options.filtered:
        return {}
    sizes = {"guide": 2 * GUIDE_BYTES}
    for light in LIGHTS:
        sizes |= {f"{light}_history": 2 * HISTORY_BYTES, f"{light}_filtered": FILTERED_BYTES}
        sizes |= {f"{light}_round_{n}": FILTERED_BYTES for n in range(min(options.denoiser, 2))}
    if options.history:
        sizes["depth_before"] = 4
    return sizes


def named_rounds(options: FrameOptions, resources: dict[str, Any]) -> dict[str, Any]:
    """The same with a name for the input of each round of the denoiser: rounds read one buffer and
    write the other in turn."""
    rounds = [(light, n) for light in LIGHTS for n in range(2, options.denoiser)]
    named = {f"{light}_round_{n}": resources[f"{light}_round_{n % 2}"] for light, n in rounds}
    return {**resources, **named}


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a frame drew, without which instances, and which half of the buffers holds what it
    left."""

    inputs: FrameInputs
    pose: Pose | None
    hidden: Hashable
    half: int

    def same_view(self, inputs: FrameInputs, pose: Pose | None) -> bool:
        return self.inputs.camera.same_as(inputs.camera) and not self.moved(pose)

    def moved(self, pose: Pose | None) -> bool:
        return self.pose is not None and pose is not None and self.pose.key != pose.key


class LightHistory:
    """Of one frame. `lost` says why the newest frame remembered nothing, "" where it did; `losses`
    counts these reasons."""

    def __init__(self, device: Device, options: FrameOptions, diagonal: float) -> None:
        self.device, self.options = device, options
        self.diagonal = diagonal  # of the scene, metres
        self.aspect, self.pixels = options.width / options.height, options.width * options.height
        buffers: dict[str, Any] = {
            name: device.buffer(name, size * self.pixels)
            for name, size in filter_bytes(options).items()
        }
        self.resources = named_rounds(options, buffers)
        uniforms = device.buffer("filter_view", FILTER_VIEW.size, "UNIFORM|COPY_DST")
        self.resources["filter_view"] = uniforms
        self.view: NDArray[np.void] = np.zeros((), FILTER_VIEW.dtype)
        self.lost = ""
        self.losses: Counter[str] = Counter()
        self._kept: _Shown | None = None  # the last picture that a frame may go on from
        self._newest: _Shown | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """Resources that hold something before a frame."""
        return ("filter_view", "guide", *(f"{light}_history" for light in LIGHTS))

    def begin(
        self,
        inputs: FrameInputs,
        pose: Pose | None,
        hidden: Hashable = None,
        *,
        whole: bool,
        dropped: bool,
    ) -> None:
        """Before a frame is encoded; `hidden` says which instances are out. `whole`: the frame
        before gave a picture; `dropped`: one that missed rays, by which what is remembered is
        spoiled. A frame that is drawn once more takes its own place: what it left is not
        remembered."""
        newest = self._newest
        if whole and newest is not None and not _repeats(newest, inputs, pose, hidden):
            self._kept = newest
        kept = None if dropped else self._kept
        reason = (
            "the frame before missed rays" if dropped else self._loss(kept, inputs, pose, hidden)
        )
        half = 1 - kept.half if kept is not None else 0
        if dropped:
            self._kept = None
        self._newest = _Shown(inputs, pose, hidden, half)
        self._write(None if reason else kept, inputs, pose, half)
        self.lost = reason if self.options.history else ""
        if self.lost:
            self.losses[self.lost] += 1

    def _loss(
        self, kept: _Shown | None, inputs: FrameInputs, pose: Pose | None, hidden: Hashable
    ) -> str:
        """Why a frame remembers nothing; "" if it does."""
        if kept is None:
            return "first picture"
        if kept.hidden != hidden:
            return "other instances are hidden"
        if inputs.sample_count > 1:
            return "" if kept.same_view(inputs, pose) else "a sample of another picture"
        if not self.options.history:
            return "no history"
        before = kept.inputs
        given = inputs.previous_camera
        if given is not None and not given.same_as(before.camera):
            return "motion is from another view"
        shining = ("light", "more_lights", "environment")
        if any(getattr(before, name) is not getattr(inputs, name) for name in shining):
            return "other light"
        if (before.roughness_cutoff, before.occlusion_radius) != (
            inputs.roughness_cutoff,
            inputs.occlusion_radius,
        ):
            return "other rays"
        if is_cut(before.camera, inputs.camera, self.aspect, self.diagonal):
            return "camera cut"
        return ""

    def _write(
        self, kept: _Shown | None, inputs: FrameInputs, pose: Pose | None, half: int
    ) -> None:
        view = np.zeros((), FILTER_VIEW.dtype)
        view["after"] = half * self.pixels
        view["limit"] = 1.0
        if kept is not None:
            view["before"] = kept.half * self.pixels
            for name, axis in camera_axes(kept.inputs.camera, self.aspect).items():
                view[name][:3] = axis
            sample = inputs.sample_count > 1
            view["past"] = PASTS.index("same" if sample else "moved")
            view["limit"] = MOST_SAMPLES if sample else self.options.history
            scene_moved = kept.moved(pose)
            if not kept.same_view(inputs, pose):
                view["clamped"] = CLAMPED_GLOSSY | (CLAMPED_DIFFUSE * scene_moved)
        self.view = view
        self.device.write(self.resources["filter_view"], view.reshape(1))

    def read_arrays(self) -> dict[str, Any]:
        """The resources as twins take them; waits."""
        found: dict[str, Any] = {"filter_view": self.view}
        for name, size in filter_bytes(self.options).items():
            kind: Any = np.float32 if name == "depth_before" else np.uint32
            # The device may round a buffer's size up.
            words = self.device.read(self.resources[name], kind, count=size // 4 * self.pixels)
            whole = {2 * GUIDE_BYTES: 4, FILTERED_BYTES: 2, 4: 1}[size]
            found[name] = words.reshape(-1, whole) if whole > 1 else words
        return named_rounds(self.options, found)

    def length_offset(self, pixel: int) -> int:
        """Of a light's history, the byte where the newest frame's length of a pixel is."""
        return HISTORY_BYTES * (int(self.view["after"]) + pixel + 1) - 4

    def read_length(self, light: str) -> NDArray[np.float32]:
        """[pixels] frames that the newest one remembered of a light: 0 where it began anew, and
        where there is none; waits."""
        words = self.device.read(
            self.resources[f"{light}_history"],
            np.uint32,
            offset=HISTORY_BYTES * int(self.view["after"]),
            count=4 * self.pixels,
        )
        halves = np.ascontiguousarray(words.reshape(-1, 4)[:, 3]).view(np.float16)
        return np.maximum(halves[::2].astype(np.float32) - 1, 0)


def _repeats(shown: _Shown, inputs: FrameInputs, pose: Pose | None, hidden: Hashable) -> bool:
    """Whether the very picture is drawn once more."""
    return (
        inputs.sample_count == shown.inputs.sample_count == 1
        and inputs.frame_index == shown.inputs.frame_index
        and inputs.seed == shown.inputs.seed
        and shown.same_view(inputs, pose)
        and shown.hidden == hidden
    )


def is_cut(before: Camera, now: Camera, aspect: float, diagonal: float) -> bool:
    """Whether hardly anything of the view before can be seen: it turned by more than the picture's
    diagonal, zoomed more than twice, or went too far at once."""
    scale = max(np.tan(before.y_fov / 2), np.tan(now.y_fov / 2))
    cosine = float(np.clip(before.forward @ now.forward, -1.0, 1.0))
    turned = np.arccos(cosine) > 2 * np.arctan(scale * np.hypot(1.0, aspect))
    zoomed = abs(np.log2(np.tan(before.y_fov / 2) / np.tan(now.y_fov / 2))) > 1.0
    went = float(np.linalg.norm(before.position - now.position)) > CUT_PART * diagonal
    return bool(turned or zoomed or went)


def start_arrays(options: FrameOptions) -> Mapping[str, Any]:
    """The resources of a first picture, as twins take them."""
    pixels = options.width * options.height
    view = np.zeros((), FILTER_VIEW.dtype)
    view["limit"] = 1.0
    found: dict[str, Any] = {"filter_view": view}
    for name, size in filter_bytes(options).items():
        if name == "depth_before":
            found[name] = np.zeros(pixels, np.float32)
        else:
            wide = 4 if size == 2 * GUIDE_BYTES else 2
            found[name] = np.zeros((size // 4 * pixels // wide, wide), np.uint32)
    return named_rounds(options, found)
