"""Says which of the given options change nothing, as others stand."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from treeline.cli.console import note
from treeline.cli.frame_flags import FrameFlags

if TYPE_CHECKING:
    from passes.frame_options import FrameOptions
    from passes.option import Need

FLAGS = frozenset(field.name for field in fields(FrameFlags))


def note_idle(frame: "FrameOptions", *, quiet: bool = False) -> None:
    """One line on stderr for each option of the command line that has no effect on such frames."""
    from passes.option_list import ViewSettings, idle

    settings = ViewSettings(frame)
    for option, need in idle(settings):
        if flag := flag_of(option.name, option.get(settings)):
            note(f"{flag} has no effect: it needs {needed(need)}", quiet=quiet)


def flag_of(name: str, value: Any) -> str:
    """The option of the command line that sets a field of FrameOptions to `value`; "" where none
    does."""
    if name == "any_hit":
        return f"--force-{value}"
    return f"--{name.replace('_', '-')}" if name in FLAGS else ""


def needed(need: "Need") -> str:
    """What to write so that a need is met."""
    return " or ".join(_words(name, values) for name, values in need.ways)


def _words(name: str, values: tuple[Any, ...]) -> str:
    """By which an option has one of these values."""
    if (name, values) == ("any_hit", ("test",)):
        return "neither --force-opaque nor --force-reject"
    flag = flag_of(name, values[0])
    return flag if values == (True,) else f"{flag} {' or '.join(map(str, values))}"
