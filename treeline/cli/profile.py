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


def check_profile(name: str | None) -> None:
    """UserError for a name that is none."""
    from treeline.profiles import PROFILES

    if name is None:
        return
    names = [profile.name for profile in PROFILES]
    if name not in (AUTO, *names):
        raise UserError(f"no profile is named '{name}'; there are {', '.join(names)}, or {AUTO}")


def pick_profile(
    name: str, device: "Device", given: Mapping[str, Any], default: Mapping[str, Any]
) -> Chosen:
    """What the profile `name` sets, or the best by `auto`; never another than was asked for.
    UserError for one that this adapter or this program cannot run, for an unknown one, and where
    the `given` options are neither the `default` ones nor the profile's."""
    from treeline.profiles import PROFILES, capabilities, negotiate

    check_profile(name)
    known = {profile.name: profile for profile in PROFILES}
    found = negotiate(capabilities(device))
    chosen = found.chosen if name == AUTO else known[name]
    if chosen is None or chosen.name in found.refused:
        refused = found.refused if chosen is None else {name: found.refused[name]}
        why = "; ".join(f"{one}: {', '.join(reasons)}" for one, reasons in refused.items())
        asked = "no profile runs here" if chosen is None else "this profile does not run here"
        raise UserError(f"{asked}: {why}")
    for option, value in chosen.options.items():
        if given.get(option, value) not in (default.get(option, value), value):
            raise UserError(
                f"the profile {chosen.name} sets {option} to {value}: leave it out or ask for no "
                f"profile, not {given[option]}"
            )
    better = [p.name for p in PROFILES[: PROFILES.index(chosen)]] if name == AUTO else []
    reasons = {one: list(found.refused[one]) for one in better}
    return Chosen(chosen.options, {"profile": {"name": chosen.name, "refused": reasons}})


def use_profile(
    flags: ProfileFlags, frame: FrameFlags, device: "Device", *, quiet: bool = False
) -> Chosen:
    """As `pick_profile`, of a command line. Says what the profile sets, and by `auto` why better
    ones were refused."""
    if flags.profile is None:
        return Chosen()
    chosen = pick_profile(flags.profile, device, frame.fields(), FrameFlags().fields())
    told = chosen.context["profile"]
    for name, reasons in told["refused"].items():
        note(f"profile {name} refused: {'; '.join(reasons)}", quiet=quiet)
    settings = ", ".join(f"{option} {value}" for option, value in chosen.frame.items())
    note(f"profile {told['name']}: {settings}", quiet=quiet)
    return chosen
