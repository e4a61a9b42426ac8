"""The ledger: no constant or field of the code without a row, and no row without evidence."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import bvh.layout
from bvh.contract import ledger
from bvh.contract.descriptor import FIELDS as DESCRIPTOR_FIELDS
from bvh.contract.facts.row import LABELS, SOURCES
from bvh.contract.mimg import MIMG_FIELDS
from bvh.contract.node_fields import FIELDS as NODE_FIELDS

FOLDER = Path(bvh.layout.__file__).parent / "contract"
# Modules that state facts about guest bits, encodings or the instruction's arithmetic.
FACTUAL = (
    "pointer", "descriptor", "half", "box", "triangle", "intersect", "memory", "mimg", "program",
    "wave",
)  # fmt: skip
# Tables whose fields are covered one by one, as `descriptor:sort`.
FIELD_TABLES = {"descriptor.FIELDS", "mimg.MIMG_FIELDS"}


def constants_of(source: str) -> list[str]:
    """Public names in capitals that a module assigns; a NewType or an alias is no constant."""
    found = []
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and re.fullmatch(r"[A-Z][A-Z0-9_]+", target.id):
                text = ast.unparse(node.value) if node.value else ""
                if not text.startswith(("NDArray", "NewType")):
                    found.append(target.id)
    return found


def used_names() -> list[str]:
    layout = Path(bvh.layout.__file__).read_text(encoding="utf-8")
    names = [f"layout.{name}" for name in constants_of(layout)]
    for module in FACTUAL:
        source = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
        names += [f"{module}.{name}" for name in constants_of(source)]
    names += [f"descriptor:{field.name}" for field in DESCRIPTOR_FIELDS]
    names += [f"mimg:{field.name}" for field in MIMG_FIELDS]
    return [name for name in names if name not in FIELD_TABLES]


def test_every_constant_and_field_has_a_row() -> None:
    names = used_names()
    assert "layout.BOX_WIDTH" in names and "descriptor:sort" in names  # the search works
    assert [name for name in names if name not in ledger.COVERED] == []


def test_every_covered_name_exists() -> None:
    for name in ledger.COVERED:
        if ":" in name:
            continue
        module, _, constant = name.partition(".")
        where = "bvh.layout" if module == "layout" else f"bvh.contract.{module}"
        assert hasattr(importlib.import_module(where), constant), name
    fields = {name for name in ledger.COVERED if ":" in name}
    assert fields <= set(used_names())


def test_a_name_has_one_row_and_an_id_one_meaning() -> None:
    assert len(ledger.BY_ID) == len(ledger.ROWS)
    assert len(ledger.COVERED) == sum(len(row.covers) for row in ledger.ROWS)


@pytest.mark.parametrize("row", ledger.ROWS, ids=lambda row: row.id)
def test_rows_say_what_they_must(row: ledger.Row) -> None:
    assert row.label in LABELS
    assert set(row.source.split(", ")) <= set(SOURCES)
    assert row.statement.endswith(".")
    # An unknown without an experiment is a shrug; an experiment for a known fact is confusion.
    assert bool(row.experiment) == (row.label == "unknown")
    if row.label in ("documented", "observed"):
        assert row.source != "-"
    assert row.rules == "both" or row.label != "documented"


def test_node_fields_rest_on_rows() -> None:
    for fields in NODE_FIELDS.values():
        for field in fields:
            assert field.row in ledger.BY_ID


def test_documented_facts_cite_a_vendor() -> None:
    vendor = {"PAL", "IS2", "IS3", "IS4"}
    for row in ledger.select(label="documented"):
        assert vendor & set(row.source.split(", ")), row.id


def test_nan_is_labelled_unknown() -> None:
    assert ledger.BY_ID["box.nan"].label == "unknown"


def test_differences_name_rows_of_the_two_rule_sets() -> None:
    pairs = ledger.differences()
    assert len(pairs) == len(ledger.DIFFERENCES)
    assert all(a.rules == "chapter" and b.rules == "gpurt" for a, b in pairs)
    named = {row.id for pair in pairs for row in pair}
    assert {row.id for row in ledger.ROWS if row.rules != "both"} == named


def test_selection_and_text() -> None:
    unknown = ledger.select(label="unknown")
    assert unknown and all(row.label == "unknown" for row in unknown)
    text = ledger.as_text(unknown)
    assert text.count("experiment:") == len(unknown)
    assert all(row.rules != "chapter" for row in ledger.select(rules="gpurt"))
    assert ledger.COVERED["descriptor:sort"].label == "documented"


def test_the_support_statement_is_made_from_the_tables() -> None:
    text = ledger.support_statement(("50 vectors passed",), ("llvmpipe",))
    for part in ("0xE6", "0xE7", "FP16 box", "chapter, gpurt", "a16 1", "llvmpipe", "50 vectors"):
        assert part in text
    assert str(len(ledger.ROWS)) in text


def test_the_committed_document_is_the_generated_one() -> None:
    # `treeline contract ledger --markdown > bvh/contract/LEDGER.md` brings it up to date.
    assert (FOLDER / "LEDGER.md").read_text(encoding="utf-8") == ledger.as_markdown()


def test_the_document_has_every_row() -> None:
    text = ledger.as_markdown()
    assert all(f"| {row.id} |" in text for row in ledger.ROWS)
    tables = [line for line in text.splitlines() if line.startswith("|")]
    columns = {line.replace("\\|", "").count("|") for line in tables}
    assert columns == {3, 5}  # tables of two and of four columns, no cell broken by a bar
