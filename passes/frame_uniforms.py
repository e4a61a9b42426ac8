"""The uniform block that every pass of the hybrid frame reads, declared once.

Vectors are world space; `camera_right` and `camera_up` are scaled so that
`forward + x * right + y * up` with x, y in [-1, 1] spans the picture. Radiance is linear.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.gpu.structs import Field, Struct
from engine.scene.camera import Camera
from engine.scene.light import MOST_LIGHTS, Environment, RectLight
from engine.scene.mesh import F64
from passes.frame_options import FrameOptions
from passes.prepare import PreparedScene
from passes.sampler import SAMPLERS

# Vectors of a light; of the normal w is the area.
LIGHT_PARTS = ("center", "half_u", "half_v", "radiance", "normal")

FRAME_UNIFORMS = Struct(
    "FrameUniforms",
    Field("view_projection", "vec4f", 4),  # rows
    Field("camera_origin", "vec4f"),
    Field("camera_right", "vec4f"),
    Field("camera_up", "vec4f"),
    Field("camera_forward", "vec4f"),
    *(Field(f"light_{part}", "vec4f") for part in LIGHT_PARTS),  # of the first light
    Field("environment_zenith", "vec4f"),
    Field("environment_horizon", "vec4f"),
    Field("environment_ground", "vec4f"),
    Field("scene_low", "vec4f"),  # corners of the scene's box at rest
    Field("scene_high", "vec4f"),
    Field("probe_origin", "vec4f"),
    Field("width", "u32"),
    Field("height", "u32"),
    Field("seed", "u32"),
    Field("frame_index", "u32"),
    Field("roughness_cutoff", "f32"),
    Field("pixel_spread", "f32"),  # radians a pixel, for ray cones
    Field("exposure", "f32"),
    Field("sample_count", "u32"),  # samples in the accumulation buffer, this frame's included
    Field("material_base", "u32"),  # of `tables`, in vec4s
    Field("texture_base", "u32"),
    Field("vertex_base", "u32"),  # of `geometry`, in words
    Field("zero", "u32"),  # see bvh/shaders/ray_triangle.wgsl
    # Where a pass that runs in parts goes on; 0 in a pass that does not (engine/frame/parts.py).
    Field("first_tile_row", "u32"),
    Field("first_group", "u32"),  # of a queue
    Field("split_object", "u32"),  # whose draw begins at triangle `split_triangle`
    Field("split_triangle", "u32"),
    Field("occlusion_radius", "f32"),  # metres
    Field("view_near", "f32"),  # near plane of shadow maps and probes (passes/raster_views.py)
    Field("light_count", "u32"),
    Field("sampler", "u32"),  # number in passes.sampler.SAMPLERS
    Field("noise_base", "u32"),  # of `tables`, in vec4s
    Field("pad_0", "u32"),
    Field("pad_1", "u32"),
    Field("pad_2", "u32"),
    Field("more_lights", "vec4f", (MOST_LIGHTS - 1) * len(LIGHT_PARTS)),  # the others, part by part
)

# Where a scene's tables begin.
BASES = ("material_base", "texture_base", "vertex_base", "noise_base")

# Fields that are taken from the inputs as they are.
PLAIN_INPUTS = (
    "seed",
    "frame_index",
    "roughness_cutoff",
    "exposure",
    "sample_count",
    "occlusion_radius",
)

# Near plane of shadow maps and probes, as a part of the diagonal of the scene's box: what is nearer
# casts no shadow and is not reflected.
NEAR_PART = 1e-5
# The default occlusion radius, as a part of the diagonal of the scene's box.
OCCLUSION_PART = 1 / 20


@dataclass(frozen=True, slots=True)
class FrameInputs:
    """What may change from frame to frame without rebuilding anything. The scene is as `clip` has
    it at `time`, in seconds; without a clip as its file stands, whatever the time. Past its end a
    clip begins again, or with `loop` False stays; before 0 it is as at 0. Motion is from where
    `previous_camera` saw things; None: the camera of the frame's last picture. `bounds` [2, 3] are
    the corners of the scene's box, which `frame_inputs` knows. `probe` [3] is where a reflection
    probe stands; None: where the camera does, or with `camera_moves`, while a path is played or
    somebody steers, where it was drawn less than `probe_distance` metres ago: frames put that
    into `kept_probe` themselves (passes/probe_place.py). `more_lights` shine beside `light`; in all
    there are MOST_LIGHTS at most, else ValueError where they are packed."""

    camera: Camera
    light: RectLight
    environment: Environment
    seed: int = 0
    frame_index: int = 0
    sample_count: int = 1
    roughness_cutoff: float = 0.6
    exposure: float = 1.0
    occlusion_radius: float = 0.0
    sampler: str = SAMPLERS[0]
    time: float = 0.0
    clip: str | None = None
    loop: bool = True
    previous_camera: Camera | None = None
    bounds: F64 | None = None
    probe: F64 | None = None
    probe_distance: float = 0.0
    camera_moves: bool = False
    kept_probe: F64 | None = None
    more_lights: tuple[RectLight, ...] = ()

    @property
    def probe_origin(self) -> F64:
        """[3] metres."""
        if self.probe is not None:
            return self.probe
        return self.camera.position if self.kept_probe is None else self.kept_probe

    @property
    def lights(self) -> tuple[RectLight, ...]:
        return (self.light, *self.more_lights)


def frame_inputs(prepared: PreparedScene, options: FrameOptions) -> FrameInputs:
    """The scene's own view, with the options' seed, cutoff, exposure and occlusion radius."""
    scene = prepared.scene
    return FrameInputs(
        scene.camera,
        scene.light,
        scene.environment,
        seed=options.seed,
        roughness_cutoff=options.roughness_cutoff,
        exposure=options.exposure,
        occlusion_radius=options.occlusion_radius or OCCLUSION_PART * prepared.diagonal,
        bounds=prepared.bounds,
        probe=prepared.bounds.mean(axis=0) if options.probe_position == "scene" else None,
        probe_distance=options.probe_distance * prepared.diagonal,
        more_lights=scene.more_lights,
        sampler=options.sampler,
    )


def camera_axes(camera: Camera, aspect: float) -> dict[str, NDArray[np.float64]]:
    """[3] each in world space, scaled as the uniforms have them: origin, right, up, forward."""
    tangent = np.tan(camera.y_fov / 2)
    to_world = np.asarray(camera.transform, np.float64)
    axes = to_world[:3, :3] / np.linalg.norm(to_world[:3, :3], axis=0)
    return {
        "origin": to_world[:3, 3],
        "right": axes[:, 0] * tangent * aspect,
        "up": axes[:, 1] * tangent,
        "forward": -axes[:, 2],
    }


def pack_uniforms(
    inputs: FrameInputs, width: int, height: int, bases: tuple[int, ...]
) -> NDArray[np.void]:
    """One FRAME_UNIFORMS record. `bases` are BASES, as `passes.gpu_scene` has them."""
    return UniformRecord(width, height, bases).pack(inputs)


class UniformRecord:
    """One FRAME_UNIFORMS record that frame after frame is packed into; arguments as of
    `pack_uniforms`. A camera, light or environment that is the object that it was the frame before
    (nobody changes one, they are frozen) is not packed again."""

    def __init__(self, width: int, height: int, bases: tuple[int, ...]) -> None:
        self.record = np.zeros((), FRAME_UNIFORMS.dtype)
        self._aspect, self._height = width / height, height
        self._packed: FrameInputs | None = None
        self.record["width"], self.record["height"] = width, height
        for name, base in zip(BASES, bases, strict=True):
            self.record[name] = base

    def pack(self, inputs: FrameInputs) -> NDArray[np.void]:
        """The record, of these inputs; the next call overwrites it."""
        record, before = self.record, self._packed
        if before is None or inputs.camera is not before.camera:
            self._pack_camera(inputs.camera)
        if (
            before is None
            or inputs.light is not before.light
            or inputs.more_lights is not before.more_lights
        ):
            self._pack_lights(inputs.lights)
        if before is None or inputs.environment is not before.environment:
            for name in ("zenith", "horizon", "ground"):
                record[f"environment_{name}"][:3] = getattr(inputs.environment, name)
        if inputs.bounds is not None and (before is None or inputs.bounds is not before.bounds):
            record["scene_low"][:3], record["scene_high"][:3] = inputs.bounds
            record["view_near"] = NEAR_PART * np.linalg.norm(inputs.bounds[1] - inputs.bounds[0])
        record["probe_origin"][:3] = inputs.probe_origin
        for name in PLAIN_INPUTS:
            record[name] = getattr(inputs, name)
        record["sampler"] = SAMPLERS.index(inputs.sampler)
        self._packed = inputs
        return record

    def _pack_camera(self, camera: Camera) -> None:
        record, aspect = self.record, self._aspect
        record["view_projection"] = camera.projection(aspect) @ camera.view_matrix()
        for name, axis in camera_axes(camera, aspect).items():
            record[f"camera_{name}"][:3] = axis
        record["pixel_spread"] = 2 * np.tan(camera.y_fov / 2) / self._height

    def _pack_lights(self, lights: tuple[RectLight, ...]) -> None:
        record = self.record
        if len(lights) > MOST_LIGHTS:
            raise ValueError(f"{len(lights)} lights, there is room for {MOST_LIGHTS}")
        record["light_count"] = len(lights)
        more = record["more_lights"].reshape(-1, len(LIGHT_PARTS), 4)
        for i, light in enumerate(lights):
            cross = np.cross(light.half_u, light.half_v)
            length = np.linalg.norm(cross)
            vectors = (light.center, light.half_u, light.half_v, light.radiance, cross / length)
            for k, (part, vector) in enumerate(zip(LIGHT_PARTS, vectors, strict=True)):
                place = record[f"light_{part}"] if i == 0 else more[i - 1, k]
                place[:3] = vector
                if part == "normal":
                    place[3] = 4 * length


def wgsl() -> str:
    return FRAME_UNIFORMS.wgsl() + f"const LIGHT_VEC4S: u32 = {len(LIGHT_PARTS)}u;\n"
