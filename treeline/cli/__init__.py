"""The command line `treeline`: one file a command, joined in commands.py, the shared options in
options.py.

Data goes to stdout, progress and notes to stderr. Exit codes: 0 ok, 1 a check failed, 2 a
request that cannot be met, 3 no such adapter or no display, 130 after Ctrl-C.
"""

import sys

from treeline.cli import interrupts


def main() -> None:
    """The entry point. Signals are handled before anything that takes time is imported."""
    interrupts.install()
    try:
        from treeline.cli.commands import app

        interrupts.check()
        app()
    except KeyboardInterrupt:
        sys.exit(interrupts.CODE)
    finally:
        # A signal that arrives while Python evaluates a text, as dataclasses do, has it end by that
        # signal whatever the exit code, until another text is evaluated.
        eval("None")
