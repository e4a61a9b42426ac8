"""Meshes modelled far outside the range of the triangle test, placed in a world within it; and what
the world itself cannot hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.build import BuildOptions
from bvh.rays import make_rays
from bvh.validate import validate
from engine.gpu.errors import UserError
from engine.scene.scene import Instance
from passes.prepare import prepare


def _scene(kit: Any, size: float) -> Any:
    """A ball, placed twice, and a floor, modelled `size` times too large and placed at 1."""
    back = np.diag([1 / size] * 3 + [1.0])
    aside = back.copy()
    aside[:3, 3] = (2.5, 0.5, 0)
    meshes = [kit.sphere(rings=6), kit.quad((-4, -1, -4), (8, 0, 0), (0, 0, 8))]
    meshes = [replace(m, positions=m.positions * np.float32(size)) for m in meshes]
    places = [Instance("a", 0, back), Instance("b", 0, aside), Instance("floor", 1, back)]
    return kit.scene(meshes, [kit.grey()], instances=places, eye=(0, 2, 6), target=(0, 0, 0))


def _rays(rng: np.random.Generator) -> Any:
    origin = rng.normal(size=(400, 3)) * 3 + [0, 4, 0]
    return make_rays(origin, rng.normal(size=(400, 3)) * [1.5, 0.5, 1] - origin)


@pytest.mark.parametrize("nodes", ["auto", "fp32"])
@pytest.mark.parametrize("group", ["static", "object"])
@pytest.mark.parametrize("power", [-120, -41, 41, 120])
def test_a_mesh_out_of_range_is_traced_as_one_within(
    kit: Any, rng: Any, power: int, group: str, nodes: str
) -> None:
    options = BuildOptions(nodes=nodes)
    rays = _rays(rng)
    one = oracle.trace(prepare(_scene(kit, 1.0), options, group).bvh.words, rays)
    bvh = prepare(_scene(kit, 2.0**power), options, group).bvh
    assert validate(bvh) == []
    other = oracle.trace(bvh.words, rays)
    assert 100 < one.hit.sum() < 400 and (one.hit == other.hit).all()
    for name in ("object", "primitive", "instance", "u", "v"):
        assert (getattr(one, name) == getattr(other, name)).all()
    assert (one.t == other.t).all()


def test_its_picture_is_the_same(kit: Any, draw: Any) -> None:
    one = draw(_scene(kit, 1.0), 32, 24, group="object")
    for power in (-60, 60):
        other = draw(_scene(kit, 2.0**power), 32, 24, group="object")
        assert other.stats.valid
        difference = np.abs(one.frame.image().astype(int) - other.frame.image().astype(int))
        assert difference.max() <= 1


def test_a_static_world_can_be_far_smaller_than_its_neighbour(kit: Any) -> None:
    """The merged group is scaled on its own."""
    dust = kit.sphere(radius=1e-13, rings=4)
    wall = replace(kit.quad((-1, -1, 0), (2, 0, 0), (0, 2, 0)), material=0)
    places = [Instance("dust", 0, np.eye(4)), Instance("wall", 1, np.eye(4), mask=1)]
    bvh = prepare(kit.scene([dust, wall], [kit.grey()], instances=places)).bvh
    assert validate(bvh) == []
    assert float(bvh.instances[0].transform[0, 0]) < 1e-12
    assert 0.5 <= np.abs(bvh.instances[0].transform[0, 0] / 1e-13) <= 2


@pytest.mark.parametrize(
    ("size", "words"),
    [(1e9, "'ball' reaches 1e"), (1e15, "'ball' reaches"), (1e37, "'ball' reaches")],
)
@pytest.mark.parametrize("group", ["static", "object"])
def test_what_the_world_cannot_hold_is_named(kit: Any, group: str, size: float, words: str) -> None:
    for mesh, matrix in ((kit.sphere(radius=size), 1.0), (kit.sphere(), size)):
        place = Instance("ball", 0, np.diag([matrix] * 3 + [1.0]))
        scene = kit.scene([mesh], [kit.grey()], instances=[place])
        with pytest.raises(UserError, match=words):
            prepare(scene, group=group)


@pytest.mark.parametrize("group", ["static", "object"])
def test_a_world_too_small_is_refused(kit: Any, group: str) -> None:
    scene = kit.scene([kit.sphere(radius=1e-8)], [kit.grey()])
    with pytest.raises(UserError, match="farther than 1e-08 from the origin"):
        prepare(scene, group=group)


def test_a_deforming_mesh_cannot_be_scaled(kit: Any) -> None:
    place = Instance("fox", 0, np.diag([1e-15] * 3 + [1.0]), lifetime="deforming")
    scene = kit.scene(
        [replace(kit.sphere(radius=1e15), name="fox")], [kit.grey()], instances=[place]
    )
    with pytest.raises(UserError, match="'fox' deforms: a largest coordinate of 1e\\+15"):
        prepare(scene)
