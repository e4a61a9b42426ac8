"""Stages of further bounces on the GPU against their twins, and faults that only show there."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from passes.frame_options import MOST_BOUNCES, MOST_SHADOW_RAYS, FrameOptions
from passes.rays import frame_rays, reflection_types
from passes.twins.frame import cpu_passes
from passes.twins.sampling import (
    OCCLUSION_DIMENSION,
    light_choice_dimension,
    light_dimension,
    reflection_dimension,
)

BOUNCES = 3
SIZE = (45, 37)


@pytest.mark.parametrize(
    "options",
    [
        {"roughness_cutoff": 1.0},
        {"count": True, "reflection_scale": "half", "shadow_rays": 2},
    ],
    ids=str,
)
def test_stage_equals_its_twin(rich_scene: Any, walk: Any, differences: Any, options: Any) -> None:
    steps = walk(rich_scene, *SIZE, frame_index=1, reflection_bounces=BOUNCES, **options)
    assert {name: differences(step) for name, step in steps.items()} == {n: [] for n in steps}
    sent = [
        steps["composite"].gpu[ray.queue].count
        for ray in reflection_types(FrameOptions(1, 1, reflection_bounces=BOUNCES))
    ]
    assert sent == sorted(sent, reverse=True) and sent[-1] > (0 if options.get("count") else 30)
    assert "shade/reflection_3" in steps


def test_names_and_order_of_the_passes() -> None:
    """All bounces are traced before the one queue of shadow rays is filled."""
    options = FrameOptions(1, 1, reflection_bounces=2)
    names = [item.name for item in cpu_passes(options)]
    assert names[2:] == [
        "rays/reflection",
        "arguments/reflection",
        "traverse/reflection/0",
        "rays/reflection_2",
        "arguments/reflection_2",
        "traverse/reflection_2/0",
        "rays/shadow",
        "shade/reflection",
        "shade/reflection_2",
        "arguments/shadow",
        "traverse/shadow/0",
        "composite",
    ]
    shadow = frame_rays(options)[-1]
    assert shadow.starts_at == ("primary", "reflection", "reflection_2")


def test_no_two_samples_of_a_pixel_share_their_numbers() -> None:
    taken = [OCCLUSION_DIMENSION, OCCLUSION_DIMENSION + 1]
    for bounce in range(1, MOST_BOUNCES + 1):
        taken += [reflection_dimension(bounce), reflection_dimension(bounce) + 1]
    for kind, number in product(range(MOST_BOUNCES + 1), range(MOST_SHADOW_RAYS)):
        place = light_dimension(kind, number)
        taken += [place, place + 1, light_choice_dimension(kind, number)]
    assert len(set(taken)) == len(taken)


# File, what is broken in it, and the passes whose comparison must fail.
BROKEN = {
    "throughput not multiplied": (
        "passes/shaders/bounce.wgsl",
        "path_of(record).weight * ",
        "",
        {"rays/reflection_2", "rays/reflection_3"},
    ),
    "wrong slot kind": (
        "passes/shaders/shade.wgsl",
        "shadow_slot(pixel_index, BOUNCE, number)",
        "shadow_slot(pixel_index, 1u, number)",
        {"shade/reflection_2", "shade/reflection_3"},
    ),
    "starts at the wrong side": (
        "passes/shaders/bounce.wgsl",
        "ray_origin(point, reflected.direction)",
        "ray_origin(point, -reflected.direction)",
        {"rays/reflection_2", "rays/reflection_3"},
    ),
    "the bounce before is forgotten": (
        "passes/shaders/shade.wgsl",
        "radiance += unpack_radiance(before);",
        "",
        {"shade/reflection_2", "shade/reflection_3"},
    ),
    "environment twice": (
        "passes/shaders/shade.wgsl",
        "BOUNCE < REFLECTION_BOUNCES && ",
        "BOUNCE > REFLECTION_BOUNCES && ",
        {"shade/reflection", "shade/reflection_2"},
    ),
    "old light where a path ended": (
        "passes/shaders/shade.wgsl",
        "var i = 1u + SHADOW_RAYS;",
        "var i = 9u + SHADOW_RAYS;",
        {"shade/reflection"},
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_shader_is_caught_in_its_stage(
    break_shader: Callable[[str, str, str], None],
    rich_scene: Any,
    walk_new: Any,
    assert_caught: Any,
    fault: str,
) -> None:
    file, right, wrong, passes = BROKEN[fault]
    break_shader(file, right, wrong)
    # Rubbish shows what was left as it was; rays of a wrong slot would read it as theirs.
    rubbish = 0x7E1DAB1E if fault == "old light where a path ended" else 0
    steps = walk_new(rich_scene, 33, 21, rubbish, reflection_bounces=BOUNCES)
    assert_caught(steps, passes)
