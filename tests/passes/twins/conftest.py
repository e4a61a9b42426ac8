"""A scene with every kind of surface, and frames that run pass by pass on the GPU beside the twins.

A Walk holds, for each pass, every resource of the frame before it and after it on the GPU, and
what the pass's twin makes of the same resources. So a stage is compared on equal inputs whatever
the stages before it did.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.counters import buffer_words
from bvh.gpu.trace_rays import HIT
from engine.scene.light import Environment
from engine.scene.material import Material, Texture
from engine.scene.mesh import make_mesh
from engine.scene.scene import Instance, Scene
from passes.frame_data import TEXTURES
from passes.frame_options import FrameOptions
from passes.frame_uniforms import pack_uniforms
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.queue import QUEUE_HEADER
from passes.rays import RAY_TYPES
from passes.twins.frame import cpu_passes
from passes.twins.queue_push import RayQueue

SKY = Environment(zenith=(0.2, 0.4, 0.9), horizon=(0.8, 0.8, 0.7), ground=(0.3, 0.2, 0.1))


# Filled with rubbish before a walk, so that what a pass does not write shows.
WRITTEN = (
    "direct",
    "reflected",
    "accumulated",
    "picture",
    "reflection_results",
    "shadow_results",
    "reflection_arguments",
    "shadow_arguments",
    "reflection_queue",
    "shadow_queue",
)


def turned(angle: float, scale: Any, offset: Any) -> Any:
    """Scale, then a rotation about a slanted axis, then a shift."""
    x, y, z = np.array([1.0, 2.0, 2.0]) / 3.0
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    matrix = np.eye(4)
    matrix[:3, :3] = np.eye(3) + np.sin(angle) * skew + (1 - np.cos(angle)) * skew @ skew
    matrix[:3, :3] *= np.asarray(scale, float)
    matrix[:3, 3] = offset
    return matrix


def noise(seed: int, height: int, width: int, **settings: Any) -> Texture:
    """Smooth enough that mip levels look alike, bright enough to be no mask."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(60, 256, (height, width, 4)).astype(np.uint8)
    return Texture(f"noise{seed}", pixels, **settings)


def make_rich_scene(kit: Any) -> Scene:
    """Rotated, mirrored and stretched instances; textures with every wrap; alpha tests; a mirror,
    rough and metallic surfaces, an emitter, vertex colours, meshes without stored normals."""
    holes = noise(3, 6, 5, srgb=True, wrap_u="mirror", wrap_v="clamp")
    holes.pixels[..., 3] = np.where(np.indices((6, 5)).sum(0) % 2, 255, 20)
    textures = (
        noise(1, 16, 16, srgb=True),
        noise(2, 7, 9, srgb=False, wrap_u="clamp", wrap_v="mirror"),
        holes,
    )
    materials = (
        kit.grey(0.9, base_color_texture=0),
        kit.mirror(base_color=(0.9, 0.8, 0.7, 1.0)),
        Material("metal", (0.9, 0.6, 0.3, 1.0), metallic=0.9, roughness=0.3),
        Material(
            "leaf",
            (0.4, 0.9, 0.5, 0.9),
            roughness=0.5,
            alpha_mode="MASK",
            base_color_texture=2,
            metallic_roughness_texture=1,
        ),
        Material("lamp", (0.2, 0.2, 0.2, 1.0), roughness=1.0, emissive=(2.0, 1.0, 0.5)),
        Material("coat", (0.7, 0.2, 0.3, 1.0), roughness=0.15, metallic_roughness_texture=1),
    )
    floor = kit.quad(
        (-4, -1, 4),
        (8, 0, 0),
        (0, 0, -8),
        0,
        cells=3,
        uvs=np.random.default_rng(9).uniform(-3, 3, (16, 2)),
    )
    smooth = kit.sphere(material=1, rings=6)
    flat = kit.sphere(material=2, rings=4, smooth=False)
    shades = np.random.default_rng(5).integers(80, 256, (len(flat.positions), 4))
    flat = replace(flat, colors=shades.astype(np.uint8))
    leaf = kit.quad((-1, -1, 0), (2, 0, 0), (0, 2, 0), 3, cells=2)
    panel = kit.quad((-0.5, -0.5, 0), (1, 0, 0), (0, 1, 0), 4)
    coat = replace(kit.sphere(material=5, rings=5), material=5)
    tip = make_mesh("tip", np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.5]]), np.array([[0, 1, 2]]), 1)
    placed = [
        (0, np.eye(4)),
        (1, turned(0.7, (1.0, 0.7, 0.5), (-1.2, 0.2, -0.5))),
        (1, turned(2.1, (0.4, 0.4, 0.4), (0.3, -0.5, 1.2))),
        (2, turned(1.3, (-0.6, 0.8, 0.7), (1.3, -0.2, 0.1))),
        (3, turned(0.3, (0.7, 0.6, 1.0), (0.1, 0.4, 0.9))),
        (4, turned(-0.4, (1.0, 1.0, 1.0), (0.2, 1.0, -2.0))),
        (5, turned(0.9, (0.5, 0.5, 0.6), (2.0, 0.6, -1.5))),
        (6, turned(1.0, (1.0, 1.0, -1.0), (-2.2, -0.6, 1.0))),
    ]
    meshes = (floor, smooth, flat, leaf, panel, coat, tip)
    instances = [Instance(f"i{k}", mesh, matrix) for k, (mesh, matrix) in enumerate(placed)]
    scene = kit.scene(
        meshes,
        materials,
        textures=textures,
        instances=instances,
        eye=(0.3, 1.2, 5.0),
        light=kit.lamp((0.5, 3.0, 1.5), 0.6, facing=(-0.1, -1.0, -0.3), radiance=(9.0, 8.0, 7.0)),
    )
    return replace(scene, environment=SKY)


