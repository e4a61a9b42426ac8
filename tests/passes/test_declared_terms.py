"""Switching an option changes the term of the cost that it declares and what follows, in counted
frames of a mirror behind leaves; an option that lies is named."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.declared_terms import compare_option, other_values
from engine.scene.material import Material, Texture
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.option_list import Option, ViewSettings, find_option
from passes.prepare import PreparedScene, prepare
from treeline.ablate_switches import Setup
from treeline.ablate_variants import Variants
from treeline.counted_rays import CountedRays

SIZE = (32, 24)
# What each changes here, beside what may follow; every option by benchmarks/declared_terms.py.
CHANGES = {
    "builder": "nodes",
    "leaf": "layout bytes",
    "roughness_cutoff": "rays",
    "reflection_scale": "rays",
    "reflection_bounces": "rays",
    "any_hit": "any-hit",
    "occlusion": "rays",
    "shadow_rays": "rays",
    "shadows": "rays",
    "hit_table": None,
    "mask/shadow": "nodes",
}
VALUES = {"builder": "lbvh", "roughness_cutoff": 0.0, "reflection_bounces": 2}


@pytest.fixture(scope="module")
def leaves(kit: Any) -> Scene:
    """Eight sheets full of holes above a mirror, and balls among them."""
    rng = np.random.default_rng(5)
    pixels = np.full((16, 16, 4), 255, np.uint8)
    pixels[..., 3] = rng.choice([0, 255], (16, 16))
    leaf = Material("leaf", roughness=0.3, alpha_mode="MASK", base_color_texture=0)
    meshes = [kit.quad((-12, -9, -4), (24, 0, 0), (0, 18, 0), 0, cells=3)]
    for i in range(8):
        meshes.append(kit.quad((-2, -2, 0.3 * i - 1.5), (4, 0, 0), (0, 4, 0), 1, cells=3))
    for x, y, z, radius in rng.uniform((-4, -3, -3, 0.1), (4, 3, 1, 0.7), (12, 4)):
        meshes.append(kit.sphere((x, y, z), radius, 2))
    scene: Scene = kit.scene(
        meshes,
        [kit.mirror(roughness=0.1), leaf, kit.grey()],
        textures=[Texture("leaf", pixels, True)],
        eye=(2.0, 0.6, 4.5),
        target=(0.3, 0.0, -1.0),
        light=kit.lamp((0.4, 0.3, 4.0), 0.3, (0, 0, -1), (9, 9, 9)),
    )
    return scene


@pytest.fixture(scope="module")
def variants(device: Any) -> Variants:
    def make(setup: Setup) -> PreparedScene:
        return prepare(setup.scene, setup.settings.build, setup.settings.group)

    return Variants(device, make, SIZE, {})


@pytest.fixture(scope="module")
def base(leaves: Scene, variants: Variants) -> tuple[Setup, CountedRays]:
    settings = ViewSettings(FrameOptions(*SIZE, gbuffer="rays"))
    setup = Setup(leaves, replace(settings, build=replace(settings.build, reinsertion=0)))
    return setup, variants.count(setup)


@pytest.mark.parametrize("name", CHANGES)
def test_an_option_changes_what_it_declares(
    name: str, variants: Variants, base: tuple[Setup, CountedRays]
) -> None:
    option = find_option(name)
    value = VALUES.get(name, other_values(option, base[0].settings)[-1])
    found = compare_option(variants, *base, option, value)
    assert found["undeclared"] == [] and found["unjudged"] == {}
    assert CHANGES[name] in (option.cost_term, None)
    assert (CHANGES[name] in found["changes"]) == (CHANGES[name] is not None), found


def lying(name: str, term: str) -> Option:
    """The option, which claims another term and nothing that follows."""
    return replace(find_option(name), cost_term=term, follows=())


@pytest.mark.parametrize(
    "name,claim,value,caught",
    [
        ("reflection_scale", "hit shading", "half", "rays"),
        ("any_hit", "nodes", "opaque", "any-hit"),
        ("builder", "rays", "lbvh", "nodes"),
        ("leaf", "none", 1, "layout bytes"),
    ],
)
def test_an_option_that_lies_is_named(
    name: str,
    claim: str,
    value: Any,
    caught: str,
    variants: Variants,
    base: tuple[Setup, CountedRays],
) -> None:
    found = compare_option(variants, *base, lying(name, claim), value)
    assert caught in found["undeclared"]


def test_an_option_that_does_more_than_it_says_is_named(
    variants: Variants, base: tuple[Setup, CountedRays]
) -> None:
    """Half the reflection rays, as it says, and on the quiet a worse tree."""
    honest = find_option("reflection_scale")

    def put(settings: ViewSettings, value: Any) -> ViewSettings:
        changed = honest.set(settings, value)
        return replace(changed, build=replace(changed.build, builder="lbvh"))

    found = compare_option(variants, *base, replace(honest, put=put), "half")
    assert "rays" in found["changes"] and "nodes" in found["undeclared"]
