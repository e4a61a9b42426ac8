"""Cases are measured as frames over structures that hit what the default's does; no others."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.blas import BuildOptions
from engine.gpu.errors import LimitError
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.prepare import PreparedScene, prepare
from passes.ray_kernel import RayKernel
from passes.rays import REFLECTION, SHADOW
from treeline.cli.options import Common
from treeline.scenes import load
from treeline.tune import run
from treeline.tune.agreement import Found
from treeline.tune.blocks import COSTS, gain
from treeline.tune.cases import Case, Recipe
from treeline.tune.measure import FrameMeasurer, sends_others
from treeline.tune.run import Subject

BASE = Recipe(BuildOptions())
ALL = replace(BASE, group="all")
# A floor and three boxes, turned, that share a mesh; a smaller one stands behind the camera's side.
ROWS = (
    'scale = 6.0\ntranslation = [0, -12, 0]\nname = "floor"',
    'euler = [10, 33, 5]\ntranslation = [-2.1, 0.3, 0.2]\nname = "left"',
    'euler = [0, 71, 20]\ntranslation = [1.7, 0.5, -0.9]\nname = "right"',
    'euler = [3, 20, 0]\ntranslation = [0.2, 0.1, 2.0]\nscale = 0.4\nname = "front"',
)


@pytest.fixture
def boxes(box: Path) -> Scene:
    path = box.with_name("boxes.toml")
    objects = "".join(f'[[objects]]\nfile = "box"\n{row}\n' for row in ROWS)
    path.write_text(f'[files]\nbox = "{box.name}"\n{objects}')
    return load(path, [])


@pytest.fixture
def measured(boxes: Scene, device: Any) -> Callable[..., Any]:
    """What the tuner says of cases of `boxes`, beside the default. `planted` makes of these what is
    prepared for the grouping "all"."""

    def measure(*cases: Case, planted: Callable[[Scene], PreparedScene] | None = None) -> Any:
        def build(recipe: Recipe) -> PreparedScene:
            if planted and recipe.group == "all":
                return planted(boxes)
            return prepare(boxes, recipe.build, recipe.group)

        measurer = FrameMeasurer(device, FrameOptions(48, 32), {}, build, 0.0)
        return measurer.measure("test", [Case(BASE), *cases], 1).results[1:]

    return measure


def test_another_grouping_hits_the_same(measured: Any) -> None:
    unsorted = RayKernel("off", "one", "64")
    cases = (
        Case(ALL),
        Case.of(ALL, {REFLECTION.name: unsorted}),
        Case.of(BASE, {SHADOW.name: RayKernel("on")}),
    )
    for result in measured(*cases):
        assert result.refused is None and set(result.ms) == {"reflection", "shadow"}
        for hits in result.hits.values():
            assert hits.rays > 200 and hits.different == 0
        assert set(result.costs) == set(COSTS) and result.costs["geometry_bytes"] > 0


def moved(scene: Scene) -> PreparedScene:
    """A box is traced 5 mm beside where it is drawn."""
    instances = list(scene.instances)
    matrix = instances[1].transform.copy()
    matrix[0, 3] += 0.005
    instances[1] = replace(instances[1], transform=matrix)
    other = prepare(replace(scene, instances=tuple(instances)), group="all")
    return replace(prepare(scene, group="all"), bvh=other.bvh)


def holed(scene: Scene) -> PreparedScene:
    """Rays pass through a triangle of the boxes."""
    mesh = scene.meshes[0]
    less = replace(mesh, triangles=np.delete(mesh.triangles, 8, axis=0))
    other = prepare(replace(scene, meshes=(less, *scene.meshes[1:])), group="all")
    return replace(prepare(scene, group="all"), bvh=other.bvh)


def misnamed(scene: Scene) -> PreparedScene:
    """Hits name other objects."""
    found = prepare(scene, group="all")
    return replace(found, originals=found.originals[::-1])


def renumbered(scene: Scene) -> PreparedScene:
    """Hits name other triangles."""
    mesh = scene.meshes[0]
    turned = replace(mesh, triangles=np.roll(mesh.triangles, 1, axis=0))
    return prepare(replace(scene, meshes=(turned, *scene.meshes[1:])), group="all")


@pytest.mark.parametrize(
    "plant, reason",
    [
        (moved, "rays hit something else"),
        (holed, "rays hit something else"),
        (misnamed, "rays hit another triangle as far away"),
        (renumbered, "rays hit another triangle as far away"),
    ],
)
def test_a_wrong_structure_is_refused(measured: Any, plant: Any, reason: str) -> None:
    (result,) = measured(Case(ALL), planted=plant)
    assert result.refused is not None and result.refused.endswith(reason)
    assert result.ms == {} and not gain(result, result).won


def test_a_frame_that_sends_other_rays_is_refused() -> None:
    def sent(count: int) -> dict[str, Found]:
        return {"near": Found(np.zeros(count), np.zeros(count), np.zeros(1, np.int64))}

    for count, there in ((99, 100), (101, 100), (999_000, 1_000_000)):
        assert sends_others(sent(count), sent(there)) is None
    assert sends_others(sent(98), sent(100)) == "it sends 98 near rays, the default 100"
    assert sends_others(sent(998_999), sent(1_000_000)) is not None


def test_a_structure_that_would_be_too_large_is_refused_before_it_is_built(
    box: Path, device: Any, monkeypatch: Any
) -> None:
    """Of a mesh that is placed many times, whose copies are none of the default's bytes."""
    scene = load(many(box), [])
    subject = Subject(Common(on="cpu"), device, scene, FrameOptions(8, 6), {}, (1, 1, 1, 0.0), None)
    assert subject.same_groups() == {"object": "static"}  # there is one mesh
    subject.prepare(BASE)
    monkeypatch.setattr(run, "MOST_BYTES", 20_000)
    with pytest.raises(LimitError) as error:
        subject.prepare(ALL)
    assert "shared meshes copied are 1,212 triangles instead of 12, about" in str(error.value)
    assert str(error.value).endswith("tune tries at most 0 MB")


def many(box: Path) -> Path:
    """A floor and a hundred boxes."""
    path = box.with_name("many.toml")
    area = '{ shape = "disc", center = [0, 0, 0], radius = 90 }'
    path.write_text(
        f'[files]\nbox = "{box.name}"\n[[objects]]\nfile = "box"\nscale = 6.0\n'
        f'[[objects]]\nfile = "box"\nname = "many"\n[objects.scatter]\ncount = 100\narea = {area}\n'
    )
    return path
