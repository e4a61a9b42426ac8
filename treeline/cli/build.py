"""`treeline build`: a scene's structures as a file."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from engine.gpu.errors import UserError
from treeline.cli.console import emit_json, print_table, steps
from treeline.cli.options import Common, with_common
from treeline.outputs import whole_file


@with_common
def build(common: Common, out: Annotated[Path, typer.Option(help="The .npz to write.")]) -> None:
    """Build the scene's structures and save them."""
    from bvh.container import save
    from passes.prepare import prepare
    from treeline.report_context import plain
    from treeline.report_table import make_table, number

    check_npz(out)
    with whole_file(out) as path, steps(common.quiet) as progress:
        progress.begin("loading and building")
        prepared = prepare(common.load_scene(), common.build_options(), common.group)
        progress.begin("writing")
        save(path, prepared.bvh)
    bvh = prepared.bvh
    stats = [plain(asdict(s)) for s in bvh.blas_stats]
    result = {
        "out": str(out),
        "bytes": int(bvh.words.nbytes),
        "instances": len(bvh.instances),
        "blas": [{"name": n, **s} for n, s in zip(bvh.blas_names, stats, strict=True)],
    }
    emit_json(result, common.json)
    if not common.to_stdout:
        fields = ("triangles", "bytes", "nodes_fp16", "nodes_fp32", "fill", "depth", "sah")
        rows = [
            (name, *(number(s[f]) for f in fields), number(s["build_ms"], 0))
            for name, s in zip(bvh.blas_names, stats, strict=True)
        ]
        print_table(make_table(f"Structures in {out.name}", ("BLAS", *fields, "build ms"), rows))


def check_npz(path: Path) -> None:
    """Raises UserError for a name that NumPy would change."""
    if path.suffix != ".npz":
        raise UserError(f"the file is written as .npz, not {path.name}")
