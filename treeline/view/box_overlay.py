"""Boxes of the structure over the picture: which of them a frame draws, and in what colour.

Boxes of one container, levels `low` to `high`, in the world through the instance that it was
reached by. They are read once and stay on the GPU; when the camera or the choice changes, a list of
those that are worth drawing follows (treeline/view/box_choice.py). `stats` says how many were left
out.

Choosing among 200,000 boxes takes some milliseconds of NumPy. While the camera moves a thread does
it, and frames draw the list of a moment ago; where the camera rests, the list is its own. A few
thousand are chosen at once: they take less than handing them to a thread, which holds the
interpreter while the frame needs it.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.layout import (
    NODE_BOX_FP16,
    NODE_BOX_FP32,
    NODE_INSTANCE,
    NODE_NAMES,
    NODE_PROCEDURAL,
    NODE_TRIANGLE_3,
)
from engine.scene.camera import Camera
from engine.view.lines import LineBatch, LineRenderer
from treeline.view.box_choice import CPU_BUDGET, GPU_BUDGET, choose_boxes
from treeline.view.box_levels import BoxLevels, Level
from treeline.view.structure_tree import BOX_16, BOX_32, TLAS_ROOT, StructureTree
from treeline.view.view_state import WHOLE_TLAS, BoxOverlay, NodeRef

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]

COLOUR_BY = ("level", "kind")
STEP_MS = 8.0  # a frame, on boxes that were not read yet

# Levels in turn: neighbours differ in hue and in lightness (after Okabe and Ito, 2008).
LEVEL_COLOURS = (
    (0.90, 0.62, 0.00),
    (0.34, 0.71, 0.91),
    (0.00, 0.78, 0.55),
    (0.94, 0.89, 0.26),
    (0.36, 0.55, 1.00),
    (0.95, 0.43, 0.13),
    (0.86, 0.54, 0.74),
    (0.75, 0.80, 0.85),
)
KIND_COLOURS = {
    "Box32": (0.34, 0.71, 0.91),
    "Box16": (0.00, 0.78, 0.55),
    "Block": (0.95, 0.60, 0.13),
    "Instance": (0.90, 0.50, 0.78),
    "Sphere": (0.94, 0.89, 0.26),
}
LINE_ALPHA = 0.85
FEW = 16_000  # boxes that are chosen at once: 0.2 ms
LIST_FRAMES, LIST_S = 3, 0.05  # between lists while the camera moves: what is over first
SELECTED_COLOUR = (1.0, 1.0, 1.0, 1.0)
CHILD_COLOUR = (1.0, 0.82, 0.25, 0.9)
_KINDS = tuple(KIND_COLOURS)
_KIND_OF_TYPE = np.zeros(8, np.uint32)
_KIND_OF_TYPE[: NODE_TRIANGLE_3 + 1] = _KINDS.index("Block")
_KIND_OF_TYPE[NODE_BOX_FP16] = _KINDS.index(BOX_16)
_KIND_OF_TYPE[NODE_BOX_FP32] = _KINDS.index(BOX_32)
_KIND_OF_TYPE[NODE_INSTANCE] = _KINDS.index("Instance")
_KIND_OF_TYPE[NODE_PROCEDURAL] = _KINDS.index("Sphere")
assert len(_KIND_OF_TYPE) == len(NODE_NAMES)


@dataclass(frozen=True, slots=True)
class OverlayStats:
    """Boxes drawn, of those in the levels; the host's time of the last update; `reading` while
    levels are still being read."""

    drawn: int = 0
    total: int = 0
    host_ms: float = 0.0
    reading: bool = False

    def __str__(self) -> str:
        more = ", reading" if self.reading else ""
        return f"{self.drawn:,} of {self.total:,} boxes drawn{more}"


def legend(overlay: BoxOverlay, deepest: int) -> list[tuple[str, tuple[float, float, float]]]:
    """(label, sRGB) of what the overlay's colours mean, for the levels that are shown of a
    container whose last one is `deepest`."""
    if overlay.colour_by == "kind":
        return list(KIND_COLOURS.items())
    levels = shown_levels(overlay, deepest)
    return [(f"level {k}", LEVEL_COLOURS[k % len(LEVEL_COLOURS)]) for k in levels]


def shown_levels(overlay: BoxOverlay, deepest: int) -> range:
    """The levels of the range that there are; the last one where it begins below."""
    return range(min(overlay.low, deepest), min(overlay.high, deepest) + 1)


def shown_container(tree: StructureTree, selected: NodeRef | None) -> NodeRef:
    """The root of the container whose boxes are shown: the selected node's. Without one the
    TLAS's, or that of the only BLAS where a TLAS would be one box."""
    if selected is None:
        only = tree.instance_node(0) if len(tree.bvh.instances) == 1 else None
        return TLAS_ROOT if only is None else tree.children(only)[0]
    return tree.path_in_container(selected)[0]


