"""`--profile NAME|auto`: what a class of machines is asked to do, for commands that draw frames."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import note
from treeline.cli.frame_flags import FrameFlags

if TYPE_CHECKING:
    from engine.gpu.device import Device

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class ProfileFlags:
    """Which profile."""

    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|auto",
            help="What the frame does on a class of machines: a profile of `treeline doctor`, or "
            "the best that this adapter can run.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """`frame` are fields of FrameOptions; `context` is what a report says."""

    frame: Mapping[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)


def use_profile(
    flags: ProfileFlags, frame: FrameFlags, device: "Device", *, quiet: bool = False
) -> Chosen:
    """What the profile sets. Says what that is, and by `auto` why better ones were refused; never
    another than was asked for. UserError for one that this adapter or this program cannot run, for
    an unknown one, and where the command line sets something else than it does."""
    if flags.profile is None:
        return Chosen()
    from treeline.profiles import PROFILES, capabilities, negotiate

    name = flags.profile
    known = {profile.name: profile for profile in PROFILES}
    if name not in (AUTO, *known):
        raise UserError(f"no profile is named '{name}'; there are {', '.join(known)}, or {AUTO}")
    found = negotiate(capabilities(device))
    chosen = found.chosen if name == AUTO else known[name]
    if chosen is None or chosen.name in found.refused:
        refused = found.refused if chosen is None else {name: found.refused[name]}
        why = "; ".join(f"{one}: {', '.join(reasons)}" for one, reasons in refused.items())
        asked = "no profile runs here" if chosen is None else "this profile does not run here"
        raise UserError(f"{asked}: {why}")
    default, given = FrameFlags().fields(), frame.fields()
    for option, value in chosen.options.items():
        if given.get(option, value) not in (default.get(option, value), value):
            raise UserError(
                f"the profile {chosen.name} sets {option} to {value}: leave it out or ask for no "
                f"profile, not {given[option]}"
            )
    better = [p.name for p in PROFILES[: PROFILES.index(chosen)]] if name == AUTO else []
    for one in better:
        note(f"profile {one} refused: {'; '.join(found.refused[one])}", quiet=quiet)
    settings = ", ".join(f"{option} {value}" for option, value in chosen.options.items())
    note(f"profile {chosen.name}: {settings}", quiet=quiet)
    reasons = {one: list(found.refused[one]) for one in better}
    return Chosen(chosen.options, {"profile": {"name": chosen.name, "refused": reasons}})
