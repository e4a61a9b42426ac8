"""The whole frame on the CPU against the GPU, what a twin must be called, and proof that a wrong
shader shows in the comparison of its own stage and in no other."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import LimitError
from engine.gpu.stage import Stage
from passes.frame_options import FrameOptions
from passes.frame_passes import hybrid_passes
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.rays import RAY_TYPES, REFLECTION, with_every_ray
from passes.twins.frame import cpu_passes, run_cpu

ROOT = Path(__file__).resolve().parents[3]
SHADERS = ROOT / "passes" / "shaders"
WIDTH, HEIGHT = 61, 43

# Shaders without a twin, and why.
NO_TWIN = {
    "find_rays",  # reads a queue for one pixel; tests compare with the queue read back whole
    "rays/plain",  # rays that no queue holds, for the step log; compared with the oracle
    "accept_opaque",  # the oracle asks for non-opaque candidates only
    "gbuffer_raster",  # fixed-function; tests compare it with rays
    "gbuffer_spheres",  # likewise
    "copy_layer",  # fixed-function; tests compare what is drawn upon it with what is drawn whole
    "push_record",  # the end of queue_push
    "queue_push_subgroup",  # queue_push in another order within a workgroup
    "traverse_queue_logged",  # traverse_queue with a step log; its log is compared with the oracle
}
# Shaders that others import, by the module that has their twins.
TWIN_ELSEWHERE = {"material_record": "material", "pyramid_layout": "depth_pyramid"}


@pytest.fixture(scope="module")
def frames(device: Any, rich_scene: Any) -> Callable[..., HybridFrame]:
    made: dict[FrameOptions, HybridFrame] = {}

    def make(**settings: Any) -> HybridFrame:
        options = with_every_ray(FrameOptions(WIDTH, HEIGHT, gbuffer="rays", **settings))
        if options not in made:
            made[options] = HybridFrame(device, rich_scene, options)
        return made[options]

    return make


def test_every_shader_file_has_a_twin_of_its_name() -> None:
    shaders = {str(p.relative_to(SHADERS).with_suffix("")) for p in SHADERS.rglob("*.wgsl")}
    twins = ROOT / "passes" / "twins"
    modules = {str(p.relative_to(twins).with_suffix("")) for p in twins.rglob("*.py")}
    assert shaders - NO_TWIN - set(TWIN_ELSEWHERE) - modules == set()
    assert set(TWIN_ELSEWHERE.values()) <= modules
    assert {m for m in modules - shaders if not m.endswith("__init__")} == {
        "cpu_pass",
        "frame",
        "frame_resources",
        "hits",
        "queue_frame",
        "raster_frame",
        "read_back",
        "wgsl_functions",
    }


@pytest.mark.parametrize("count", [False, True])
def test_passes_and_bindings_are_those_of_the_gpu(
    frames: Callable[..., HybridFrame], count: bool
) -> None:
    frame = frames(count=count)
    twins = cpu_passes(frame.options)
    assert [p.name for p in frame.passes] == [t.name for t in twins]
    for item, twin in zip(frame.passes, twins, strict=True):
        bound = {twin.bind.get(name, name) for name in twin.bindings}
        indirect = {name for name in item.reads if name.endswith("_arguments")}
        assert bound | indirect == set(item.reads) | set(item.writes)


@pytest.mark.parametrize("count", [False, True])
def test_twins_take_the_bindings_in_their_order(
    monkeypatch: pytest.MonkeyPatch, frames: Callable[..., HybridFrame], count: bool
) -> None:
    frame = frames(count=count)
    stages: dict[str, Stage] = {}

    def make_stage(device: Any, name: str, path: str, **settings: Any) -> Stage:
        stages[name] = Stage(device, name, path, **settings)
        return stages[name]

    monkeypatch.setattr("passes.stage_passes.Stage", make_stage)
    hybrid_passes(frame.device, frame.scene, frame.options)
    for twin in cpu_passes(frame.options):
        stage = stages.pop(twin.name)
        assert twin.bindings == tuple(b.name for b in stage.bindings)
        function = getattr(stage.twin, "func", stage.twin)
        module = inspect.unwrap(function).__module__
        assert module.rpartition(".")[2] == Path(stage.shader.name).stem
    assert not stages


def test_struct_sizes_of_the_twins_are_the_shaders() -> None:
    from passes.twins import (
        borrowed,
        brdf,
        light,
        light_reflection,
        material,
        reflection_block,
        sampling,
        sent_weight,
        surface,
        upsample,
    )

    texts = {p.stem: p.read_text() for p in SHADERS.glob("*.wgsl")}

    def constant(file: str, name: str) -> float:
        line = next(x for x in texts[file].splitlines() if x.startswith(f"const {name}:"))
        return float(line.partition("=")[2].partition(";")[0].strip().rstrip("u"))

    for module, file, names in (
        (surface, "surface", ("OBJECT_VEC4S", "VERTEX_WORDS", "GAMMA_5", "GAMMA_8")),
        (material, "material_record", ("MATERIAL_VEC4S",)),
        (material, "surface", ("TEXTURE_VEC4S",)),
        (brdf, "brdf", ("MIRROR_ROUGHNESS",)),
        (sent_weight, "sent_weight", ("LEAST_F0",)),
        (
            upsample,
            "upsample",
            (
                "PLANE_TOLERANCE",
                "ROUGHNESS_TOLERANCE",
                "WIDE_SLACK",
                "HARDLY",
                "LEAST_LIKENESS",
                "LIKER",
                "OTHER_MATERIAL",
                "NEAREST",
            ),
        ),
        (
            sampling,
            "sampling",
            (
                "PI",
                "LEAST_HEIGHT",
                "REFLECTION_DIMENSION",
                "PRIMARY_LIGHT_DIMENSION",
                "REFLECTED_LIGHT_DIMENSION",
                "OCCLUSION_DIMENSION",
            ),
        ),
        (light, "light", ("SHADOW_T_MAX",)),
        (light_reflection, "light_reflection", ("NO_DISTANCE",)),
        (reflection_block, "reflection_block", ("NARROW_PART",)),
        (borrowed, "borrowed", ("LEAST_WORTH", "BORROWED_FRAMES")),
    ):
        for name in names:
            assert np.float32(getattr(module, name)) == np.float32(constant(file, name)), name


def test_frame_on_the_cpu_draws_the_same_picture(frames: Callable[..., HybridFrame]) -> None:
    frame = frames()
    for index in (0, 3):
        stats = frame.run(index)
        assert stats.valid
        cpu = frame.run_cpu()
        assert {ray.name: stats.rays[ray.name].rays for ray in RAY_TYPES} == {
            ray.name: cpu[ray.queue].count for ray in RAY_TYPES
        }
        picture = cpu["picture"].view(np.uint8).reshape(HEIGHT, WIDTH, 4)[..., :3]
        apart = np.abs(picture.astype(int) - frame.image()).max(axis=-1)
        # A ray that grazes an edge may choose the other side; all other pixels are equal but for
        # a step of 1/255.
        assert (apart > 1).mean() < 0.005
        raw = frame.device.read(frame.data.resources["accumulated"], np.float32)
        radiance = raw[: 4 * WIDTH * HEIGHT].reshape(-1, 4)
        assert np.isclose(radiance, cpu["accumulated"], rtol=1e-3, atol=1e-4).mean() > 0.995


def test_hall_on_the_cpu(device: Any, hall: Any) -> None:
    options = with_every_ray(FrameOptions(72, 41, gbuffer="rays", seed=3))
    frame = HybridFrame(device, hall, options)
    stats = frame.run()
    cpu = frame.run_cpu()
    for ray in RAY_TYPES:
        assert cpu[ray.queue].count == pytest.approx(stats.rays[ray.name].rays, rel=0.002)
    picture = cpu["picture"].view(np.uint8).reshape(41, 72, 4)[..., :3]
    apart = np.abs(picture.astype(int) - frame.image()).max(axis=-1)
    assert (apart > 1).mean() < 0.01
    assert picture.std() > 20


def test_counted_frame_counts_the_same_rays(frames: Callable[..., HybridFrame]) -> None:
    frame = frames(count=True)
    stats = frame.run()
    cpu = frame.run_cpu()
    for ray in RAY_TYPES:
        totals = cpu[f"{ray.name}_counters"]
        seen = stats.rays[ray.name]
        assert (seen.rays, seen.hits) == tuple(totals[:2].tolist())
        assert seen.nodes == pytest.approx(int(totals[2]), rel=0.05)
    header = cpu[REFLECTION.queue].header
    assert stats.rays["reflection"].texture_fetches == header["texture_fetches"]


def test_until_stops_after_the_named_pass(rich_scene: Any) -> None:
    options = FrameOptions(21, 13)
    early = run_cpu(rich_scene, options, until="gbuffer/resolve")
    assert early["surface"].any() and not early[REFLECTION.queue].header["count"]
    shaded = run_cpu(rich_scene, options, until="shade")
    assert shaded["reflected"].any() and not shaded["picture"].any()
    assert run_cpu(rich_scene, options)["picture"].all()
    with pytest.raises(ValueError, match="no pass is named blur, there are gbuffer/rays"):
        run_cpu(rich_scene, options, until="blur")


def test_more_materials_than_a_pixel_can_name(device: Any, rich_scene: Any) -> None:
    materials = np.tile(rich_scene.pack.materials[:1], 65537)
    many = replace(rich_scene, pack=replace(rich_scene.pack, materials=materials))
    with pytest.raises(LimitError, match="has 65,537 materials, the G-buffer names at most 65,536"):
        GpuScene(device, many)


def test_frame_of_a_scene_without_triangles(kit: Any) -> None:
    cpu = run_cpu(prepare(kit.scene([], sky=(0.25, 0.5, 1.0))), FrameOptions(5, 3))
    assert (cpu["accumulated"][:, :3] == np.float32([0.25, 0.5, 1.0])).all()
    assert len(set(cpu["picture"].tolist())) == 1


# File, what is broken in it, and the passes whose comparison must fail: those that use it.
BROKEN = {
    "picture upside down": (
        "passes/shaders/camera.wgsl",
        "let y = 1.0 - ",
        "let y = -1.0 + ",
        {
            "gbuffer/rays",
            "gbuffer/resolve",
            "rays/reflection",
            "rays/shadow",
            "shade/reflection",
            "composite",
        },
    ),
    "wrong vertex": (
        "passes/shaders/pixel_hit.wgsl",
        "vec2f(dot(s, p), dot(direction, cross(s, e1)))",
        "vec2f(dot(s, p), dot(direction, cross(e1, s)))",
        {"gbuffer/resolve"},
    ),
    "normal not turned": (
        "passes/shaders/surface.wgsl",
        "turned.shading_normal = -turned.shading_normal;",
        "",
        {"gbuffer/resolve", "shade/reflection"},
    ),
    "origin inside": (
        "passes/shaders/surface.wgsl",
        "{ normal = -normal; }",
        "{ }",
        {
            "rays/reflection",
            "rays/shadow",
            "rays/occlusion",
        },  # a hit's normal faces its ray already
    ),
    "half a circle": (
        "passes/shaders/sampling.wgsl",
        "2.0 * PI * r2",
        "PI * r2",
        {"rays/reflection", "rays/occlusion"},
    ),
    "light backwards": (
        "passes/shaders/light.wgsl",
        "-dot(direction, light.normal)",
        "dot(direction, light.normal)",
        {"rays/shadow", "shade/reflection"},
    ),
    "other mirror period": (
        "passes/shaders/textures.wgsl",
        "2u * size - 1u - place",
        "place - size",
        {"gbuffer/resolve", "shade/reflection"},
    ),
    "alpha inverted": (
        "passes/shaders/accept_alpha.wgsl",
        "return value >= ",
        "return value < ",
        {"gbuffer/rays", "traverse/reflection/0", "traverse/shadow/0", "traverse/occlusion/0"},
    ),
    "lit and shadowed exchanged": (
        "passes/shaders/rays/shadow.wgsl",
        "select(0u, 1u, ",
        "select(1u, 0u, ",
        {"traverse/shadow/0"},
    ),
    "free and occluded exchanged": (
        "passes/shaders/rays/occlusion.wgsl",
        "select(0u, 1u, ",
        "select(1u, 0u, ",
        {"traverse/occlusion/0"},
    ),
    "no cosine": (
        "passes/shaders/sampling.wgsl",
        "sqrt(1.0 - r1)",
        "(1.0 - r1)",
        {"rays/occlusion"},
    ),
    "ambient light not occluded": (
        "passes/shaders/composite.wgsl",
        "ambient *= ",
        "ambient += 0.0 * ",
        {"composite"},
    ),
    "slots collide": (
        "passes/shaders/queue_push.wgsl",
        "lane >= 32u",
        "lane > 32u",
        {"rays/reflection", "rays/shadow", "shade/reflection", "rays/occlusion"},
    ),
    "reflection's light sample": (
        "passes/shaders/shade.wgsl",
        "light_sample(pixel_index, BOUNCE, ",
        "light_sample(pixel_index, 0u, ",
        {"shade/reflection"},
    ),
    "one group short": (
        "passes/shaders/arguments.wgsl",
        "+ QUEUE_GROUP_SIZE - 1u",
        "",
        # The dispatches that it sizes leave rays out.
        {
            "arguments/reflection",
            "traverse/reflection/0",
            "shade/reflection",
            "arguments/shadow",
            "traverse/shadow/0",
            "arguments/occlusion",
            "traverse/occlusion/0",
        },
    ),
    "gamma": ("passes/shaders/tone_map.wgsl", "1.0 / 2.4", "1.0 / 2.5", {"composite"}),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_shader_is_caught_in_its_stage(
    break_shader: Callable[[str, str, str], None],
    rich_scene: Any,
    walk_new: Any,
    assert_caught: Any,
    fault: str,
) -> None:
    file, right, wrong, passes = BROKEN[fault]
    break_shader(file, right, wrong)
    steps = walk_new(rich_scene, 45, 37)
    assert_caught(steps, passes)
