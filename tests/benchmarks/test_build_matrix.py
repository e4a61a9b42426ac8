"""Builders, block sizes and node formats over small scenes; what is broken is seen."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import build_matrix
from benchmarks.build_matrix import EVERY, GpuBuilds, expect, judge, scene_rows
from bvh.layout import BOX_BOUNDS_WORD
from engine.scene.default_view import with_default_view
from engine.scene.material import Material
from engine.scene.mesh import make_mesh
from engine.scene.scene import Instance, Parts, Scene
from passes.prepare import prepare
from treeline.scenes import load


def _soup(count: int) -> Scene:
    """Random triangles, and some of them again as an instance that is see-through."""
    rng = np.random.default_rng(1)
    corners = (rng.random((count, 1, 3)) + 0.1 * rng.normal(size=(count, 3, 3))).reshape(-1, 3)
    faces = np.arange(3 * count).reshape(-1, 3)
    meshes = (make_mesh("soup", corners, faces), make_mesh("part", corners, faces[:40], 1))
    turned = np.diag([2.0, -1.0, 1.0, 1.0])
    turned[:3, 3] = (3.0, 1.0, 0.5)
    places = (Instance("soup", 0, np.eye(4)), Instance("part", 1, turned))
    materials = (Material("plain"), Material("leaf", alpha_mode="MASK"))
    return with_default_view(Parts(meshes, materials, (), places), "soup")


def _part_of_the_hall() -> Scene:
    """Its smallest meshes, wherever they are placed."""
    hall = load()
    order = np.argsort([len(mesh.triangles) for mesh in hall.meshes], kind="stable")[:12]
    number = {int(old): new for new, old in enumerate(order)}
    kept = [replace(i, mesh=number[i.mesh]) for i in hall.instances if i.mesh in number]
    meshes = tuple(hall.meshes[i] for i in order)
    return replace(hall, meshes=meshes, instances=tuple(kept[:60]), animation=None)


@pytest.fixture(scope="module")
def gpu(device: Any) -> GpuBuilds:
    return GpuBuilds(device)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little room and few rays; each builder, block size and format, but not all combinations."""
    monkeypatch.setattr(build_matrix, "ROOM", 500)
    monkeypatch.setattr(build_matrix, "SIZE", (16, 10))
    monkeypatch.setattr(build_matrix, "RANDOM_RAYS", 100)
    chosen = [case for i, case in enumerate(EVERY) if i // 9 == (i % 9 + 1) % 4]
    assert len({c[0] for c in chosen}) == 4 and len({c[1:] for c in chosen}) == 9
    monkeypatch.setattr(build_matrix, "EVERY", chosen)


@pytest.mark.parametrize("scene", ["soup", "hall"])
def test_every_structure_is_valid_and_loses_nothing(
    device: Any, gpu: Any, monkeypatch: pytest.MonkeyPatch, scene: str
) -> None:
    if scene == "hall":
        monkeypatch.setattr(build_matrix, "EVERY", build_matrix.EVERY[1::2])
    made = _soup(300) if scene == "soup" else _part_of_the_hall()
    rows = list(scene_rows(made, scene, device, gpu, thorough=False))
    assert [row for row in rows if row["faults"]] == []
    done = [row for row in rows if "refused" not in row]
    assert {row["where"] for row in done} == {"cpu", "gpu"} and len(rows) - len(done) <= 1
    for row in done:
        assert row["rays"] > 250 and row["hits"] > 25 and row["brute_rays"] >= 64


def test_faults_are_counted() -> None:
    """A box too small is invalid and loses hits."""
    prepared = prepare(_soup(300))
    expected = expect(prepared)
    assert judge(prepared.bvh, expected)["faults"] == 0
    words = prepared.bvh.words.copy()
    root = int(prepared.bvh.blas_bases[0]) // 4 + 32
    words[root + BOX_BOUNDS_WORD + 3 : root + BOX_BOUNDS_WORD + 6] = np.float32(0.2).view(np.uint32)
    row = judge(replace(prepared.bvh, words=words), expected)
    assert row["invalid"] > 0 and row["first_fault"]
    assert row["differ"] > 0 and row["brute_differ"] > 0
    assert row["faults"] == row["invalid"] + row["differ"] + row["brute_differ"]
