"""What a command says and where: data on stdout, progress and notes on stderr.

Progress bars only appear on a terminal; colour follows the terminal and NO_COLOR.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from treeline.cli import interrupts
from treeline.json_text import json_text
from treeline.outputs import whole_file

PLAIN_WIDTH = 120  # columns where stdout is a file or a pipe


def note(text: str, *, quiet: bool = False) -> None:
    """One line on stderr."""
    if not quiet:
        print(f"treeline: {text}", file=sys.stderr, flush=True)


def print_table(table: RenderableType) -> None:
    """A table on stdout."""
    terminal = sys.stdout.isatty()
    Console(file=sys.stdout, width=None if terminal else PLAIN_WIDTH, highlight=False).print(table)


def emit_json(data: Any, target: str | None) -> None:
    """`data` as JSON to stdout (`-`) or a file; NaN is refused, it is no JSON."""
    if target is None:
        return
    text = json_text(data)
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    with whole_file(Path(target)) as path:
        path.write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Steps:
    """Tells the user what runs now. `begin` names a step of `total` parts, `advance` ends one."""

    bar: Progress | None
    quiet: bool

    def begin(self, text: str, total: int = 1) -> None:
        interrupts.check()
        if self.bar is None:
            note(text, quiet=self.quiet)
            return
        for task in self.bar.task_ids:
            self.bar.update(task, visible=False)
        self.bar.add_task(text, total=total, detail="")

    def advance(self, detail: str = "") -> None:
        interrupts.check()
        if self.bar is not None and self.bar.task_ids:
            task = self.bar.task_ids[-1]
            self.bar.update(task, advance=1, detail=detail)


@contextmanager
def steps(quiet: bool) -> Iterator[Steps]:
    """A progress display on a terminal's stderr, plain lines elsewhere, nothing when quiet."""
    if quiet or not sys.stderr.isatty():
        yield Steps(None, quiet)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True) as bar:
        yield Steps(bar, quiet)
