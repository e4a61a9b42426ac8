"""What a pixel of the shown frame sees, and where in the structure that is."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bvh.rays import MISS_ID
from engine.gpu.errors import UserError
from engine.scene.upload import decode_normals
from passes.hybrid import HybridFrame
from passes.pixel_probe import probe_pixel
from treeline.view.node_ref import NodeRef
from treeline.view.node_search import find_triangle
from treeline.view.pixel_rays import PixelRay, TracedScene, list_rays, trace_steps, traced_scene
from treeline.view.step_nodes import hit_step, step_node, step_places
from treeline.view.structure_tree import StructureTree

U32 = NDArray[np.uint32]
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """What is seen. Vectors are world space, turned to the viewer; `depth` metres along the view
    axis, `distance` from the camera; `base_color` linear."""

    material: int
    material_name: str
    depth: float
    distance: float
    position: F64  # [3]
    normal: F64  # [3] of the triangle
    shading_normal: F64  # [3]
    weights: tuple[float, float]  # of the triangle's vertices 1 and 2
    base_color: tuple[float, float, float]
    roughness: float
    metalness: float


@dataclass(frozen=True, slots=True, eq=False)
class Pick:
    """A pixel. Ids are -1, `surface` None and `path` empty where it sees the background.

    `path` leads from the TLAS's root through the instance and the block to the triangle; it is
    empty too where the structure does not hold what was drawn. `note` says where raster and
    ray disagree about the pixel."""

    pixel: tuple[int, int]
    object: int
    primitive: int
    instance: int
    instance_name: str
    blas: int
    blas_name: str
    surface: Surface | None
    path: tuple[NodeRef, ...]
    rays: tuple[PixelRay, ...]
    traced: TracedScene
    note: str = ""


class Shown(Protocol):
    """A session: `frame` is the one whose buffers are shown now."""

    @property
    def frame(self) -> HybridFrame | None: ...

    def frame_for(self, counts: bool) -> HybridFrame | None: ...


def pick_source(session: Shown) -> HybridFrame | None:
    """The frame that a pick reads: what is shown, or while a further sample of that is half drawn,
    the counted frame of the same view. None: ask again after the next step."""
    shown, counted = session.frame, session.frame_for(True)
    if shown is None or shown.whole:
        return shown
    if counted is not None and counted.whole and _same_view(shown, counted):
        return counted
    return None


def _same_view(a: HybridFrame, b: HybridFrame) -> bool:
    size = (a.options.width, a.options.height) == (b.options.width, b.options.height)
    one, other = a.inputs, b.inputs
    # Cameras are compared as objects: they hold arrays, and a session passes one on to its frames.
    pose = (one.clip, one.time) == (other.clip, other.time)
    return size and pose and a.scene is b.scene and one.camera is other.camera


def pick(source: HybridFrame | Shown, x: int, y: int) -> Pick:
    """Pixel (x, y) of a whole frame (`pick_source`). UserError outside the picture, or without."""
    frame = source if isinstance(source, HybridFrame) else pick_source(source)
    if frame is None or not frame.whole:
        raise UserError("there is no whole frame to pick from yet")
    traced = traced_scene(frame)
    probe = probe_pixel(frame.data, x, y)
    rays = list_rays(frame, probe, traced)
    primary = rays[0]
    if primary.object == MISS_ID:
        return Pick((x, y), -1, -1, -1, "", -1, "", None, (), rays, traced)
    bvh = traced.bvh
    instance = bvh.instances[primary.instance]
    path, note = _path(primary)
    return Pick(
        pixel=(x, y),
        object=primary.object,
        primitive=primary.primitive,
        instance=primary.instance,
        instance_name=instance.name,
        blas=instance.blas,
        blas_name=bvh.blas_names[instance.blas],
        surface=_surface(frame, primary, probe.visibility, probe.surface),
        path=path,
        rays=rays,
        traced=traced,
        note=note,
    )


def _surface(frame: HybridFrame, primary: PixelRay, visibility: U32, words: U32) -> Surface:
    """From the words of passes/shaders/gbuffer.wgsl."""
    shading, geometric = decode_normals(words[:2]).astype(np.float64)
    root = words[2:3].view(np.uint8)[:3].astype(np.float64) / 255  # square root encoded
    material = int(words[3]) & 0xFFFF
    materials = frame.scene.prepared.scene.materials
    u, v = visibility[2:].view(np.float32).tolist()
    return Surface(
        material=material,
        material_name=materials[material].name if material < len(materials) else "",
        depth=primary.t,
        distance=primary.t * float(np.linalg.norm(primary.direction.astype(np.float64))),
        position=primary.point(primary.t),
        normal=geometric,
        shading_normal=shading,
        weights=(u, v),
        base_color=tuple((root * root).tolist()),
        roughness=(int(words[3]) >> 16 & 0xFF) / 255,
        metalness=(int(words[3]) >> 24) / 255,
    )


def _path(primary: PixelRay) -> tuple[tuple[NodeRef, ...], str]:
    """The path to the triangle that the pixel shows, and what there is to say about it.

    Where the primary ray ends elsewhere (a rasteriser decides an edge by its own rounding), the
    triangle is looked for by its ids."""
    bvh = primary.traced.bvh
    tree = StructureTree(bvh)
    steps, result = trace_steps(primary)
    if (int(result.object[0]), int(result.primitive[0])) == (primary.object, primary.primitive):
        number = hit_step(steps)
        seen = step_node(steps[number], step_places(steps, bvh)[number])
        return tree.path_to(seen) if seen else (), ""
    met = "nothing"
    if result.hit[0]:
        met = f"object {result.object[0]}, primitive {result.primitive[0]}"
    note = f"the ray through the pixel's centre meets {met}"
    geometry = primary.object - bvh.instances[primary.instance].first_object
    seen = find_triangle(tree, primary.instance, geometry, primary.primitive)
    if seen is None:
        return (), f"{note}; the structure does not hold what was drawn"
    return tree.path_to(seen), note
