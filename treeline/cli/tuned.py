"""`--tuned P`: what `treeline tune` chose, for commands that draw frames."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import note
from treeline.cli.options import Common

if TYPE_CHECKING:
    from engine.gpu.device import Device
    from engine.scene.scene import Scene

# The options that decide the build, and BuildOptions' fields.
BUILD_FIELDS = {
    "builder": "builder",
    "leaf": "leaf",
    "nodes": "nodes",
    "collapse": "collapse",
    "optimize": "reinsertion",
    "pairing": "pairing",
    "opacity": "opacity",
}


@dataclass(frozen=True, slots=True)
class TunedFlags:
    """Which profile."""

    tuned: Annotated[
        Path | None,
        typer.Option(
            metavar="P.json", help="Grouping, build and kernels that `treeline tune` chose."
        ),
    ] = None
    tuned_anyway: Annotated[
        bool,
        typer.Option("--tuned-anyway", help="Even if it was tuned for another scene or adapter."),
    ] = False


@dataclass(frozen=True, slots=True)
class Tuned:
    """The command's options with the profile's grouping and build; `frame` are fields of
    FrameOptions and `context` is what a report says."""

    common: Common
    frame: Mapping[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)


def check_tuned(flags: TunedFlags) -> None:
    """UserError for a file that is no profile, before anything that takes time."""
    from treeline.tune.profile import read_profile

    if flags.tuned is not None:
        read_profile(flags.tuned)


def use_tuned(common: Common, flags: TunedFlags, device: "Device", scene: "Scene") -> Tuned:
    """UserError for a profile of another scene or adapter, unless told to take it anyway, and for
    one that sets what the command line sets, too."""
    path, anyway = flags.tuned, flags.tuned_anyway
    if path is None:
        if anyway:
            raise UserError("--tuned-anyway needs --tuned")
        return Tuned(common)
    from treeline.tune.profile import read_profile

    profile = read_profile(path)
    here = {"scene_sha256": scene.sha256, "adapter": device.info.adapter}
    mismatch = profile.mismatch(here)
    if mismatch and not anyway:
        raise UserError(f"{mismatch}; --tuned-anyway takes it all the same")
    if mismatch:
        note(mismatch, quiet=common.quiet)
    default = Common()
    recipe = profile.case.recipe
    structure = {name: getattr(recipe.build, of) for name, of in BUILD_FIELDS.items()}
    structure["group"] = recipe.group
    for name, value in structure.items():
        given = getattr(common, name)
        if given not in (getattr(default, name), value):
            raise UserError(f"{path} sets --{name} {value}: leave out --{name} {given}")
    note(f"tuned: {profile.facts()['tuned']['text']}", quiet=common.quiet)
    return Tuned(
        replace(common, **structure), {"kernels": profile.case.kernels}, profile.facts(mismatch)
    )
