"""Boxes and line segments in 3D over a picture: constant width in pixels, blended, dimmed where
something in the picture is in front of them.

Lines become quads in the vertex shader, 12 to a box, so that their width and their soft edges are
the same on every adapter. Coordinates are world metres; a batch's boxes may stand in the spaces of
its transforms. Nothing is culled here but what lies behind the near plane: the caller decides how
much a frame can take.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.render_scope import RenderPasses
from engine.gpu.shader import compose
from engine.gpu.stage import BindGroups, read_bindings
from engine.gpu.structs import Field, Struct
from engine.scene.camera import Camera
from engine.view.same import same

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

FORMAT = "rgba8unorm"  # of the picture
HIDDEN_ALPHA = 0.22  # of a line behind something, of its own alpha
# A line on a surface must not flicker between hidden and seen: depths differ by their rounding, and
# by the surface's slope within a pixel of a coarser depth picture. Relative.
DEPTH_SLACK = 0.004
# Half a pixel fades smoothly, but makes a line of 1.4 pixels touch 2.4: too much where a
# CPU shades them.
SOFTNESS = 0.5
SOFTNESS_CPU = 0.0
EDGES = 12  # of a box
MOST_BATCHES = 8  # whose bind groups are kept: more than a frame draws

# What any uniform begins with that lines are to be seen from, as a frame's does.
EYE = Struct("LineEye", Field("view_projection", "vec4f", 4))  # rows
VIEW = Struct(
    "LineView",
    Field("picture_size", "vec2f"),
    Field("near", "f32"),
    Field("width", "f32"),  # pixels
    Field("hidden_alpha", "f32"),
    Field("depth_slack", "f32"),
    Field("softness", "f32"),  # pixels that edges fade over, beyond the width
    Field("padding", "f32"),
)
BOX = Struct(
    "LineBox",
    Field("low", "f32", 3),
    Field("colour", "u32"),  # index into the batch's colours
    Field("high", "f32", 3),
    Field("transform", "u32"),  # index into the batch's transforms
)
SEGMENT = Struct(
    "LineSegment",
    Field("begin", "f32", 3),
    Field("colour", "u32"),
    Field("end", "f32", 3),
    Field("padding", "u32"),
)


@dataclass(slots=True)
class LineBatch:
    """What was uploaded once. `count` of its items are drawn, or those that `choose` named."""

    kind: str  # "boxes" or "segments"
    items: Any
    colours: Any
    transforms: Any
    chosen: Any
    count: int
    width: float


class LineRenderer:
    """Draws batches over pictures of `FORMAT`. `softness` is how many pixels lines fade over on
    each side; by default what the adapter can afford."""

    def __init__(self, device: Device, softness: float | None = None) -> None:
        self.device = device
        if softness is None:
            softness = SOFTNESS_CPU if device.info.is_cpu else SOFTNESS
        self.softness = softness
        shader = compose("engine/view/shaders/lines.wgsl")
        self._groups = BindGroups(
            device, read_bindings(shader), "VERTEX|FRAGMENT", most=MOST_BATCHES
        )
        blend = {"src_factor": "src-alpha", "dst_factor": "one-minus-src-alpha", "operation": "add"}
        keep = {"src_factor": "zero", "dst_factor": "one", "operation": "add"}
        self._pipelines = {
            kind: device.pipelines.render(
                f"lines/{kind}",
                shader,
                self._groups.layout,
                {
                    "vertex": {"entry_point": f"{kind}_main"},
                    "primitive": {"topology": "triangle-list", "cull_mode": "none"},
                    "fragment": {
                        "entry_point": "line_main",
                        # The picture stays opaque.
                        "targets": [{"format": FORMAT, "blend": {"color": blend, "alpha": keep}}],
                    },
                },
            )
            for kind in ("boxes", "segments")
        }
        # Four corners a line, two triangles; a box's lines follow each other.
        quad = np.array([0, 1, 2, 2, 1, 3], np.uint32)
        corners = (4 * np.arange(EDGES, dtype=np.uint32)[:, None] + quad).reshape(-1)
        self._indices = device.upload("line corners", corners, "INDEX|COPY_DST")
        self._passes = RenderPasses("lines", clear=None)
        self._nothing = self._nothing_view()
        self._views: dict[float, Any] = {}  # a uniform buffer a line width
        self._seen: dict[float, tuple[Any, ...]] = {}  # what each of them holds
        self._eye: Any = None  # a camera of our own
        self._eye_seen: tuple[Any, ...] = ()

    def _nothing_view(self) -> Any:
        """A depth picture of one pixel that sees nothing."""
        texture = self.device.wgpu.create_texture(
            label="no depth",
            size=(1, 1, 1),
            format="r32float",
            usage="TEXTURE_BINDING|COPY_DST",
        )
        return texture.create_view()

    def boxes(
        self,
        boxes: F32,
        colours: U32,
        palette: F32,
        *,
        transforms: F32 | None = None,
        transform_index: U32 | int = 0,
        width: float = 1.4,
    ) -> LineBatch:
        """Boxes `[n, 2, 3]`; `colours` [n] index `palette [k, 4]` (sRGB and alpha, 0 to 1),
        `transform_index` the `[m, 3, 4]` object to world `transforms` (default: the identity)."""
        records = np.zeros(len(boxes), BOX.dtype)
        records["low"], records["high"] = boxes[:, 0], boxes[:, 1]
        records["colour"], records["transform"] = colours, transform_index
        if transforms is None:
            transforms = np.eye(3, 4, dtype=np.float32)[None]
        return self._batch("boxes", records, palette, transforms, width)

    def segments(self, segments: F32, rgba: F32, *, width: float = 1.6) -> LineBatch:
        """Segments `[n, 2, 3]` of colours `[n, 4]` (sRGB and alpha, 0 to 1)."""
        records = np.zeros(len(segments), SEGMENT.dtype)
        records["begin"], records["end"] = segments[:, 0], segments[:, 1]
        records["colour"] = np.arange(len(segments))
        return self._batch("segments", records, rgba, np.eye(3, 4, dtype=np.float32)[None], width)

    def _batch(
        self, kind: str, records: Any, palette: F32, transforms: F32, width: float
    ) -> LineBatch:
        count = len(records)
        upload = self.device.upload
        return LineBatch(
            kind,
            upload(f"line {kind}", records.view(np.uint32)),
            upload("line colours", np.asarray(palette, np.float32)),
            upload("line transforms", np.asarray(transforms, np.float32)),
            upload("chosen lines", np.arange(count, dtype=np.uint32)),
            count,
            width,
        )

    def choose(self, batch: LineBatch, items: U32) -> None:
        """From now on draws these items of the batch."""
        batch.count = len(items)
        self.device.write(batch.chosen, np.asarray(items, np.uint32))

    def encode(
        self,
        encoder: Any,
        picture: Any,
        size: tuple[int, int],
        camera: Camera,
        batches: Sequence[LineBatch],
        depth: Any = None,
        *,
        hidden_alpha: float = HIDDEN_ALPHA,
        eye: Any = None,
    ) -> None:
        """One render pass over `picture`, a texture view of `size` (width, height), batches in
        order. `depth`: view of an r32float texture of any size, metres along the view axis, 0
        where nothing is; without it nothing is hidden. `eye`: see `draw`."""
        if not any(batch.count for batch in batches):
            return
        scope = self._passes.begin(encoder, picture)
        self.draw(scope, size, camera, batches, depth, hidden_alpha=hidden_alpha, eye=eye)
        scope.end()

    def draw(
        self,
        scope: Any,
        size: tuple[int, int],
        camera: Camera,
        batches: Sequence[LineBatch],
        depth: Any = None,
        *,
        hidden_alpha: float = HIDDEN_ALPHA,
        eye: Any = None,
    ) -> None:
        """As `encode`, in a `RenderScope` that somebody else begins and ends. `eye` is a uniform
        buffer that begins with EYE: lines are seen from there, and no camera is written."""
        drawn = [batch for batch in batches if batch.count]
        if not drawn:
            return
        self._write_views({batch.width for batch in drawn}, size, camera.near, hidden_alpha)
        if eye is None:
            eye = self._write_eye(size, camera)
        scope.set_index_buffer(self._indices)
        kind = ""
        for batch in drawn:
            if batch.kind != kind:
                kind = batch.kind
                scope.set_pipeline(self._pipelines[kind].native)
            resources = {
                "view": self._views[batch.width],
                "items": batch.items,
                "chosen": batch.chosen,
                "colours": batch.colours,
                "transforms": batch.transforms,
                "depth": self._nothing if depth is None else depth,
                "eye": eye,
            }
            scope.set_bind_group(0, self._groups.get(resources))
            scope.draw_indexed(6 * (EDGES if batch.kind == "boxes" else 1), batch.count)

    def _write_eye(self, size: tuple[int, int], camera: Camera) -> Any:
        """The buffer of our own that holds the camera."""
        if self._eye is None:
            self._eye = self.device.buffer("line eye", EYE.size, "UNIFORM|COPY_DST")
        seen = (size, camera)
        if not same(self._eye_seen, seen):
            matrix = camera.projection(size[0] / size[1]) @ camera.view_matrix()
            self.device.write(self._eye, matrix.astype(np.float32))
            self._eye_seen = seen
        return self._eye

    def _write_views(
        self, widths: set[float], size: tuple[int, int], near: float, hidden_alpha: float
    ) -> None:
        """Those that are to hold something else than they do."""
        seen = (size, near, hidden_alpha)
        for width in widths:
            if self._seen.get(width) == seen:
                continue
            if width not in self._views:
                self._views[width] = self.device.buffer("line view", VIEW.size, "UNIFORM|COPY_DST")
            record = np.zeros(1, VIEW.dtype)
            record["picture_size"], record["near"], record["width"] = size, near, width
            record["hidden_alpha"], record["depth_slack"] = hidden_alpha, DEPTH_SLACK
            record["softness"] = self.softness
            self.device.write(self._views[width], record)
            self._seen[width] = seen


def wgsl() -> str:
    """The records that the shader shares."""
    return EYE.wgsl() + VIEW.wgsl() + BOX.wgsl() + SEGMENT.wgsl()
