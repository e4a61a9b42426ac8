"""Handles: a TLAS over a BLAS that is no longer what it was is refused by name."""

from types import SimpleNamespace

import numpy as np
import pytest
import trimesh

from bvh.blas_pool import BlasIdentity, BlasPool
from bvh.scene_bvh import assemble
from bvh.tlas import BvhInstance
from bvh.validate import validate
from engine.gpu.errors import UserError


@pytest.fixture
def small(built: SimpleNamespace) -> SimpleNamespace:
    box, ball = trimesh.creation.box(), trimesh.creation.icosphere(subdivisions=1)
    return SimpleNamespace(box=built.blas(box.triangles), ball=built.blas(ball.triangles))


PLACED = [BvhInstance(0, name="a"), BvhInstance(1, name="b")]


def test_handles_assemble_as_their_blases(small: SimpleNamespace) -> None:
    pool = BlasPool()
    handles = [pool.add("box", small.box), pool.add("ball", small.ball)]
    scene = assemble(handles, ["box", "ball"], PLACED)
    plain = assemble([small.box, small.ball], ["box", "ball"], PLACED)
    assert np.array_equal(scene.words, plain.words)
    assert scene.blas_identities == plain.blas_identities == (BlasIdentity(0), BlasIdentity(1))
    assert validate(scene) == []


@pytest.mark.parametrize("change", ["rebuilt", "compacted", "freed"])
def test_stale_handles_are_refused_by_name(small: SimpleNamespace, change: str) -> None:
    pool = BlasPool()
    box, ball = pool.add("box", small.box), pool.add("ball", small.ball)
    fresh = {
        "rebuilt": lambda: pool.rebuild(ball, small.box),
        "compacted": lambda: pool.compact(ball, small.ball),
        "freed": lambda: pool.free(ball),
    }[change]()
    told = f"BLAS 'ball' was {change}: this handle is of generation 0, the BLAS of 1"
    with pytest.raises(UserError) as error:
        assemble([box, ball], ["box", "ball"], PLACED)
    assert str(error.value) == told and error.value.exit_code == 2
    for use in (lambda: pool.rebuild(ball, small.box), lambda: pool.free(ball)):
        with pytest.raises(UserError, match="ball"):
            use()
    if fresh is None:
        return
    scene = assemble([box, fresh], ["box", "ball"], PLACED)
    version = 1 if change == "rebuilt" else 0
    assert scene.blas_identities[1] == BlasIdentity(1, 1, version)
    assert validate(scene) == []


def test_freed_places_do_not_come_back(small: SimpleNamespace) -> None:
    pool = BlasPool()
    first = pool.add("box", small.box)
    pool.free(first)
    second = pool.add("box", small.box)
    assert second.allocation != first.allocation
    with pytest.raises(UserError, match="was freed"):
        assemble([first], ["box"], PLACED[:1])
    assert assemble([second], ["box"], PLACED[:1]).blas_identities == (BlasIdentity(1),)


def test_generations_count_on(small: SimpleNamespace) -> None:
    pool = BlasPool()
    handle = pool.add("box", small.box)
    for _ in range(3):
        handle = pool.compact(pool.rebuild(handle, small.ball), small.ball)
    assert handle.resolve()[1] == BlasIdentity(0, 6, 3)


def test_handles_of_another_pool_are_refused(small: SimpleNamespace) -> None:
    here, there = BlasPool(), BlasPool()
    handle = there.add("box", small.box)
    here.add("other", small.ball)
    with pytest.raises(UserError, match="another pool"):
        here.resolve(handle)
