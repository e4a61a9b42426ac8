"""Frames that cost different amounts and look differently good: what `treeline curve` measures.

Each line of CURVES is one option over its values, everything else as the base frame has it; an
option that a frame has by passes/option_list.py is one line here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.gpu.errors import UserError
from passes.frame_options import FrameOptions
from passes.option_list import ViewSettings, find_option

BASE = "base"  # the curve of the frame that was asked for


@dataclass(frozen=True, slots=True)
class Variant:
    """A frame: `changes` are options and their values. A picture is the mean of `samples` of them.
    `moving`: the camera moves until the picture is taken, for frames that remember."""

    curve: str
    name: str
    changes: tuple[tuple[str, Any], ...] = ()
    samples: int = 1
    moving: bool = False

    def options(self, base: FrameOptions) -> FrameOptions:
        """UserError for a value that is not allowed."""
        settings = ViewSettings(frame=base)
        for name, value in self.changes:
            settings = find_option(name).set(settings, value)
        return settings.frame


def vary(name: str, *values: Any, **others: Any) -> tuple[Variant, ...]:
    """The option `name` at each of these values (none: all its choices), with `others` as told."""
    option = find_option(name)
    also = tuple(others.items())
    suffix = "".join(f", {find_option(key).label} {_text(value)}" for key, value in also)
    return tuple(
        Variant(
            option.label + suffix,
            f"{option.label} {_text(value)}{suffix}",
            ((name, value), *also),
        )
        for value in values or option.choices
    )


def together(name: str, moving: bool = False, **changes: Any) -> Variant:
    """Several options at once, a curve of one point."""
    return Variant(name, name, tuple(changes.items()), moving=moving)


def while_moving(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The same, the camera moving."""
    return tuple(
        replace(v, curve=f"{v.curve}, moving", name=f"{v.name}, moving", moving=True)
        for v in variants
    )


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


BOTH: dict[str, Any] = {"reflection_scale": "half", "history": 16, "denoiser": 3}
CURVES: tuple[tuple[Variant, ...], ...] = (
    tuple(Variant("samples", f"{n} samples", samples=n) for n in (2, 4, 8, 16)),
    vary("roughness_cutoff", 0.1, 0.3, 0.6, 1.0),
    vary("rough_fallback", roughness_cutoff=0.1),
    vary("reflection_scale"),
    vary("reflection_scale", "half", "quarter", upsample="plain"),
    vary("reflection_bounces", 1, 2, 3),
    vary("shadow_rays", 1, 2, 4),
    vary("sampler"),
    vary("history", 4, 16),
    while_moving(vary("history", 4, 16)),
    vary("denoiser", 1, 3, 5),
    vary("denoiser", 1, 3, 5, history=16),
    vary("reflections", "screen"),
    vary("shadows", "map"),
    (
        together("half, history, denoiser", **BOTH),
        together("half, history, denoiser, moving", moving=True, **BOTH),
        together("no rays", reflections="screen", shadows="map"),
    ),
)


def variants(only: Sequence[str] = ()) -> tuple[Variant, ...]:
    """The base, then those of CURVES, or of the curves in `only`, in its order. UserError for a
    curve that there is not."""
    found: dict[str, list[Variant]] = {}
    for variant in (variant for curve in CURVES for variant in curve):
        found.setdefault(variant.curve, []).append(variant)
    for name in only:
        if name not in found:
            raise UserError(f"no curve is named '{name}'; there are {'; '.join(found)}")
    return (Variant(BASE, BASE), *(v for name in only or found for v in found[name]))
