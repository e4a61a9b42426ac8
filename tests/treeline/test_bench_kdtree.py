"""`treeline bench kdtree` on a scene small enough to check by hand, and its refusals."""

import json
from pathlib import Path
from typing import Any

import pytest

import treeline.bench_kdtree as bench


def test_both_structures_find_the_same(run: Any, box: Path) -> None:
    result = run("bench", "kdtree", "--scene", box, "--size", "24x16", "--json", "-", "-q")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["triangles"] == 12
    bvh, kd = record["structures"]
    assert (bvh["structure"], kd["structure"]) == ("BVH", "KD-tree")
    assert bvh["update"] == "refit" and kd["update"] == "rebuild"
    assert kd["duplication"] >= 1.0 and kd["update_ms"] == kd["build_ms"]
    # A packed tree: 8 bytes a node, 4 a reference, 36 a triangle.
    nodes = kd["inner_nodes"] + kd["leaves"]
    assert kd["bytes"] == 8 * nodes + 4 * round(12 * kd["duplication"]) + 36 * 12
    rows = record["rays"]
    assert [row["kind"] for row in rows[::2]] == ["primary", "mirror", "diffuse", "shadow"]
    assert all(row["different"] == 0 for row in rows)
    # From outside the box a camera ray that hits it tests two triangles or more of 12.
    assert all(row["triangle_tests"] > 0 for row in rows[:2])
    assert record["context"]["scene_sha256"]


def test_a_difference_fails(run: Any, box: Path, monkeypatch: Any) -> None:
    whole = bench.trace_kd_tree

    def short_sighted(tree: Any, triangles: Any, rays: Any, **options: Any) -> Any:
        return whole(tree, triangles + 1.0, rays, **options)

    monkeypatch.setattr(bench, "trace_kd_tree", short_sighted)
    result = run("bench", "kdtree", "--scene", box, "--size", "24x16", "-q")
    assert result.exit_code == 1 and "differ between" in result.stderr


@pytest.mark.parametrize("size", ["0x4", "wide"])
def test_refusals(run: Any, one_line: Any, box: Path, size: str) -> None:
    result = run("bench", "kdtree", "--scene", box, "--size", size)
    assert size.split("x")[0] in one_line(result, 2)


def test_coordinates_out_of_range_are_refused(run: Any, one_line: Any, tmp_path: Path) -> None:
    path = tmp_path / "far.obj"
    path.write_text("v 0 0 0\nv 1e14 0 0\nv 0 1e14 0\nf 1 2 3\n")
    assert "1e+14" in one_line(run("bench", "kdtree", "--scene", path, "--size", "8x8"), 2)
