"""Capacities of builds on the GPU: large enough, few, and a function of the count."""

from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions, build_blas
from bvh.builders import BUILDERS
from bvh.gpu.build_capacity import build_capacity


def test_capacities_are_few_and_not_much_larger() -> None:
    counts = [0, 1, 1000, 1024, 1025, 65_536, 65_537, 81_920, 81_921, 1_020_907, 2_000_000]
    sizes = [build_capacity(count) for count in counts]
    assert sizes[:5] == [1024, 1024, 1024, 1024, 4096]
    assert sizes[5:9] == [65_536, 81_920, 81_920, 98_304]
    assert sizes[9:] == [1 << 20, 2_097_152]
    for count in range(65_537, 3_000_000, 9973):
        assert count <= build_capacity(count) <= 1.25 * count + 1


@pytest.mark.parametrize("builder", [b.name for b in BUILDERS if b.gpu])
def test_both_places_give_the_same_bytes(device: Any, rng: Any, builder: str) -> None:
    """Past 1024 triangles the capacity is not the count. Each of the first 18 is 32 times as large
    as the one before, so that SAH takes them off one by one and meets its last level."""
    count, steps = 1100, 18
    scale = 32.0 ** (np.minimum(np.arange(count), steps) - 10)[:, None, None]
    far = (np.arange(count) < steps)[:, None, None]
    triangles = rng.random((count, 1, 3)) * 0.2 + 0.8 * far + 0.02 * rng.normal(size=(count, 3, 3))
    triangles = triangles * np.where(far, scale, scale.min())
    ids = np.arange(count, dtype=np.uint32)
    given = (triangles.astype(np.float32), 0 * ids, ids, np.ones(1, np.bool_))
    options = BuildOptions(builder=builder, reinsertion=1, pairing="near")
    one, other = (build_blas(*given, options, device=d) for d in (device, None))
    assert one.words.tobytes() == other.words.tobytes()
    assert one.parents.tobytes() == other.parents.tobytes()
