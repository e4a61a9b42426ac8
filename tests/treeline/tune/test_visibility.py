"""What tune says of finding what pixels see, which it does not tune."""

from pathlib import Path
from typing import Any

from bvh.blas import BuildOptions
from engine.scene.load import load_scene
from passes.frame_options import FrameOptions
from passes.prepare import prepare
from treeline.tune.cases import Case, Recipe
from treeline.tune.measure import FrameMeasurer
from treeline.tune.visibility import Visibility, compare_visibility


def test_the_faster_way_is_named() -> None:
    text = Visibility("raster", {"raster": 3.631, "rays": 1.02}, 0.0004).text()
    assert text == (
        "besides: what pixels see takes 3.63 ms by raster, 1.02 by --gbuffer rays (0.04% of pixels "
        "differ); that is no ray type's time, and not in the profile"
    )
    assert Visibility("rays", {"raster": 3.631, "rays": 1.02}, 0.0).text() is None
    by_rays = Visibility("rays", {"raster": 0.5, "rays": 1.02}, 0.0).text() or ""
    assert "1.02 ms by rays, 0.5 by --gbuffer raster" in by_rays


def test_both_ways_are_measured_over_the_structure(box: Path, device: Any) -> None:
    scene = load_scene(box)
    measurer = FrameMeasurer(
        device,
        FrameOptions(24, 16, gbuffer="rays"),
        {},
        lambda recipe: prepare(scene, recipe.build, recipe.group),
        0.0,
    )
    found = compare_visibility(measurer, Case(Recipe(BuildOptions())), 2)
    assert found is not None and found.used == "rays"
    assert set(found.ms) == {"raster", "rays"} and min(found.ms.values()) > 0
    assert found.differing < 0.05
    assert found.facts()["differing_pixels"] == found.differing
