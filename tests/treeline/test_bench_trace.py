"""The benchmark's check of hits can fail, and explains what a moved vertex does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from bvh.gpu.default_kernel import default_kernel
from bvh.gpu.trace_rays import HIT
from bvh.raysets import RaySet, make_rayset
from bvh.scene_bvh import SceneBvh
from engine.gpu.errors import UserError
from treeline import structures
from treeline.bench_trace import bench, check_hits, trace_row, variants
from treeline.kernels import two_triangles


@pytest.fixture(scope="module")
def bvh() -> SceneBvh:
    return structures.build(two_triangles(), BuildOptions(nodes="fp32"), "all").bvh


def rays_of(bvh: SceneBvh, kind: str) -> RaySet:
    camera, light = two_triangles().camera, two_triangles().light
    corners = (light.center, light.half_u, light.half_v)
    return make_rayset(kind, bvh, camera.transform, camera.y_fov, 64, 64, corners)


def right_hits(rayset: RaySet) -> Any:
    hits = np.zeros(len(rayset.rays), HIT.dtype)
    hits["t"], hits["object"] = rayset.expected_t, rayset.expected_object
    return hits


@pytest.mark.parametrize("kind", ["primary", "mirror", "diffuse", "shadow"])
def test_every_variant_finds_the_expected_hits(
    device: Any, silent: Any, bvh: SceneBvh, kind: str
) -> None:
    results = bench(device, bvh, [(kind, rays_of(bvh, kind))], 3, 1, silent)
    default = default_kernel(device.info).loops
    wanted = variants(bvh, kind == "shadow", loops=default)
    assert [r.variant.name for r in results] == [v.name for v in wanted]
    loops = [r.variant.loops for r in results]
    assert loops == [v.loops for v in wanted] and loops[0] == default and len(set(loops)) > 1
    for result in results:
        assert (result.different, result.unexplained, result.failures) == (0, 0, ())
        row = trace_row(result)
        assert row["passed"] and row["iterations"] == 3
        assert row["mrays_per_s_low"] <= row["mrays_per_s"] <= row["mrays_per_s_high"]


def test_wrong_hits_fail_the_check(bvh: SceneBvh, device: Any, silent: Any) -> None:
    rayset = rays_of(bvh, "primary")
    hits = right_hits(rayset)
    struck = np.flatnonzero(np.isfinite(rayset.expected_t))
    assert len(struck) > 10 and check_hits(bvh, rayset, hits) == (0, 0)
    farther = hits.copy()
    farther["t"][struck[:3]] *= np.float32(1.001)
    assert check_hits(bvh, rayset, farther) == (3, 3)
    lost = hits.copy()
    lost["object"][struck[0]] = 0xFFFFFFFF
    assert check_hits(bvh, rayset, lost) == (1, 1)
    # The ray set expects something else than this structure holds: told, but explained.
    odd = replace(rayset, expected_t=rayset.expected_t * np.float32(1.001))
    assert check_hits(bvh, odd, hits) == (len(struck), 0)
    result = bench(device, bvh, [("p", rayset)], 1, 0, silent)[0]
    assert result.passed and not replace(result, unexplained=len(hits)).passed
    assert not replace(result, failures=("a stack overflowed",)).passed


def test_any_hit_may_stop_at_another_hit(bvh: SceneBvh) -> None:
    rayset = rays_of(bvh, "shadow")
    hits = right_hits(rayset)
    hits["t"] *= np.float32(0.5)
    assert check_hits(bvh, rayset, hits) == (0, 0)


def test_a_structure_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gone.npz"):
        structures.read(tmp_path / "gone.npz")
