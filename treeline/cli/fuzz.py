"""`treeline bench fuzz`: damaged buffers through validate, the oracle and the GPU kernel."""

from pathlib import Path
from typing import Annotated

import typer

from engine.gpu.errors import CheckFailed
from treeline.cli.console import emit_json, print_table, steps
from treeline.cli.options import Common, with_common
from treeline.outputs import check_writable


@with_common
def fuzz(
    common: Common,
    count: Annotated[int, typer.Option(min=1, help="Mutations through the CPU readers.")] = 2000,
    gpu: Annotated[
        int, typer.Option(min=0, help="Of them, how many through the GPU kernel too.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="The record, as JSON.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of buffers and mutations.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes. Default: one a CPU core.")
    ] = None,
) -> None:
    """Damage valid buffers and check that every reader ends and says so; exit code 1 if not.

    The scene options are not used: buffers of a thousand nodes and more are made from the seed.
    """
    from treeline.fuzz import fuzz as run_fuzz
    from treeline.fuzz import record
    from treeline.report_table import make_table, number

    if out is not None:
        check_writable(out)
    with steps(common.quiet) as progress:
        device = common.open_device() if gpu else None
        result = run_fuzz(seed, count, gpu, device, workers, progress)
    data = record(result, device)
    if out is not None:
        emit_json(data, str(out))
    emit_json(data, common.json)
    if not common.to_stdout:
        columns = (
            "reader",
            "mutations",
            "structural",
            "error",
            "equal",
            "different",
            "broken",
            "/s",
        )
        cells = [
            (
                name,
                number(part["mutations"]),
                number(part["structural"]),
                *(number(part["traversals"][key]) for key in ("error", "equal", "different")),
                number(part["broken"]),
                number(part["mutations_per_s"], 1),
            )
            for name, part in (("validate, oracle", data["cpu"]), ("GPU", data.get("gpu")))
            if part
        ]
        print_table(make_table(f"Damaged buffers, seed {seed}", columns, cells))
    if result.broken:
        raise CheckFailed(result.broken[0])