class BoxDrawing:
    """Keeps what was read of one structure. `batches` are what `LineRenderer.encode` draws."""

    def __init__(self, renderer: LineRenderer) -> None:
        self.renderer = renderer
        self.stats = OverlayStats()
        self.budget = CPU_BUDGET if renderer.device.info.is_cpu else GPU_BUDGET
        self.version = 0  # of `batches`: a picture that was drawn with the same one can stay
        self._tree: StructureTree | None = None
        self._levels: dict[int, BoxLevels] = {}
        self._batch: LineBatch | None = None
        self._uploaded: Any = None  # what the batch was made of
        self._chosen: Any = None  # what its list was chosen for
        self._centres: F32 = np.zeros((3, 0), np.float32)  # world
        self._radii: F32 = np.zeros(0, np.float32)
        self._chooser = ThreadPoolExecutor(1, "boxes")  # its thread begins with the first list
        self._choosing: Future[U32] | None = None
        self._frames = 0
        self._asked = (-LIST_FRAMES, 0.0)  # in which frame for a list while moving, and when
        self._highlight: list[LineBatch] = []
        self._highlighted: NodeRef | None = None

    @property
    def batches(self) -> Sequence[LineBatch]:
        """The overlay, then the selected node on top."""
        return [*([self._batch] if self._batch else []), *self._highlight]

    def update(
        self,
        tree: StructureTree,
        overlay: BoxOverlay,
        selected: NodeRef | None,
        camera: Camera,
        size: tuple[int, int],
        *,
        moving: bool = False,
    ) -> None:
        """Follows the choice and the camera; `size` is the picture's. Takes a few milliseconds
        where levels have to be read, and goes on in the next call."""
        started = time.perf_counter()
        if tree is not self._tree:
            self._tree = tree
            self._levels.clear()
            self._uploaded = self._highlighted = self._choosing = None
            self._highlight = []
            self.version += 1
        self._update_highlight(tree, selected)
        if overlay.shown:
            total, reading = self._update_boxes(tree, overlay, selected, started)
            drawn = self._choose(camera, size, moving)
        else:
            self.version += self._batch is not None
            self._batch = self._uploaded = self._choosing = None
            drawn, total, reading = 0, 0, False
        spent = 1e3 * (time.perf_counter() - started)
        self.stats = OverlayStats(drawn, total, spent, reading)

    def _update_boxes(
        self, tree: StructureTree, overlay: BoxOverlay, selected: NodeRef | None, started: float
    ) -> tuple[int, bool]:
        """Reads and uploads what is missing; (boxes in the levels, whether more are to come)."""
        root = shown_container(tree, selected)
        if root.container not in self._levels:
            self._levels[root.container] = BoxLevels(tree, root.container)
        known = self._levels[root.container]
        wanted = shown_levels(overlay, tree.header(root.container).depth)
        while len(known.levels) < wanted.stop and not known.complete:
            known.step()
            if time.perf_counter() - started > 1e-3 * STEP_MS:
                break
        reading = len(known.levels) < wanted.stop and not known.complete
        levels = known.levels[wanted.start : wanted.stop]
        key = (root, wanted, overlay.colour_by, len(levels))
        # While levels are read, what is there stays: one upload, not one a level.
        if key != self._uploaded and (not reading or self._batch is None):
            self._upload(tree, root, overlay.colour_by, wanted.start, levels)
            self._uploaded, self._chosen = key, None
            self._choosing = None  # of other boxes
        return len(self._radii), reading

    def _upload(
        self, tree: StructureTree, root: NodeRef, colour_by: str, low: int, levels: Sequence[Level]
    ) -> None:
        counts = [len(level.types) for level in levels]
        nothing = np.zeros((0, 2, 3), np.float32)
        boxes = np.concatenate([nothing, *(level.boxes for level in levels)])
        if colour_by == "kind":
            types = np.concatenate([np.zeros(0, np.uint8), *(x.types for x in levels)])
            colours, palette = _KIND_OF_TYPE[types], tuple(KIND_COLOURS.values())
        else:
            colours = np.repeat(low + np.arange(len(levels)), counts)
            colours, palette = colours % len(LEVEL_COLOURS), LEVEL_COLOURS
        matrix = placement(tree, root)
        middle = 0.5 * (boxes[:, 0] + boxes[:, 1])
        self._centres = np.asarray(matrix[:, :3] @ middle.T + matrix[:, 3:], np.float32)
        stretch = float(np.linalg.norm(matrix[:, :3].astype(np.float64), 2))
        half = np.linalg.norm(0.5 * (boxes[:, 1] - boxes[:, 0]), axis=1)
        self._radii = np.asarray(stretch * half, np.float32)
        self._batch = self.renderer.boxes(
            boxes, colours, with_alpha(palette), transforms=matrix[None]
        )

    def _choose(self, camera: Camera, size: tuple[int, int], moving: bool) -> int:
        """Lists the boxes worth drawing, or asks for the list; how many are drawn."""
        assert self._batch is not None
        if self._choosing is not None and self._choosing.done():
            self._take(self._choosing.result())
            self._choosing = None
        key = (camera.transform.tobytes(), camera.y_fov, size, moving)
        self._frames += 1
        waits = self._choosing is not None or self._asked_lately()
        if key == self._chosen or (moving and waits):
            return self._batch.count
        spend_ms = self.budget.moving_ms if moving else self.budget.rest_ms
        job = (self._centres, self._radii, camera, size, self.budget, spend_ms)
        if moving:
            self._asked = (self._frames, time.perf_counter())
        if moving and self._chosen is not None and len(self._radii) > FEW:
            self._choosing = self._chooser.submit(choose_boxes, *job)
        else:
            self._choosing = None
            self._take(choose_boxes(*job))
        self._chosen = key
        return self._batch.count

    def _asked_lately(self) -> bool:
        """A new list costs the host as much as all else of a frame with boxes; that of some frames
        ago is as good while the camera moves."""
        frame, when = self._asked
        return self._frames - frame < LIST_FRAMES and time.perf_counter() - when < LIST_S

    def _take(self, items: U32) -> None:
        assert self._batch is not None
        self.renderer.choose(self._batch, items)
        self.version += 1

    def _update_highlight(self, tree: StructureTree, selected: NodeRef | None) -> None:
        """The selected node's box, and those in its slots."""
        if selected == self._highlighted:
            return
        self._highlighted = selected
        self._highlight = []
        self.version += 1
        if selected is None:
            return
        refs = [selected]
        if tree.kind(selected) in (BOX_16, BOX_32):
            refs = [*tree.children(selected), selected]
        boxes = np.stack([tree.box(ref) for ref in refs])
        if np.isfinite(boxes).all():
            colours = np.array([CHILD_COLOUR] * (len(refs) - 1) + [SELECTED_COLOUR], np.float32)
            matrix = placement(tree, selected)[None]
            for part, width in ((slice(0, -1), 1.4), (slice(-1, None), 2.6)):
                index = np.arange(len(refs), dtype=np.uint32)[part]
                self._highlight.append(
                    self.renderer.boxes(boxes[part], index, colours, transforms=matrix, width=width)
                )


def placement(tree: StructureTree, ref: NodeRef) -> F32:
    """[3, 4] from the node's container to the world; the identity where it was reached through no
    instance."""
    if ref.container == WHOLE_TLAS or ref.instance < 0:
        return np.eye(3, 4, dtype=np.float32)
    return tree.transform(ref.instance)


def with_alpha(palette: Sequence[tuple[float, float, float]]) -> F32:
    """[n, 4] of sRGB colours."""
    return np.array([(*colour, LINE_ALPHA) for colour in palette], np.float32)
