"""Spheres in the viewer: the picked node, its fields, a ray's steps, boxes; against the bytes."""

from typing import Any

import numpy as np
import pytest

from engine.scene.camera import look_at
from engine.scene.light import Environment, RectLight
from engine.scene.material import Material
from engine.scene.mesh import make_spheres
from engine.scene.scene import Instance, Scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from treeline.structure_rows import structure_row
from treeline.view.box_levels import BoxLevels
from treeline.view.node_fields import node_text
from treeline.view.node_search import find_triangle
from treeline.view.pick import Pick, pick
from treeline.view.ray_overlay import step_segments
from treeline.view.ray_walk import RayWalk
from treeline.view.step_check import check_steps
from treeline.view.structure_tree import SPHERE, StructureTree


@pytest.fixture(scope="module")
def frame(device: Any) -> HybridFrame:
    """A large mirror ball under two small ones, all of one mesh, placed askew."""
    centers = np.array([[0.0, -1.0, 0.0], [-0.5, 0.4, 0.0], [0.6, 0.3, 0.2]])
    mesh = make_spheres("balls", centers, np.array([1.0, 0.3, 0.25]))
    tilt = np.eye(4)
    tilt[:3, :3] = np.diag([1.0, 1.2, 0.9])
    grey = (0.4, 0.4, 0.4)
    scene = Scene(
        "balls",
        (mesh,),
        (Material("mirror", (1.0, 1.0, 1.0, 1.0), 1.0, 0.0),),
        (),
        (Instance("balls", 0, tilt),),
        look_at(np.array([0.0, 0.5, 4.0]), np.zeros(3), np.radians(45.0)),
        RectLight(np.array([0, 3.0, 0]), np.array([0.3, 0, 0]), np.array([0, 0, 0.3]), grey),
        Environment(grey, grey, grey),
    )
    drawn = HybridFrame(device, prepare(scene), FrameOptions(32, 24, count=True))
    drawn.run()
    return drawn


@pytest.fixture(scope="module")
def picked(frame: HybridFrame) -> Pick:
    primitive = frame.aov("primitive")
    y, x = np.argwhere(primitive == 1)[4]
    return pick(frame, int(x), int(y))


def test_a_pick_names_the_sphere(frame: HybridFrame, picked: Pick) -> None:
    assert (picked.primitive, picked.instance_name, picked.note) == (1, "balls", "")
    tree = StructureTree(frame.bvh())
    node = picked.path[-1]
    assert tree.kind(node) == SPHERE and tree.label(node) == "Sphere 1"
    assert tree.children(node) == () and node == find_triangle(tree, 0, 0, 1)
    assert find_triangle(tree, 0, 0, 9) is None
    text = node_text(tree, node)
    assert "type 7 (procedural)" in text and "radius" in text and "0.3" in text
    assert np.abs(tree.box(node)[1] - tree.box(node)[0] - 0.6).max() < 0.01
    assert "spheres" in node_text(tree, picked.path[-2])


def test_steps_on_the_gpu_are_the_oracles(frame: HybridFrame, picked: Pick) -> None:
    kinds = set()
    for ray in picked.rays:
        check = check_steps(frame.device, ray)
        assert check.verified, check.verdict
        walk = RayWalk(ray)
        for number, step in enumerate(walk.steps):
            assert walk.title(number) and step.lines()
            if step.kind == "triangle":
                kinds.add(walk.title(number).split(":")[0].split(" ")[-1])
                assert "of geometry 0, opaque" in walk.text() and walk.facts(number)
                assert len(step_segments(walk, number).points) == 12
    assert kinds == {"enter", "leave"}


def test_boxes_and_the_report_know_spheres(frame: HybridFrame) -> None:
    bvh = frame.bvh()
    levels = BoxLevels(StructureTree(bvh), 0)
    while not levels.complete:
        levels.step()
    types = np.concatenate([level.types for level in levels.levels])
    assert (types == 7).sum() == 3
    row = structure_row(bvh.blas_words(0), bvh.blas_stats[0])
    assert (row["triangles"], row["spheres"], row["epo"]) == (0, 3, 0.0)
    assert row["bytes_per_triangle"] * 3 == row["bytes_with_links"]
