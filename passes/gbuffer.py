"""The G-buffer's first half: which triangle each pixel sees, by rasterising.

One 8-byte attachment (object, triangle) of WebGPU's guaranteed 32 bytes a sample;
passes/shaders/resolve.wgsl turns it into barycentrics, normals, materials and depth. Nothing is
culled: rays see both sides too.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.frame.render_pass import Parts, Pass, Resources
from engine.gpu.pipelines import Pipeline
from engine.gpu.shader import compose
from engine.gpu.stage import BindGroups, read_bindings
from passes.frame_uniforms import FRAME_UNIFORMS
from passes.gpu_scene import GpuScene
from passes.layer_copy import IDS_FORMAT, LayerCopy

U32 = NDArray[np.uint32]
Seen = NDArray[np.bool_] | None  # by object; None: all

ENTRIES = ("opaque_main", "alpha_main", "sphere_main")  # drawn in this order
BOX_VERTICES = 36  # that a sphere is drawn with
NOTHING = 0xFFFFFFFF  # `object` of a pixel that sees no triangle


class Draw(NamedTuple):
    """`copies` objects of the list from number `at` on: each `triangles` triangles, or spheres, of
    the index buffer from `first` on, which is number `begin` of the object's."""

    entry: str  # point of the shader
    at: int
    copies: int
    first: int
    triangles: int
    begin: int = 0


class DrawList:
    """Every object of a scene that has triangles and shares a bit with `mask`, in the order in
    which they are drawn: opaque ones first, those of one mesh one behind the other. `triangles`
    counts them all."""

    def __init__(self, scene: GpuScene, mask: int) -> None:
        objects = scene.prepared.pack.objects
        materials, meshes = scene.prepared.scene.materials, scene.prepared.scene.meshes
        entries = [ENTRIES[not materials[int(o["material"])].opaque] for o in objects]
        for index, instance in enumerate(scene.prepared.scene.instances):
            if meshes[instance.mesh].radii is not None:
                entries[index] = "sphere_main"
        seen = (objects["mask"] & mask).tolist()
        self.firsts = objects["first_triangle"].tolist()
        self.sizes = objects["triangle_count"].tolist()
        # Entry point and object of each draw.
        self.draws: list[tuple[str, int]] = []
        for entry in ENTRIES:
            by_mesh: dict[int, list[int]] = {}
            for index, size in enumerate(self.sizes):
                if size and seen[index] and entries[index] == entry:
                    by_mesh.setdefault(self.firsts[index], []).append(index)
            self.draws += [(entry, index) for alike in by_mesh.values() for index in alike]
        self.ends = list(accumulate(self.sizes[index] for _, index in self.draws))
        self.triangles = self.ends[-1] if self.draws else 0

    def split(self, first: int) -> tuple[int, int]:
        """The object that triangle `first` of the list belongs to, and its number there."""
        at = bisect_right(self.ends, first)
        index = self.draws[at][1]
        return index, first - (self.ends[at] - self.sizes[index])

    def objects(self) -> U32:
        """The object of each draw."""
        return np.array([index for _, index in self.draws] or [0], np.uint32)

    def instanced(self, seen: Seen = None) -> Iterator[Draw]:
        """All, or those that are `seen`, by object; the copies of a mesh in one draw: a thousand of
        them are a thousand times a driver's work otherwise."""
        at = 0

        def kind(draw: tuple[str, int]) -> tuple[str, int, bool]:
            return draw[0], self.firsts[draw[1]], seen is None or bool(seen[draw[1]])

        for (entry, first, drawn), alike in groupby(self.draws, kind):
            objects = [index for _, index in alike]
            if drawn:
                yield Draw(entry, at, len(objects), first, self.sizes[objects[0]])
            at += len(objects)

    def within(self, first: int, count: int, seen: Seen = None) -> Iterator[Draw]:
        """`count` triangles from `first` on, an object a draw, without what is not `seen`."""
        at = bisect_right(self.ends, first)
        while count > 0:
            entry, index = self.draws[at]
            skipped = first - (self.ends[at] - self.sizes[index])
            drawn = min(count, self.sizes[index] - skipped)
            if seen is None or seen[index]:
                yield Draw(entry, at, 1, self.firsts[index] + skipped, drawn, skipped)
            first, count, at = first + drawn, count - drawn, at + 1


def raster_pass(scene: GpuScene, mask: int) -> Pass:
    """The picture's ids, of every object that shares a bit with the mask of primary rays."""

    def attachments(resources: Resources) -> dict[str, Any]:
        return {
            "color_attachments": [id_target(resources["ids"])],
            "depth_stencil_attachment": depth_target(resources["raster_depth"], "discard"),
        }

    return draw_pass("gbuffer/raster", scene, mask, attachments, writes=("ids", "raster_depth"))


def id_target(view: Any) -> dict[str, Any]:
    """An attachment of IDS_FORMAT, cleared to NOTHING."""
    return {
        "view": view,
        "load_op": "clear",
        "store_op": "store",
        "clear_value": (NOTHING, NOTHING, 0, 0),
    }


