"""Which instances share a BLAS in each grouping."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.scene.material import Material
from engine.scene.mesh import make_spheres
from engine.scene.scene import Instance, Scene
from passes.grouping import group_members, traced_triangles
from passes.prepare import prepare

NAMES = ("floor", "left", "right", "leaf", "rigid", "skin", "seen by some", "pine 1", "pine 2")


@pytest.fixture(scope="module")
def scene(kit: Any) -> Scene:
    """Something of every kind; two meshes are placed twice."""
    quads = [kit.quad((0, 0, 0), (1, 0, 0), (0, 1, 0), 0, cells) for cells in (1, 2, 3, 4, 5, 6)]
    meshes = [*quads, kit.quad((0, 0, 0), (1, 0, 0), (0, 1, 0), 1)]
    meshes.append(make_spheres("balls", np.zeros((2, 3)), np.ones(2)))
    rows = (
        *(("floor", 0, "static"), ("left", 1, "static"), ("right", 1, "static")),
        *(("leaf", 6, "static"), ("rigid", 2, "rigid"), ("skin", 3, "deforming")),
        *(("seen by some", 4, "static"), ("pine 1", 5, "vegetation"), ("pine 2", 5, "vegetation")),
        ("balls", 7, "static"),
    )
    instances = [
        Instance(name, mesh, kit.place((3 * i, 0, 0)), 6 if name == "seen by some" else 0xFF, life)
        for i, (name, mesh, life) in enumerate(rows)
    ]
    materials = [kit.grey(), Material("leaf", alpha_mode="BLEND", base_color=(1, 1, 1, 0.5))]
    return kit.scene(meshes, materials, instances=instances)


def names(scene: Scene, group: str) -> set[str]:
    return {scene.instances[i].name for i in group_members(scene, group)}


def test_what_shares_a_blas(scene: Scene) -> None:
    moving = replace(scene, animation="some clip")  # whether there is any is all that counts
    assert names(scene, "object") == set() == names(moving, "object")
    assert names(scene, "static") == {"floor"} == names(moving, "static")
    everything = {*NAMES} - {"seen by some"}
    assert names(scene, "all") == everything
    assert names(moving, "all") == everything - {"rigid", "skin"}


def test_triangles_that_are_traced_are_those_of_the_blases(scene: Scene) -> None:
    for group in ("static", "object", "all"):
        built = sum(s.triangles + s.spheres for s in prepare(scene, group=group).bvh.blas_stats)
        assert traced_triangles(scene, group) == built


def test_objects_know_which_of_the_scenes_they_are(scene: Scene) -> None:
    for group in ("static", "object", "all"):
        prepared = prepare(scene, group=group)
        of_object = [scene.instances[i].name for i in prepared.originals]
        assert of_object == [instance.name for instance in prepared.scene.instances]
        assert sorted(prepared.originals) == list(range(len(scene.instances)))
