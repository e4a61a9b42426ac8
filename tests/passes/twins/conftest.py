"""A scene with every kind of surface, and frames that run pass by pass on the GPU beside the twins.

A Walk holds, for each pass, every resource of the frame before it and after it on the GPU, and
what the pass's twin makes of the same resources. So a stage is compared on equal inputs whatever
the stages before it did.

Tolerances: whole numbers are equal. Floats may differ by 1e-5 or by 1e-5 of their size (a driver's
sqrt, pow, exp2, sin and cos are off by a few ULPs, and it may fuse); numbers packed into 8 or 16
bits by one step, in at most 1% of the places. On llvmpipe nearly everything is equal to the bit.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.counters import COUNTERS
from engine.scene.light import Environment
from engine.scene.material import Material, Texture
from engine.scene.mesh import make_mesh
from engine.scene.scene import Instance, Scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.lights_apart import LIGHTS_APART, NO_REFLECTION_QUEUE
from passes.prepare import prepare
from passes.rays import BOUNCES, RAY_TYPES, RayType, with_every_ray
from passes.slot_counts import SLOT_COUNTS
from passes.twins.frame import cpu_passes
from passes.twins.queue_push import RayQueue
from passes.twins.read_back import read_resources

SKY = Environment(zenith=(0.2, 0.4, 0.9), horizon=(0.8, 0.8, 0.7), ground=(0.3, 0.2, 0.1))

# Filled with rubbish before a walk, so that what a pass does not write shows.
WRITTEN = ("direct", "reflected", "accumulated", "picture")
LIGHTS = tuple(LIGHTS_APART.values())


def written(options: FrameOptions, rays: tuple[RayType, ...]) -> list[str]:
    own = [(ray.results, f"{ray.name}_arguments", ray.queue) for ray in rays]
    lights = LIGHTS if options.lights_apart else ()
    return [*WRITTEN, *lights, *(name for names in own for name in names)]


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
    rng = np.random.default_rng(seed)
    pixels = rng.integers(60, 256, (height, width, 4)).astype(np.uint8)
    return Texture(f"noise{seed}", pixels, **settings)


def make_rich_scene(kit: Any) -> Scene:
    """Rotated, mirrored and stretched instances; textures with every wrap; alpha tests; a mirror,
    surfaces as rough as the cutoff and rougher, an emitter, vertex colours, absent normals."""
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
        Material("lamp", (0.2, 0.2, 0.2, 1.0), roughness=0.6, emissive=(2.0, 1.0, 0.5)),
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
    coat = kit.sphere(material=5, rings=5)
    corners, stored = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.5]]), np.array([[1, 0, 1]] * 3)
    tip = make_mesh("tip", corners, np.array([[0, 1, 2]]), 1, normals=stored * [[1], [0], [1]])
    placed = [
        (0, np.eye(4)),
        (1, turned(0.7, (1.0, 0.7, 0.5), (-1.2, 0.2, -0.5))),
        (1, turned(2.1, (0.4, 0.4, 0.4), (0.3, -0.5, 1.2))),
        (2, turned(1.3, (-0.6, 0.8, 0.7), (1.3, -0.2, 0.1))),
        (3, turned(0.3, (0.7, 0.6, 1.0), (0.1, 0.4, 0.9))),
        (4, turned(-0.4, (1.0, 1.0, 1.0), (0.2, 1.0, -2.0))),
        (4, turned(0.2, (0.5, 0.4, 0.5), (0.5, 2.95, 1.5))),  # hangs through the light
        (5, turned(0.9, (0.5, 0.5, 0.6), (2.0, 0.6, -1.5))),
        (6, turned(1.0, (1.0, 1.0, -1.0), (-2.2, -0.6, 1.0))),
    ]
    instances = [Instance(f"i{k}", mesh, matrix) for k, (mesh, matrix) in enumerate(placed)]
    scene = kit.scene(
        (floor, smooth, flat, leaf, panel, coat, tip),
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


@dataclass(frozen=True)
class Step:
    """One pass: resources before it, after it on the GPU, and after its twin."""

    before: dict[str, Any]
    gpu: dict[str, Any]
    cpu: dict[str, Any]


RELATIVE, ABSOLUTE = 1e-5, 1e-5
ORIGIN_ULPS = 2  # of the largest coordinate
PACKED_FIELDS = ("cone", "direction", "path")  # two 16-bit numbers in a word
PACKED_APART = 0.01  # part of packed numbers that may be one step apart
# Of node and test counts: the oracle sorts all four children, the kernel finds the nearest; in
# any-hit traversal they visit unsorted children in different orders.
COUNTS_APART = {ray.name: 0.15 if ray.any_hit else 0.02 for ray in RAY_TYPES}
STACK_APART = 3
RASTER_APART, RASTER_PIXELS = 1e-4, 0.01  # of a depth; part of the pixels that may differ by more
QUEUE_KEYS = {ray.queue: ray.slot_field for ray in (*RAY_TYPES, *BOUNCES)}
CLOSEST_HITS = {ray.results: ray.queue for ray in (*RAY_TYPES, *BOUNCES) if not ray.any_hit}


def close(a: Any, b: Any) -> bool:
    return np.allclose(a, b, rtol=RELATIVE, atol=ABSOLUTE)


def packed_close(a: Any, b: Any, bits: int) -> bool:
    """Words that hold numbers of so many bits."""
    kind = {8: np.uint8, 16: np.uint16}[bits]
    x, y = (np.ascontiguousarray(v).view(kind).astype(int).ravel() for v in (a, b))
    apart = np.abs(x - y)
    return bool(apart.max(initial=0) <= 1 and (apart > 0).sum() <= PACKED_APART * apart.size)


def find_differences(step: Any) -> list[str]:
    """What of the frame the twin left in another state than the GPU: empty when they agree."""
    found = []
    for name, gpu in step.gpu.items():
        cpu = step.cpu[name]
        if name in QUEUE_KEYS:
            found += queue_differences(name, gpu, cpu)
        elif name == "surface":
            material, rough_metal = np.uint32(0xFFFF), np.uint32(16)
            same = all(packed_close(gpu[..., k], cpu[..., k], b) for k, b in enumerate((16, 16, 8)))
            same &= bool(((gpu[..., 3] ^ cpu[..., 3]) & material == 0).all())
            same &= packed_close(gpu[..., 3] >> rough_metal, cpu[..., 3] >> rough_metal, 8)
            found += [] if same else [name]
        elif name == "visibility":
            places = (np.ascontiguousarray(v[..., 2:]).view(np.float32) for v in (gpu, cpu))
            same = np.array_equal(gpu[..., :2], cpu[..., :2]) and close(*places)
            found += [] if same else [name]
        elif name in ("direct", "reflected", *LIGHTS):
            found += [] if packed_close(gpu, cpu, 16) else [name]
        elif name.endswith("_filtered") or "_round_" in name:
            found += [] if packed_close(gpu, cpu, 16) else [name]
        elif name == "guide":
            depth_rough = (np.ascontiguousarray(v[:, ::3]).view(np.float32) for v in (gpu, cpu))
            same = close(*depth_rough)
            same &= packed_close(gpu[:, 1], cpu[:, 1], 16) and (gpu[:, 2] == cpu[:, 2]).all()
            found += [] if same else [name]
        elif name.endswith("_history"):
            found += [] if history_close(gpu, cpu) else [name]
        elif name == "picture":
            found += [] if packed_close(gpu, cpu, 8) else [name]
        elif name in ("shadow_map", "probe_ids"):
            # The rasteriser and rays may see different triangles at edges.
            apart = ~np.isclose(gpu, cpu, rtol=RASTER_APART, atol=0)
            found += [] if apart.mean() < RASTER_PIXELS else [f"{name}: {apart.mean()}"]
        elif name == NO_REFLECTION_QUEUE:
            found += [] if gpu.header == cpu.header else [name]
        elif name.endswith("/view"):
            continue
        elif name in CLOSEST_HITS:
            # Rubbish lies behind the queue's end.
            gpu, cpu = (v[: step.gpu[CLOSEST_HITS[name]].count] for v in (gpu, cpu))
            same = all((gpu[k] == cpu[k]).all() for k in ("object", "primitive", "instance"))
            same = same and all(close(gpu[k], cpu[k]) for k in ("t", "u", "v"))
            found += [] if same else [name]
        elif name.endswith("_counters"):
            found += counter_differences(name, gpu, cpu)
        elif name.endswith("_slot_counts"):
            found += plane_differences(name, gpu, cpu)
        elif gpu.dtype == np.float32:
            found += [] if np.array_equal(gpu, cpu, equal_nan=True) or close(gpu, cpu) else [name]
        elif not np.array_equal(gpu, cpu):
            found.append(name)
    return found


def history_close(a: Any, b: Any) -> bool:
    """[n, 4] words: light, frames and deviation. A past that lies at the limit of what counts as
    the same may count for one alone, as much as a packed number may be a step apart."""
    light, more = (
        [np.ascontiguousarray(v[:, part]) for v in (a, b)] for part in (slice(3), slice(3, 4))
    )
    floats = [v.view(np.float32) for v in light] + [v.view(np.float16).astype(float) for v in more]
    same = np.isclose(floats[0], floats[1], rtol=1e-4, atol=1e-4).all(-1)
    same &= np.isclose(floats[2], floats[3], rtol=2e-3, atol=1e-3).all(-1)
    return bool((~same).sum() <= PACKED_APART * same.size)


def queue_differences(name: str, gpu: RayQueue, cpu: RayQueue) -> list[str]:
    if gpu.header != cpu.header:
        return [f"{name}: {gpu.header} against {cpu.header}"]
    # Which workgroup pushes first is up to the GPU.
    key = QUEUE_KEYS[name]
    x, y = (q.records[: q.count][np.argsort(q.records[key][: q.count])] for q in (gpu, cpu))
    bad = []
    for field in x.dtype.names:
        if field in PACKED_FIELDS and x[field].dtype == np.uint32:
            same = packed_close(x[field], y[field], 16)
        elif field == "origin":
            # Tighter than the offset from the surface, which is some ULPs long.
            size = np.abs(x[field]).max(-1, keepdims=True)
            same = (np.abs(x[field] - y[field]) <= ORIGIN_ULPS * np.spacing(size)).all()
        elif x[field].dtype == np.float32:
            same = close(x[field], y[field])
        else:
            same = np.array_equal(x[field], y[field])
        bad += [] if same else [f"{name}.{field}"]
    return bad


def plane_differences(name: str, gpu: Any, cpu: Any) -> list[str]:
    """Planes of counts by slot: the same slots sent a ray, the sums agree."""
    planes = [v.astype(np.int64).reshape(len(SLOT_COUNTS), -1) for v in (gpu, cpu)]
    bad = [] if ((planes[0][0] > 0) == (planes[1][0] > 0)).all() else [f"{name}: other slots"]
    for field, x, y in zip(SLOT_COUNTS, *planes, strict=True):
        if field == "stack_max":
            same = np.abs(x - y).max(initial=0) <= STACK_APART
        else:
            same = abs(x.sum() - y.sum()) <= COUNTS_APART[name.split("_")[0]] * x.sum()
        bad += [] if same else [f"{name}.{field}: {x.sum()} against {y.sum()}"]
    return bad


def counter_differences(name: str, gpu: Any, cpu: Any) -> list[str]:
    bad = []
    for index, field in enumerate(COUNTERS):
        x, y = int(gpu[index]), int(cpu[index])
        allowed = STACK_APART if field == "stack_max" else COUNTS_APART[name.split("_")[0]] * x
        if abs(x - y) > (0 if field in ("rays", "hits", "overflows") else allowed):
            bad.append(f"{name}.{field}: {x} against {y}")
    return bad


def walk_frame(
    frame: HybridFrame, frame_index: int = 0, sample_count: int = 1, rubbish: int = 0x7E1DAB1E
) -> dict[str, Step]:
    """A Step for each pass of one frame, by the pass's name."""
    frame.inputs = replace(frame.inputs, frame_index=frame_index, sample_count=sample_count)
    frame.data.write_inputs(frame.inputs)
    wgpu, bound = frame.device.wgpu, frame.data.resources
    names = written(frame.options, frame.data.rays)
    for name in names if sample_count == 1 else set(names) - {"accumulated"}:
        frame.device.write(bound[name], np.full(bound[name].size // 4, rubbish, np.uint32))
    encoder = wgpu.create_command_encoder(label="clear")
    for name, size in frame.data.cleared.items():
        encoder.clear_buffer(bound[name], 0, size)
    wgpu.queue.submit([encoder.finish()])
    twins = {item.name: item for item in cpu_passes(frame.options)}
    steps: dict[str, Step] = {}
    before = read_resources(frame.data, frame.inputs)
    for item in frame.passes:
        encoder = wgpu.create_command_encoder(label=item.name)
        if item.attachments:
            scope = encoder.begin_render_pass(label=item.name, **item.attachments(bound))
        else:
            scope = encoder.begin_compute_pass(label=item.name)
        item.encode(scope, bound)
        scope.end()
        wgpu.queue.submit([encoder.finish()])
        gpu = read_resources(frame.data, frame.inputs)
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
        settings = with_every_ray(FrameOptions(width, height, gbuffer="rays", **options))
        key = (id(prepared), settings)
        if key not in frames:
            frames[key] = HybridFrame(device, prepared, settings)
        return walk_frame(frames[key], frame_index, sample_count)

    return walker


@pytest.fixture(scope="session")
def walk_new(device: Any) -> Callable[..., dict[str, Step]]:
    """As `walk` over a frame of its own, so of the shaders as they are now."""

    def walker(
        prepared: Any,
        width: int,
        height: int,
        rubbish: int = 0,
        every_ray: bool = True,
        **options: Any,
    ) -> dict[str, Step]:
        settings = FrameOptions(width, height, gbuffer="rays", **options)
        settings = with_every_ray(settings) if every_ray else settings
        # What a wrong pass leaves out must not lead the next one out of its buffers.
        return walk_frame(HybridFrame(device, prepared, settings), rubbish=rubbish)

    return walker


@pytest.fixture(scope="session")
def differences() -> Callable[[Step], list[str]]:
    return find_differences
