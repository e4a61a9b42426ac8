"""A mistake in what was typed is one line, as every other mistake is."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from treeline.cli.console import note


class OneLineUsage(TyperGroup):
    """The commands, with typer's boxed usage errors as one line on stderr and their exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        # Not standalone it raises what is wrong, and returns what a command exits with.
        run = partial(
            super().main, args, prog_name, complete_var, False, windows_expand_args, **extra
        )
        if not standalone_mode:
            return run()
        try:
            code = run()
        except typer.TyperException as error:
            # Without words there is no mistake to tell: the help has been printed.
            if error.format_message():
                note(f"error: {usage_line(error)}")
            code = error.exit_code
        sys.exit(code)


def usage_line(error: typer.TyperException) -> str:
    """What is wrong, and where to read what is right."""
    # Choices stand on lines of their own; "Value error" is the validator's word for it.
    text = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    context = getattr(error, "ctx", None)
    where = "" if context is None else f" (see {context.command_path} --help)"
    return f"{text[:1].lower()}{text[1:]}{where}"
