"""Fans through the contract's own walk: ids from the table of our containers, or none."""

from typing import Any

import numpy as np
import pytest
import trimesh

from bvh import layout
from bvh.contract.descriptor import Descriptor
from bvh.contract.memory import GuestMemory
from bvh.contract.pointer import GuestAddress, NodePointer
from bvh.contract.trace import Trace
from bvh.contract.traverse import Options, traverse
from bvh.gpu.trace_rays import RayTracer, Variant
from bvh.rays import MISS_ID, Rays, make_rays
from bvh.scene_bvh import SceneBvh, assemble
from bvh.tlas import BvhInstance


@pytest.fixture(scope="module")
def scene(built: Any) -> SceneBvh:
    ball = trimesh.creation.icosphere(subdivisions=2).triangles
    turn = trimesh.transformations.rotation_matrix(0.5, [1, 2, 3], [0.3, 0, 0])
    return assemble([built.blas(ball, leaf=4)], ["ball"], [BvhInstance(0), BvhInstance(0, turn)])


@pytest.fixture(scope="module")
def rays() -> Rays:
    rng = np.random.default_rng(4)
    origin = 2 * rng.normal(size=(300, 3))
    return make_rays(origin, rng.normal(size=(300, 3)) - origin)


def walk(words: np.ndarray, rays: Rays) -> Trace:
    return traverse(
        GuestMemory.from_words(words, GuestAddress(0)),
        Descriptor(GuestAddress(0), len(words) // 16 - 1, growth=6, sort=True),
        NodePointer(layout.ROOT_POINTER),
        *(rays[name] for name in ("origin", "direction", "t_min", "t_max")),
        Options(),
    )


def test_the_kernel_follows_the_definition_bit_for_bit(
    device: Any, scene: SceneBvh, rays: Rays
) -> None:
    expected = walk(scene.words, rays)
    assert expected.error_count == 0
    variant = Variant("fans", traversal="contract", has_alpha=False, has_fans=True)
    got = RayTracer(device, scene.words, variant).trace(rays)
    assert got.failures == ()
    hit = expected.primitive != MISS_ID
    assert 0.2 < hit.mean() < 0.9
    kinds = set((expected.pointer[hit] & np.uint64(7)).tolist())
    assert {0, 1, 2} <= kinds
    assert np.array_equal(got.hits["primitive"], expected.primitive)
    assert np.array_equal(got.hits["instance"], expected.instance)
    assert np.array_equal(got.hits["object"][hit], expected.geometry[hit])
    for name in ("t", "u", "v"):
        bits = got.hits[name][hit].view(np.uint32)
        assert np.array_equal(bits, getattr(expected, name)[hit].view(np.uint32))


def test_foreign_bytes_have_no_ids(scene: SceneBvh, rays: Rays) -> None:
    """Without our header, or with a table that is not there, triangles go by their type."""
    base = int(scene.blas_bases[0]) // 4
    expected = walk(scene.words, rays)
    for at, value in ((base, 0), (base + 18, 0x0FFFFFFF)):
        words = scene.words.copy()
        words[at] = value
        found = walk(words, rays)
        assert np.array_equal(found.t, expected.t)
        changed = found.primitive != expected.primitive
        assert changed.any() and (found.primitive[changed] <= 3).all()
        assert (found.geometry[changed] == 0).all()
