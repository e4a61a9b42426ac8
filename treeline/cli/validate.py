"""`treeline validate`: whether a structure keeps the promises of its layout."""

from dataclasses import asdict

import typer

from treeline.cli.console import emit_json, steps
from treeline.cli.options import Common, SavedOption, with_common

SHOWN = 10  # faults printed; the JSON has all of them


@with_common
def validate(common: Common, bvh: SavedOption = None) -> None:
    """Check every node of a structure; exit code 1 names the first bad one."""
    from bvh.validate import validate as find_faults
    from treeline import structures
    from treeline.report_context import plain

    with steps(common.quiet) as progress:
        structure = structures.read_or_build(bvh, common, progress, cached=False)
        progress.begin("validating")
        faults = find_faults(structure)
    emit_json({"valid": not faults, "faults": plain([asdict(f) for f in faults])}, common.json)
    if not common.to_stdout:
        for fault in faults[:SHOWN]:
            print(fault)
        if len(faults) > SHOWN:
            print(f"and {len(faults) - SHOWN} more")
        if not faults:
            nodes = sum(s.nodes_fp16 + s.nodes_fp32 for s in structure.blas_stats)
            print(
                f"valid: {len(structure.blas_names)} BLAS with {nodes:,} box nodes, "
                f"{len(structure.instances)} instances, {structure.words.nbytes:,} bytes"
            )
    if faults:
        raise typer.Exit(1)
