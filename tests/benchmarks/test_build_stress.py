"""The stress benchmark says what it should: nothing of a steady build, and every run of another."""

from typing import Any

import numpy as np
import pytest

from benchmarks import build_stress
from bvh.gpu.blas_builder import GpuBlasBuilder
from treeline.bench_build import parse_case, random_triangles

CASE = parse_case("lbvh", 2, "auto")


def test_a_steady_build_has_no_fault(device: Any) -> None:
    row = build_stress.stress(device, random_triangles(300), CASE, 3)
    assert (row["runs"], row["different"], row["invalid"], row["first_fault"]) == (3, 0, 0, "")


@pytest.mark.parametrize("fault", ["bytes", "structure"])
def test_runs_that_differ_or_are_broken_count(
    device: Any, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """From the second build on, a word of the container is another one."""
    builds = [0]
    whole = build_stress.submit_pass

    def submit(device: Any, build: Any, *more: Any) -> None:
        builds[0] += 1
        whole(device, build)
        if builds[0] > 2:
            builder = build.__self__
            assert isinstance(builder, GpuBlasBuilder)
            word = {"bytes": 31, "structure": 32}[fault]  # reserved in the header; a root pointer
            device.write(builder.resources["words"], np.array([0x123], np.uint32), 4 * word)
        if more:
            whole(device, *more)

    monkeypatch.setattr(build_stress, "submit_pass", submit)
    row = build_stress.stress(device, random_triangles(300), CASE, 4)
    assert row["different"] == 3
    assert row["invalid"] == (3 if fault == "structure" else 0)
    assert bool(row["first_fault"]) == (fault == "structure")