def depth_target(view: Any, store: str) -> dict[str, Any]:
    """A depth attachment, cleared to infinity (depth is reversed). `store` it or "discard"."""
    return {
        "view": view,
        "depth_load_op": "clear",
        "depth_store_op": store,
        "depth_clear_value": 0.0,
    }


def draw_pass(
    name: str,
    scene: GpuScene,
    mask: int,
    attachments: Callable[[Resources], dict[str, Any]],
    *,
    writes: tuple[str, ...],
    also_reads: tuple[str, ...] = (),
    frame: str = "frame",
    seen: str = "",
    ids: bool = True,
    below: LayerCopy | None = None,
    kept: str = "",
) -> Pass:
    """Draws every object of the scene that shares a bit with `mask`, non-opaque ones with the alpha
    test, spheres by the boxes around them, as the FRAME_UNIFORMS resource `frame` sees them.
    `seen` names the resource that says which of them it may see (`passes.view_culling`), "" if it
    sees all. Without `ids` there is no colour attachment, depth alone is drawn. It is drawn over
    what is `below`; `kept` as `Pass` has it."""
    device = scene.device
    accept = "accept_alpha" if scene.has_alpha else "accept_opaque"
    slots = {"accept": f"passes/shaders/{accept}.wgsl"}
    shader = compose("passes/shaders/gbuffer_raster.wgsl", slots)
    bindings = read_bindings(shader)
    spheres = compose("passes/shaders/gbuffer_spheres.wgsl", slots)
    bind_groups = BindGroups(device, bindings, "VERTEX|FRAGMENT")
    formats = [IDS_FORMAT] if ids else []

    def pipeline(entry: str) -> Pipeline:
        settings: dict[str, Any] = {
            "vertex": {"entry_point": "sphere_vertex" if entry == "sphere_main" else "vertex_main"},
            "primitive": {"topology": "triangle-list", "cull_mode": "none"},
            "depth_stencil": {
                "format": "depth32float",
                "depth_write_enabled": True,
                "depth_compare": "greater",  # reversed depth
            },
        }
        if ids or entry != "opaque_main":
            targets = [{"format": texel_format} for texel_format in formats]
            settings["fragment"] = {"entry_point": entry, "targets": targets}
        module = spheres if entry == "sphere_main" else shader
        return device.pipelines.render(f"{name}/{entry}", module, bind_groups.layout, settings)

    pipelines = {
        entry: pipeline(entry) for entry in (ENTRIES if scene.has_spheres else ENTRIES[:2])
    }
    draws = DrawList(scene, mask)
    drawn = device.upload("gbuffer/objects", draws.objects())
    bundles: dict[int, tuple[bytes | None, Any]] = {}

    def seen_now(resources: Resources) -> Seen:
        return resources[seen].mask if seen else None

    def record(resources: Resources) -> Any:
        encoder = device.wgpu.create_render_bundle_encoder(
            label=name, color_formats=formats, depth_stencil_format="depth32float"
        )
        if below:
            below.put(encoder, resources)
        put(encoder, resources, draws.instanced(seen_now(resources)))
        return encoder.finish()

    def put(encoder: Any, resources: Resources, wanted: Iterable[Draw]) -> None:
        encoder.set_index_buffer(resources["geometry"], "uint32")
        bound = None
        for draw in wanted:
            if draw.entry != bound:
                own = {**resources, "frame": resources[frame], "drawn": drawn}
                encoder.set_pipeline(pipelines[draw.entry].native)
                encoder.set_bind_group(0, bind_groups.get(own))
                bound = draw.entry
            if draw.entry == "sphere_main":
                count, first = BOX_VERTICES * draw.triangles, BOX_VERTICES * draw.begin
                encoder.draw(count, draw.copies, first, draw.at)
            else:
                encoder.draw_indexed(3 * draw.triangles, draw.copies, 3 * draw.first, 0, draw.at)

    def put_part(encoder: Any, resources: Resources, first: int, count: int) -> None:
        if below and first == 0:
            below.put(encoder, resources)
        put(encoder, resources, draws.within(first, count, seen_now(resources)))

    def encode(encoder: Any, resources: Resources) -> None:
        # The same buffers each frame: the draws are recorded once for what is seen.
        key, now = id(resources[frame]), seen_now(resources)
        what = None if now is None else now.tobytes()
        if key not in bundles or bundles[key][0] != what:
            bundles[key] = what, record(resources)
        encoder.execute_bundles([bundles[key][1]])

    reads = tuple(b.name for b in bindings if b.name not in ("drawn", "frame"))
    parts = Parts(
        # Without a triangle the attachments are still cleared.
        units=lambda _: max(1, draws.triangles),
        encode=put_part,
        words=draws.split,
        at=(frame, FRAME_UNIFORMS.offsets["split_object"]),
    )
    under = below.reads if below else ()
    read = (frame, *reads, *also_reads, *under)
    return Pass(name, read, writes, encode, attachments, parts, kept)
