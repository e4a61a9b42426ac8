"""Every command by its name."""

from typing import Annotated

import typer

from treeline.cli.ablate import ablate
from treeline.cli.bench import trace
from treeline.cli.bench_build import build as bench_build
from treeline.cli.build import build
from treeline.cli.capture import capture
from treeline.cli.compare import compare
from treeline.cli.contract import contract
from treeline.cli.curve import curve
from treeline.cli.doctor import doctor
from treeline.cli.example import triangle
from treeline.cli.fit import fit
from treeline.cli.fuzz import fuzz
from treeline.cli.inspect import inspect
from treeline.cli.kdtree import kdtree
from treeline.cli.rays import rays
from treeline.cli.render import render
from treeline.cli.replay import replay
from treeline.cli.report import report
from treeline.cli.sweep import sweep
from treeline.cli.tune import tune
from treeline.cli.usage import OneLineUsage
from treeline.cli.validate import validate
from treeline.cli.view import view
from treeline.version import commit, version

app = typer.Typer(
    name="treeline",
    cls=OneLineUsage,
    help="A hybrid ray-traced frame over a guest-layout BVH, and what each ray type cost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(help="Measure kernels.", no_args_is_help=True)
example = typer.Typer(help="Small programs to learn from.", no_args_is_help=True)

for name, function in {
    "view": view,
    "render": render,
    "report": report,
    "compare": compare,
    "fit": fit,
    "ablate": ablate,
    "curve": curve,
    "tune": tune,
    "sweep": sweep,
    "build": build,
    "inspect": inspect,
    "validate": validate,
    "rays": rays,
    "capture": capture,
    "replay": replay,
    "doctor": doctor,
}.items():
    app.command(name)(function)
bench.command("trace")(trace)
bench.command("build")(bench_build)
bench.command("fuzz")(fuzz)
bench.command("kdtree")(kdtree)
example.command("triangle")(triangle)
app.add_typer(bench, name="bench")
app.add_typer(example, name="example")
app.add_typer(contract, name="contract")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"treeline {version()} (commit {commit()})")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
