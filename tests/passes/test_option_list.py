"""Options are declared once and completely, and setting one changes that one alone."""

from dataclasses import fields
from typing import Any

import pytest

from bvh.blas import BuildOptions
from engine.gpu.errors import UserError
from passes.frame_options import PRIMARY, FrameOptions
from passes.option_list import (
    COST_TERMS,
    KINDS,
    NOT_FOR_USERS,
    OPTIONS,
    SCOPES,
    Option,
    ViewSettings,
    changed,
    find_option,
)
from passes.ray_kernel import RayKernel
from passes.rays import RAY_TYPES

NAMES = [option.name for option in OPTIONS]


def other_value(option: Option, settings: ViewSettings) -> Any:
    """An allowed value that differs from the present one."""
    value = option.get(settings)
    if option.kind == "choice":
        return next(choice for choice in option.choices if choice != value)
    if option.kind == "flag":
        return not value
    return value + option.step if value + option.step <= option.high else value - option.step


def test_every_field_of_frame_and_build_is_declared_or_not_for_users() -> None:
    declared = {name.partition("/")[0] for name in NAMES}
    several = {"mask": "masks"} | {f"kernel_{f.name}": "kernels" for f in fields(RayKernel)}
    declared = {several.get(name, name) for name in declared}
    there = {field.name for kind in (FrameOptions, BuildOptions) for field in fields(kind)}
    assert there - declared == set(NOT_FOR_USERS)
    assert declared - there == {"group"}


def test_every_ray_type_has_a_mask() -> None:
    assert {name for name in NAMES if name.startswith("mask/")} == {
        f"mask/{name}" for name in (PRIMARY, *(ray.name for ray in RAY_TYPES))
    }


def test_every_ray_type_has_a_kernel() -> None:
    assert {name for name in NAMES if name.startswith("kernel_")} == {
        f"kernel_{field.name}/{ray.name}" for ray in RAY_TYPES for field in fields(RayKernel)
    }


def test_declarations_use_the_known_words() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for option in OPTIONS:
        assert option.kind in KINDS and option.scope in SCOPES and option.cost_term in COST_TERMS
        assert option.help.endswith(".") and option.label


@pytest.mark.parametrize("option", OPTIONS, ids=NAMES)
def test_setting_an_option_changes_it_and_nothing_else(option: Option) -> None:
    old = ViewSettings()
    new = option.set(old, other_value(option, old))
    assert changed(old, new) == (option,)
    assert option.text(new) != option.text(old)
    assert option.set(new, option.get(old)) == old


@pytest.mark.parametrize("option", OPTIONS, ids=NAMES)
def test_a_value_out_of_range_is_refused_by_name(option: Option) -> None:
    if option.kind == "flag":
        return
    with pytest.raises(UserError, match=option.label):
        option.set(ViewSettings(), "odd" if option.kind == "choice" else option.high + option.step)


def test_an_unknown_name_is_refused() -> None:
    assert find_option("leaf").label == "leaf"
    with pytest.raises(UserError, match="no option is named 'shine'"):
        find_option("shine")


def test_masks_are_equal_whatever_the_order_they_were_set_in() -> None:
    one = FrameOptions(1, 1).with_mask("shadow", 3).with_mask("reflection", 5)
    two = FrameOptions(1, 1).with_mask("reflection", 5).with_mask("shadow", 3)
    assert one == two and hash(one) == hash(two)
    assert (one.mask("shadow"), one.mask("reflection"), one.mask("other")) == (3, 5, 255)
    assert one.with_mask("shadow", 255).with_mask("reflection", 255) == FrameOptions(1, 1)


def test_a_mask_has_eight_bits() -> None:
    with pytest.raises(UserError, match="shadow rays is 8 bits"):
        FrameOptions(1, 1, masks=(("shadow", 256),))
