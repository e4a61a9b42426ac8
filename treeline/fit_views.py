"""Runs that a fit may be made of: the scene's own view turned, tilted and narrowed, views of what
has holes, and settings that change what rays do there.

What a run counts is known before it is timed, so there are far more candidates than runs
(treeline/fit_design.py chooses). Most of them share kernels and buffers: only size and masks make
another frame.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.scene.camera import Camera, look_at
from engine.scene.mesh import F64
from engine.scene.scene import Instance, Scene, scene_bounds
from passes.frame_uniforms import FrameInputs
from passes.rays import RAY_TYPES
from treeline.ablate_switches import has_holes

MOST_LEAVES = 3  # things with holes that are looked at from near by
NEAR = 2.5  # radii of such a thing that the camera stands away


@dataclass(frozen=True, slots=True)
class FitRun:
    """One run. `scale` of the picture's sides; the view: `at` names what is looked at, the scene's
    own view by default, turned and tilted by degrees, its angle divided by `zoom`. `cutoff` is the
    roughness that still reflects, `reach` a factor of the occlusion radius, `masks` what rays see
    as FrameOptions has it."""

    scale: float = 1.0
    at: str = ""
    turn: float = 0.0
    tilt: float = 0.0
    zoom: float = 1.0
    cutoff: float | None = None
    reach: float = 1.0
    masks: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        parts = [f"{self.scale:g} of the size"]
        parts += [f"at {self.at}"] if self.at else []
        parts += [f"turned {self.turn:g} degrees"] if self.turn else []
        parts += [f"tilted {self.tilt:g} degrees"] if self.tilt else []
        parts += [f"{self.zoom:g} times as near"] if self.zoom != 1 else []
        parts += [f"roughness to {self.cutoff:g}"] if self.cutoff is not None else []
        parts += [f"occlusion {self.reach:g} times as far"] if self.reach != 1 else []
        return ", ".join([*parts, *(f"mask of {name} {bits}" for name, bits in self.masks)])

    def inputs(self, given: FrameInputs, views: Mapping[str, Camera]) -> FrameInputs:
        """A frame's inputs with what this run changes of them."""
        camera = views[self.at] if self.at else given.camera
        camera = turned(camera, self.turn, self.tilt)
        return replace(
            given,
            camera=replace(camera, y_fov=2 * math.atan(math.tan(camera.y_fov / 2) / self.zoom)),
            roughness_cutoff=given.roughness_cutoff if self.cutoff is None else self.cutoff,
            occlusion_radius=given.occlusion_radius * self.reach,
        )


def turned(camera: Camera, degrees: float, tilt: float = 0.0) -> Camera:
    """The camera turned about the world's vertical where it stands, then tilted up."""
    angle, up = math.radians(degrees), math.radians(tilt)
    about_y, about_x = np.eye(3), np.eye(3)
    about_y[0, 0] = about_y[2, 2] = math.cos(angle)
    about_y[0, 2], about_y[2, 0] = math.sin(angle), -math.sin(angle)
    about_x[1, 1] = about_x[2, 2] = math.cos(up)
    about_x[1, 2], about_x[2, 1] = -math.sin(up), math.sin(up)
    transform = np.array(camera.transform, np.float64)
    transform[:3, :3] = about_y @ transform[:3, :3] @ about_x
    return replace(camera, transform=transform)


def leaf_views(scene: Scene) -> dict[str, Camera]:
    """Name -> a camera near by, for the things with holes that are nearest to the scene's own."""
    camera = scene.camera
    leaves = [instance for instance in scene.instances if has_holes(scene, instance)]
    if len(leaves) == len(scene.instances):
        return {}  # all views are of them
    seats = sorted(
        (float(np.linalg.norm(bounds.mean(axis=0) - camera.position)), index, bounds)
        for index, bounds in enumerate(_bounds(scene, instance) for instance in leaves)
    )
    return {leaves[index].name: _near(camera, bounds) for _, index, bounds in seats[:MOST_LEAVES]}


def _bounds(scene: Scene, instance: Instance) -> F64:
    return scene_bounds(scene.meshes, (instance,))


def _near(camera: Camera, bounds: F64) -> Camera:
    """From the side on which `camera` stands, a little from above."""
    middle, radius = bounds.mean(axis=0), 0.5 * float(np.linalg.norm(bounds[1] - bounds[0]))
    aside = camera.position - middle
    aside[1] = 0.0
    length = float(np.linalg.norm(aside))
    aside = aside / length if length > 0 else np.array([0.0, 0.0, 1.0])
    position = middle + NEAR * radius * (aside + np.array([0.0, 0.3, 0.0]))
    return replace(look_at(position, middle, camera.y_fov), near=camera.near)


# Closest-hit rays that see nothing end at the root: all of them miss. Rays with other any-hit flags
# are no candidates: that is another kernel, in which everything costs something else.
BLIND = tuple((ray.name, 0) for ray in RAY_TYPES if not ray.any_hit)
TURNS = (60.0, -75.0, 120.0, -140.0, 180.0)


def candidates(leaves: Mapping[str, Camera]) -> Iterator[FitRun]:
    """The scene's own view first."""
    yield FitRun()
    views: list[dict[str, Any]] = [{"turn": turn} for turn in TURNS]
    views += [{"tilt": 40.0}, {"tilt": -40.0}, {"zoom": 3.0}, {"zoom": 3.0, "tilt": 12.0}]
    aimed: list[dict[str, Any]] = [{"at": name, "zoom": z} for name in leaves for z in (1.0, 3.0)]
    for view in (*views, *aimed):
        yield FitRun(**view)
        yield FitRun(0.5, **view)
    for view in ({}, *views[:3], *aimed):
        yield FitRun(0.75, cutoff=1.0, reach=4.0, **view)
        yield FitRun(0.75, cutoff=0.1, reach=0.25, **view)
    for scale in (0.75, 0.5):
        yield FitRun(scale)
        yield FitRun(scale, masks=BLIND)
        yield FitRun(scale, turn=TURNS[0], cutoff=1.0, masks=BLIND)
        yield FitRun(scale, tilt=-40.0, cutoff=1.0, masks=BLIND)
