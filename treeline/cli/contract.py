"""`treeline contract`: what the BVH instruction does, and what foreign bytes mean by it."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from engine.gpu.errors import CheckFailed, UserError
from treeline.cli.console import emit_json, note, print_table
from treeline.cli.options import Common, with_common

contract = typer.Typer(
    help="The instruction-level contract: vectors, ledger, encodings, foreign dumps.",
    no_args_is_help=True,
)
RulesOption = Annotated[
    Literal["chapter", "gpurt"],
    typer.Option(help="chapter: KytyPS5's helper; gpurt: AMD's emulation."),
]
FAULTS_SHOWN = 10


def hexadecimal(text: str, bits: int = 32) -> int:
    """A word as tools print it: hexadecimal, 0x or not."""
    try:
        value = int(text, 16)
    except ValueError:
        raise UserError(f"'{text}' is no hexadecimal number") from None
    if not 0 <= value < 1 << bits:
        raise UserError(f"'{text}' does not fit {bits} bits")
    return value


@contract.command("run")
@with_common
def run(
    common: Common,
    vectors: Annotated[Path, typer.Option(help="A vector file, schema 1.")],
    rules: RulesOption = "chapter",
    backend: Annotated[Literal["cpu", "gpu"], typer.Option(help="cpu is the definition.")] = "cpu",
) -> None:
    """Run test vectors; one line a failure, exit code 1 if any failed.

    Result words must be equal, except that any NaN equals any other. Encodings run on the host.
    """
    from bvh.contract import vectors as files
    from treeline import contract_evidence

    loaded = files.load(vectors)
    evaluate, device = files.run_on_cpu, None
    if backend == "gpu":
        from bvh.contract import gpu

        device = common.open_device()
        note(f"adapter {device.info.adapter} ({device.info.backend})", quiet=common.quiet)

        opened = device

        def evaluate(cases: Any, rules: Any) -> Any:
            return gpu.intersect(opened, cases, rules)

    report = files.run(loaded, rules, evaluate)
    emit_json(
        {
            "context": contract_evidence.run_context(vectors, device),
            "rules": rules,
            "backend": backend,
            "passed": report.passed,
            "failed": len(report.failures),
            "not_applicable": report.not_applicable,
            "failures": [
                {"name": f.name, "expected": f.expected, "actual": f.actual}
                for f in report.failures
            ],
        },
        common.json,
    )
    if not common.to_stdout:
        for failure in report.failures:
            print(failure)
        print(report)
    if report.failures:
        raise typer.Exit(1)


@contract.command("ledger")
@with_common
def ledger(
    common: Common,
    label: Annotated[
        Literal["documented", "observed", "inferred", "unknown", "ours"] | None,
        typer.Option(help="Only rows with this label."),
    ] = None,
    rules: Annotated[
        Literal["chapter", "gpurt"] | None, typer.Option(help="Only rows of one rule set.")
    ] = None,
    about: Annotated[str | None, typer.Option(help="Only ids that start so, as `box.`")] = None,
    differences: Annotated[
        bool, typer.Option("--differences", help="Where the two rule sets part.")
    ] = False,
    statement: Annotated[
        bool, typer.Option("--statement", help="What is supported, generated from the tables.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="All of it as a document.")] = False,
) -> None:
    """Every fact the code rests on, with its evidence; for unknowns the smallest experiment."""
    from dataclasses import asdict

    from bvh.contract import ledger as table
    from treeline import contract_evidence

    if statement or markdown:
        print(contract_evidence.statement() if statement else table.as_markdown(), end="")
        return
    rows = table.select(label, rules, about)
    if differences:
        pairs = table.differences()
        emit_json([{"chapter": asdict(a), "gpurt": asdict(b)} for a, b in pairs], common.json)
        if not common.to_stdout:
            print("\n\n".join(table.as_text([a, b]) for a, b in pairs))
        return
    emit_json([asdict(row) for row in rows], common.json)
    if not common.to_stdout:
        print(table.as_text(rows))
        print(f"{len(rows)} of {len(table.ROWS)} rows")


@contract.command("decode")
@with_common
def decode(
    common: Common,
    words: Annotated[
        list[str] | None, typer.Argument(help="Instruction words in program order, hexadecimal.")
    ] = None,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="The supported and refused variants instead.")
    ] = False,
) -> None:
    """Find and decode BVH instructions in a word stream that starts at an instruction.

    Exit code 1 if none starts in it.
    """
    from treeline import contract_decode

    if matrix:
        emit_json(contract_decode.matrix(), common.json)
        if not common.to_stdout:
            print_table(contract_decode.matrix_table())
        return
    if not words:
        raise UserError("give the instruction's words, or --matrix")
    found = contract_decode.decode_stream([hexadecimal(word) for word in words])
    emit_json(found, common.json)
    if not common.to_stdout:
        print("\n".join(contract_decode.as_lines(found)))
    if not found["instructions"]:
        raise CheckFailed("no BVH instruction starts in these words")


@contract.command("open")
@with_common
def open_command(
    common: Common,
    dump: Annotated[Path, typer.Argument(help="Raw bytes of guest memory.")],
    descriptor: Annotated[
        tuple[str, str, str, str], typer.Option(help="The four descriptor words, hexadecimal.")
    ],
    root: Annotated[str, typer.Option(help="Node pointer to start at, hexadecimal.")],
    base: Annotated[
        str | None,
        typer.Option(
            help="Guest address of the file's first byte. Default: the descriptor's base."
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(help="Table of 'ADDRESS OFFSET SIZE' lines; OFFSET - is not captured."),
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="All nodes as .npz, or the triangles as .obj.")
    ] = None,
    trace: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="OX,OY,OZ DX,DY,DZ", help="Log a ray, instruction by instruction."),
    ] = None,
    rules: RulesOption = "chapter",
    enter_instances: Annotated[
        bool,
        typer.Option("--enter-instances", help="Type 6 nodes are Treeline's own: trace into them."),
    ] = False,
) -> None:
    """Decode foreign bytes by the ledger: node kinds, extents, first fault, labels of the fields.

    Child pointers count from the descriptor's base. A driver that keeps base 0 and adds the
    structure's address itself (RADV) is opened with base 0 and a root that counts from the file's
    first byte.

    Exit code 1 if a fault was found or the traced ray could not finish.
    """
    from treeline import contract_dump, contract_trace
    from treeline.contract_tables import dump_tables

    if export is not None and export.suffix not in (".npz", ".obj"):
        raise UserError(f"--export {export}: .npz or .obj")
    if pages is not None and base is not None:
        raise UserError("--pages says where every byte lies; leave out --base")
    ray = contract_trace.parse_ray(*trace) if trace is not None else None
    opened = contract_dump.open_dump(
        dump,
        tuple(hexadecimal(word) for word in descriptor),
        hexadecimal(root, 64),
        None if base is None else hexadecimal(base, 48),
        pages,
    )
    data = contract_dump.summary(opened)
    result = contract_trace.trace(opened, *ray, rules, enter_instances) if ray else None
    emit_json({**data, "trace": result}, common.json)
    if not common.to_stdout:
        print_table(dump_tables(data, FAULTS_SHOWN))
        if result:
            print("\n".join(result["lines"]))
    if export is not None:
        write = contract_dump.export_npz if export.suffix == ".npz" else contract_dump.export_obj
        write(opened, export)
        note(f"wrote {export}", quiet=common.quiet)
    if data["faults"] or (result and result["error"]):
        raise typer.Exit(1)
