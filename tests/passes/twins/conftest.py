"""A scene with every kind of surface, and frames that run pass by pass on the GPU beside the twins.

A Walk holds, for each pass, every resource of the frame before it and after it on the GPU, and
what the pass's twin makes of the same resources. So a stage is compared on equal inputs whatever
the stages before it did.

Tolerances are in comparison.py.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.gpu.probe import probe
from engine.scene.light import Environment
from engine.scene.material import Material, Texture
from engine.scene.mesh import make_mesh
from engine.scene.scene import Instance, Scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.rays import RayType, with_every_ray
from passes.twins.frame import cpu_passes
from passes.twins.read_back import read_resources
from tests.passes.twins.comparison import LIGHTS, find_differences

SKY = Environment(zenith=(0.2, 0.4, 0.9), horizon=(0.8, 0.8, 0.7), ground=(0.3, 0.2, 0.1))

# Filled with rubbish before a walk, so that what a pass does not write shows.
WRITTEN = ("direct", "reflected", "accumulated", "picture")


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
def strict(device: Any) -> bool:
    """Whether the driver rounds as NumPy does, so that nothing has to be allowed for it."""
    found = probe(device)
    flushes = found.flushes_operands or found.flushes_sums or found.flushes_products
    return found.division_ulps <= 0.5 and not flushes and not any(found.contracts.values())


@pytest.fixture(scope="session")
def differences(strict: bool) -> Callable[[Step], list[str]]:
    return partial(find_differences, strict=strict)


@pytest.fixture(scope="session")
def assert_caught(strict: bool, differences: Any) -> Callable[[dict[str, Step], set[str]], None]:
    """assert_caught(steps, passes): the comparison fails for those passes and for no other.

    What a broken stage leaves is of a kind that those after it are not exact about: rays that begin
    inside a surface, two for one slot, lights that are no numbers. There a driver that is not
    strict may find other differences, too."""

    def check(steps: dict[str, Step], passes: set[str]) -> None:
        found = [name for name, step in steps.items() if differences(step)]
        if strict:
            assert set(found) == passes
        assert passes <= set(found) and found[0] in passes

    return check
