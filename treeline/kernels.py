"""Every kernel of the product, compiled on a device without drawing anything.

A kernel's build depends on the scene (alpha test or not) and on the run (timed or counted), so a
scene of two triangles, one opaque and one alpha-tested, stands in.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from bvh.build import BuildOptions
from bvh.contract.cases import RULES, Rules
from bvh.contract.gpu import Intersector
from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import RayTracer, Variant
from engine.gpu.device import Device
from engine.gpu.shader import ShaderError
from engine.scene.default_view import with_default_view
from engine.scene.material import Material
from engine.scene.mesh import Mesh
from engine.scene.scene import Instance, Parts, Scene
from passes.frame_options import ANY_HIT_MODES, GBUFFERS, FrameOptions
from passes.frame_passes import hybrid_passes
from passes.gpu_scene import GpuScene
from passes.prepare import PreparedScene, prepare
from passes.rays import with_every_ray
from treeline.triangle import traversal_pass

Result = tuple[str, str | None]  # kernel, what is wrong with it


def compile_all(device: Device) -> Iterator[Result]:
    """Each kernel's name and None, or the compiler's message (one line) where it fails."""
    prepared = prepare(two_triangles(), BuildOptions(opacity="material"))
    yield from _frame_kernels(device, prepared)
    yield from _trace_kernels(device, prepared)
    yield from _contract_kernels(device, prepared)
    yield from _attempt("example/triangle", lambda: traversal_pass(device, "rgba8unorm"))


def two_triangles() -> Scene:
    """One opaque and one alpha-tested triangle, each a mesh of its own."""
    corners = np.array([[-1, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)

    def mesh(name: str, material: int) -> Mesh:
        return Mesh(
            name=name,
            positions=corners + np.float32(material),
            normals=np.zeros((3, 3), np.float32),
            uvs=np.zeros((3, 2), np.float32),
            colors=np.full((3, 4), 255, np.uint8),
            triangles=np.array([[0, 1, 2]], np.uint32),
            material=material,
        )

    materials = (Material("opaque"), Material("cut out", alpha_mode="MASK"))
    instances = tuple(Instance(m.name, i, np.eye(4)) for i, m in enumerate(materials))
    meshes = (mesh("opaque", 0), mesh("cut out", 1))
    return with_default_view(Parts(meshes, materials, (), instances), "two triangles")


def _frame_kernels(device: Device, prepared: PreparedScene) -> Iterator[Result]:
    scene = GpuScene(device, prepared)
    seen: set[str] = set()
    other: dict[str, Any] = {"passes": "mixed", "ray_sort": "fine", "hit_sort": "material"}
    if "subgroup" in device.features:
        other["compaction"] = "subgroup"
    for gbuffer, mode, wavefront in product(GBUFFERS, ANY_HIT_MODES, ({}, other)):
        subgroup = "compaction" in wavefront
        for count in (False, True):
            options = FrameOptions(
                8, 8, gbuffer=gbuffer, count=count, motion=True, any_hit_mode=mode, **wavefront
            )
            options = with_every_ray(options)
            try:
                names = [p.name for p in hybrid_passes(device, scene, options)]
            except ShaderError as error:
                yield f"frame with {gbuffer} G-buffer", one_line(error)
                continue
            for name in names:
                # Only what counts is another kernel in a counted frame.
                counts = count and name.split("/")[0] in ("traverse", "any-hit", "shade")
                rounds = mode == "queue" and name.startswith("traverse")
                pushes = rounds or name.split("/")[0] in ("rays", "any-hit", "shade")
                label = f"{name}{' (round)' if rounds else ''}{' (counted)' if counts else ''}"
                label += " (subgroup)" if subgroup and pushes else ""
                if label not in seen:
                    seen.add(label)
                    yield label, None


def _trace_kernels(device: Device, prepared: PreparedScene) -> Iterator[Result]:
    for any_hit in (False, True):
        for counted in (False, True):
            name = f"trace/{'any-hit' if any_hit else 'closest-hit'}"
            loops = default_kernel(device.info).loops
            variant = Variant(name, any_hit=any_hit, loops=loops)

            def compile_variant(variant: Variant = variant, counted: bool = counted) -> RayTracer:
                return RayTracer(device, prepared.bvh.words, variant, counted=counted)

            yield from _attempt(f"{name}{' (counted)' if counted else ''}", compile_variant)


def _contract_kernels(device: Device, prepared: PreparedScene) -> Iterator[Result]:
    for rules in RULES:

        def compile_rules(rules: Rules = rules) -> Intersector:
            return Intersector(device, rules)

        yield from _attempt(f"contract/instruction, {rules}", compile_rules)
        variant = Variant(f"contract/traversal, {rules}", traversal="contract", rules=rules)

        def compile_traversal(variant: Variant = variant) -> RayTracer:
            return RayTracer(device, prepared.bvh.words, variant)

        yield from _attempt(variant.name, compile_traversal)


def _attempt(name: str, compile_it: Callable[[], object]) -> Iterator[Result]:
    try:
        compile_it()
    except ShaderError as error:
        yield name, one_line(error)
    else:
        yield name, None


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