@pytest.fixture(scope="session")
def rich_scene(kit: SimpleNamespace) -> Any:
    return prepare(make_rich_scene(kit))


def read_resources(frame: HybridFrame) -> dict[str, Any]:
    """Every resource of a frame as the twins take them (see passes/twins/frame.py)."""
    data = frame.data
    pixels, bound, read = data.pixels, data.resources, data.device.read
    found: dict[str, Any] = {
        name: array.reshape(-1, 4) if name == "tables" else array
        for name, array in data.scene.arrays.items()
    }
    found["frame"] = pack_uniforms(frame.inputs, data.width, data.height, data.scene.bases)
    for name in ("ids", "visibility", "surface", "depth"):
        words = {"rgba32uint": 4, "rg32uint": 2, "r32float": 1}[TEXTURES[name]]
        raw = data.device.wgpu.queue.read_texture(
            {"texture": data.textures[name], "mip_level": 0, "origin": (0, 0, 0)},
            {"offset": 0, "bytes_per_row": 4 * words * data.width, "rows_per_image": data.height},
            (data.width, data.height, 1),
        )
        kind = np.float32 if name == "depth" else np.uint32
        shape = (data.height, data.width, words)[: 2 if words == 1 else 3]
        found[name] = np.frombuffer(raw, kind).reshape(shape).copy()
    for name, kind, width in (
        ("direct", np.uint32, 2),
        ("reflected", np.uint32, 4),
        ("accumulated", np.float32, 4),
    ):
        found[name] = read(bound[name], kind, count=width * pixels).reshape(pixels, width)
    found["picture"] = read(bound["picture"], np.uint32, count=pixels)
    found["primary_failed"] = read(bound["primary_failed"], np.uint32, count=1)
    found["reflection_results"] = read(bound["reflection_results"], HIT.dtype, count=pixels)
    found["shadow_results"] = read(bound["shadow_results"], np.uint32, count=2 * pixels)
    for ray in RAY_TYPES:
        header = read(bound[ray.queue], QUEUE_HEADER.dtype, count=1).reshape(())
        capacity = data.capacities[ray.name]
        records = read(bound[ray.queue], ray.record.dtype, offset=QUEUE_HEADER.size, count=capacity)
        found[ray.queue] = RayQueue(header, records)
        found[f"{ray.name}_arguments"] = read(bound[f"{ray.name}_arguments"], count=3)
        if data.options.count:
            words = buffer_words(data.instance_count)
            found[f"{ray.name}_counters"] = read(bound[f"{ray.name}_counters"], count=words)
            found[f"{ray.name}_nodes"] = data.read_slot_nodes(ray)
    return found


@dataclass(frozen=True)
class Step:
    """One pass: resources before it, after it on the GPU, and after its twin."""

    before: dict[str, Any]
    gpu: dict[str, Any]
    cpu: dict[str, Any]


def walk_frame(frame: HybridFrame, frame_index: int = 0, sample_count: int = 1) -> dict[str, Step]:
    """A Step for each pass of one frame, by the pass's name."""
    frame.inputs = replace(frame.inputs, frame_index=frame_index, sample_count=sample_count)
    frame.data.write_uniforms(frame.inputs)
    wgpu, bound = frame.device.wgpu, frame.data.resources
    for name in WRITTEN if sample_count == 1 else set(WRITTEN) - {"accumulated"}:
        frame.device.write(bound[name], np.full(bound[name].size // 4, 0x7E1DAB1E, np.uint32))
    encoder = wgpu.create_command_encoder(label="clear")
    for name, size in frame.data.cleared.items():
        encoder.clear_buffer(bound[name], 0, size)
    wgpu.queue.submit([encoder.finish()])
    twins = {item.name: item for item in cpu_passes(frame.options)}
    steps: dict[str, Step] = {}
    before = read_resources(frame)
    for item in frame.passes:
        encoder = wgpu.create_command_encoder(label=item.name)
        scope = encoder.begin_compute_pass(label=item.name)
        item.encode(scope, bound)
        scope.end()
        wgpu.queue.submit([encoder.finish()])
        gpu = read_resources(frame)
        cpu = copy.deepcopy(before)
        twins[item.name].run(cpu)
        steps[item.name] = Step(before, gpu, cpu)
        before = gpu
    return steps


@pytest.fixture(scope="session")
def walk(device: Any) -> Callable[..., dict[str, Step]]:
    """walk(prepared, width, height, frame_index=, sample_count=, **FrameOptions fields)"""
    frames: dict[Any, HybridFrame] = {}

    def walker(
        prepared: Any,
        width: int,
        height: int,
        frame_index: int = 0,
        sample_count: int = 1,
        **options: Any,
    ) -> dict[str, Step]:
        settings = FrameOptions(width, height, gbuffer="rays", **options)
        key = (id(prepared), settings)
        if key not in frames:
            frames[key] = HybridFrame(device, prepared, settings)
        return walk_frame(frames[key], frame_index, sample_count)

    return walker
