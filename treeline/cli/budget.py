"""The option of commands that hold a frame against a budget."""

from typing import Annotated

import typer

BudgetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=MS,...",
        help="What parts of the frame may cost: frame, a ray type, update, any word of a pass's "
        "name; in ms, or of a ray type in rays (reflection=300krays).",
    ),
]
