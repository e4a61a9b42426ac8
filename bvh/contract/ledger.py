"""The contract ledger: every fact that the code rests on, with its evidence label.

Labels: documented (vendor manual or register header), observed (public source), inferred, unknown
(with the smallest experiment that would settle it), ours (a choice of this project). No row was
measured on RDNA2 hardware here. The same rows feed `treeline contract ledger`, the support
statement, and the labels that `treeline contract open` prints; a test holds every constant and
field of the contract's code against `covers`.
"""

from bvh.contract.cases import RULES
from bvh.contract.facts import (
    arithmetic_facts,
    encoding_facts,
    instruction_facts,
    layout_facts,
)
from bvh.contract.facts.row import LABELS, Label, Row
from bvh.contract.mimg import OPCODE_NAMES, VARIANTS
from bvh.layout import NODE_NAMES, NODE_TRIANGLE_2

ROWS: tuple[Row, ...] = (
    layout_facts.ROWS + instruction_facts.ROWS + arithmetic_facts.ROWS + encoding_facts.ROWS
)
BY_ID = {row.id: row for row in ROWS}
COVERED = {name: row for row in ROWS for name in row.covers}


def select(
    label: str | None = None, rules: str | None = None, about: str | None = None
) -> list[Row]:
    """Rows with a label, of a rule set (rows of both included), whose id starts with `about`."""
    return [
        row
        for row in ROWS
        if (label is None or row.label == label)
        and (rules is None or row.rules in ("both", rules))
        and (about is None or row.id.startswith(about))
    ]


def label_of(name: str) -> Label:
    """The label of a constant or field, such as `layout.BOX_WIDTH` or `descriptor:sort`."""
    return COVERED[name].label


def as_text(rows: list[Row]) -> str:
    """One paragraph a row."""
    lines = []
    for row in rows:
        only = "" if row.rules == "both" else f", {row.rules} rules"
        lines.append(f"{row.id}  [{row.label}; {row.source}{only}]")
        lines.append(f"    {row.statement}")
        if row.experiment:
            lines.append(f"    experiment: {row.experiment}")
    return "\n".join(lines)


def differences() -> list[tuple[Row, Row]]:
    """Pairs (chapter, gpurt) of rows where the rule sets part, in ledger order."""
    chapter = [row for row in ROWS if row.rules == "chapter"]
    gpurt = [row for row in ROWS if row.rules == "gpurt"]
    return [
        (left, right) for left in chapter for right in gpurt if (left.id, right.id) in DIFFERENCES
    ]


# Rows that answer the same question for the two rule sets.
DIFFERENCES = {
    ("range.check", "range.none"),
    ("ray.validity", "range.none"),
    ("pointer.address_limit", "range.none"),
    ("box.hit_chapter", "box.hit_gpurt"),
    ("box.sort_chapter", "box.sort_gpurt"),
    ("triangle.chapter", "triangle.gpurt"),
    ("triangle.edge_owner", "triangle.gpurt"),
    ("triangle.source_3_chapter", "triangle.source_3_gpurt"),
    ("result.triangle_id", "result.triangle_id_gpurt"),
}


def support_statement(evidence: tuple[str, ...] = (), adapters: tuple[str, ...] = ()) -> str:
    """What is supported, generated from the tables that the code itself uses. `evidence` and
    `adapters` are lines of the caller's: what ran, and where."""
    forms = ", ".join(f"{name} (0x{code:X})" for code, name in OPCODE_NAMES.items())
    kinds = ", ".join(
        f"{kind} {name}" + (" (emulators only)" if NODE_TRIANGLE_2 <= kind <= 3 else "")
        for kind, name in enumerate(NODE_NAMES[:6])
    )
    refused = "; ".join(
        f"{v.field} {_span(v.values)}: {v.reason}" for v in VARIANTS if not v.supported
    )
    counts = ", ".join(f"{sum(r.label == label for r in ROWS)} {label}" for label in LABELS)
    lines = [
        f"Instructions: {forms}.",
        f"Node types: {kinds}. Types 6 and 7 return 0xffffffff x 4; their bytes are software's.",
        f"Rule sets: {', '.join(RULES)}. `gpurt` is AMD's emulation, `chapter` the seed chapter's.",
        f"Refused encodings: {refused}.",
        f"Ledger: {len(ROWS)} rows ({counts}). None was measured on RDNA2 hardware.",
        f"Adapters tested: {'; '.join(adapters) if adapters else 'the CPU definition only'}.",
        *(f"Evidence: {line}" for line in evidence),
    ]
    return "\n".join(lines)


def _span(values: tuple[int, ...]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]}..{values[-1]}"
