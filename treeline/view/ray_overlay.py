"""The picked pixel's rays and the current step's boxes as coloured segments in the world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bvh.header import unpack_header
from bvh.ray_steps import Step
from engine.view.lines import LineBatch, LineRenderer
from passes.rays import RAY_TYPES, family_of
from treeline.view.pick import Pick
from treeline.view.pixel_rays import PRIMARY, PixelRay
from treeline.view.ray_walk import RayWalk
from treeline.view.structure_tree import SPHERE

F32 = NDArray[np.float32]
Colour = tuple[float, float, float]

PRIMARY_COLOUR: Colour = (0.95, 0.95, 0.95)
TYPE_COLOURS: tuple[Colour, ...] = ((0.35, 0.70, 0.98), (0.98, 0.72, 0.28), (0.80, 0.55, 0.95))
STATE_COLOURS: Mapping[str, Colour] = {
    "next": (0.98, 0.90, 0.25),
    "pushed": (0.30, 0.85, 0.45),
    "culled": (0.55, 0.57, 0.60),
    "hit": (0.98, 0.90, 0.25),
    "missed": (0.75, 0.45, 0.42),
}
DIM_ALPHA = 0.45  # of rays that are not the chosen one
RAY_WIDTH, STEP_WIDTH = 2.4, 1.6  # pixels
# Corner numbers (bits x, y, z) of a box's edges.
_EDGES = np.array([(a, a | bit) for bit in (1, 2, 4) for a in range(8) if not a & bit])


@dataclass(frozen=True, slots=True)
class Segments:
    """`points` [n, 2, 3] world space, `rgba` [n, 4] sRGB and alpha."""

    points: F32
    rgba: F32


def ray_colour(ray_type: str) -> Colour:
    """Of a ray type in lists and in the picture; all bounces of a type share one."""
    if ray_type == PRIMARY:
        return PRIMARY_COLOUR
    names, name = [ray.name for ray in RAY_TYPES], family_of(ray_type)
    return TYPE_COLOURS[(names.index(name) if name in names else 0) % len(TYPE_COLOURS)]


def ray_segments(
    rays: Sequence[PixelRay], chosen: int, walks: Mapping[int, RayWalk] | None = None
) -> Segments:
    """A segment a ray, to its hit; a shadow ray's where it was stopped is known from its walk
    alone, and else it is drawn to the light. What left the scene is drawn as long as the scene."""
    points, colours = [], []
    for number, ray in enumerate(rays):
        points.append([ray.origin, ray.point(_end(ray, (walks or {}).get(number)))])
        alpha = 1.0 if number == chosen else DIM_ALPHA
        colours.append((*ray_colour(ray.ray_type), alpha))
    return Segments(
        np.asarray(points, np.float32).reshape(-1, 2, 3),
        np.asarray(colours, np.float32).reshape(-1, 4),
    )


def _end(ray: PixelRay, walk: RayWalk | None) -> float:
    """The t that a ray is drawn to."""
    if np.isfinite(ray.t):
        return ray.t
    if ray.hit and walk is not None and walk.hit >= 0:
        return walk.steps[walk.hit].t
    low, high = unpack_header(ray.traced.bvh.words).bounds.astype(np.float64)
    reach = float(np.linalg.norm(high - low)) if (high >= low).all() else 1.0
    length = float(np.linalg.norm(ray.direction.astype(np.float64)))
    return min(ray.t_max, reach / length)


def step_segments(walk: RayWalk, number: int) -> Segments:
    """What step `number` tested: a box node's four boxes by what became of them, a triangle's
    edges, an instance's box."""
    step, node, tree = walk.steps[number], walk.node(number), walk.tree
    points: list[F32] = []
    colours: list[tuple[float, ...]] = []

    def add(segments: F32, state: str, alpha: float = 1.0) -> None:
        points.append(segments)
        colours.extend([(*STATE_COLOURS[state], alpha)] * len(segments))

    if node is not None and step.kind == "box":
        matrix = tree.transform(node.instance)
        # What is taken next is drawn last, over the others.
        slots = walk.slots(number)
        for state in ("culled", "pushed", "next"):
            for slot, item in enumerate(slots):
                if item.state == state:
                    add(box_edges(step.boxes[slot], matrix), state)
    elif node is not None and tree.kind(node) == SPHERE:
        add(box_edges(tree.box(node), tree.transform(node.instance)), _met(step))
    elif node is not None and step.kind == "triangle":
        corners = tree.triangles(node).positions[step.slot]
        world = _placed(corners, tree.transform(node.instance))
        edges = np.stack([world, np.roll(world, -1, axis=0)], axis=1)
        add(edges, _met(step))
    elif node is not None and step.kind == "instance":
        state = "pushed" if step.hit[0] else "culled"
        add(box_edges(tree.box(node), tree.transform(-1)), state)
    if not points:
        return Segments(np.zeros((0, 2, 3), np.float32), np.zeros((0, 4), np.float32))
    return Segments(np.concatenate(points).astype(np.float32), np.asarray(colours, np.float32))


def _met(step: Step) -> str:
    return "hit" if step.hit[1] else "missed"


def box_edges(box: F32, matrix: F32) -> F32:
    """[12, 2, 3] the edges of `box` [2, 3] placed by `matrix` [3, 4]."""
    bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
    corners = np.take_along_axis(np.asarray(box, np.float32), bits, axis=0)
    return _placed(corners, matrix)[_EDGES]


def _placed(points: F32, matrix: F32) -> F32:
    moved = points.astype(np.float64) @ matrix[:, :3].T.astype(np.float64) + matrix[:, 3]
    return moved.astype(np.float32)


class RayDrawing:
    """Keeps the segments on the GPU while nothing changes. `batches` are what
    `LineRenderer.encode` draws."""

    def __init__(self, renderer: LineRenderer) -> None:
        self.renderer = renderer
        self.batches: list[LineBatch] = []
        self.version = 0  # of `batches`: a picture that was drawn with the same one can stay
        self._shown: tuple[object, ...] = ()

    def update(
        self,
        picked: Pick | None,
        chosen: int,
        walks: Mapping[int, RayWalk],
        step: int,
    ) -> None:
        """Follows the pick, the chosen ray and its step. `walks`: what is known so far, by ray."""
        shown = (id(picked), chosen, step, tuple(walks))
        if shown == self._shown:
            return
        self._shown = shown
        self.version += 1
        self.batches = []
        if picked is None:
            return
        parts = [(ray_segments(picked.rays, chosen, walks), RAY_WIDTH)]
        if chosen in walks and step < len(walks[chosen]):
            parts.insert(0, (step_segments(walks[chosen], step), STEP_WIDTH))
        self.batches = [
            self.renderer.segments(part.points, part.rgba, width=width)
            for part, width in parts
            if len(part.points)
        ]
