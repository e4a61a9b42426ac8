"""What a search has measured, kept in a file beside its output: one that was interrupted goes on.

The file holds blocks by what was measured. Since a search is a function of its blocks, it takes the
same way again and only measures what is not there. A block is only used where scene, adapter,
driver, options and sources are those of the file.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bvh.blas_cache import source_digest
from treeline.json_text import json_text
from treeline.outputs import whole_file
from treeline.tune.agreement import Agreement
from treeline.tune.blocks import COSTS, Block, Measure, Measured
from treeline.tune.cases import Case

SCHEMA = 2


@cache
def sources() -> str:
    """SHA-256 of the Python and WGSL that times follow from."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(source_digest().encode())
    for folder in ("engine/gpu", "engine/frame", "passes", "treeline/tune"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".wgsl"):
                digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def journal_path(out: Path) -> Path:
    return out.with_name(out.name + ".state")


@dataclass(slots=True)
class Journal:
    """`key` says what the blocks belong to. `used` and `measured` count blocks of this run."""

    path: Path
    key: Mapping[str, Any]
    blocks: dict[str, Any] = field(default_factory=dict)
    used: int = 0
    measured: int = 0

    @staticmethod
    def open(path: Path, key: Mapping[str, Any], say: Callable[[str], None]) -> "Journal":
        """With what is there. A file that cannot be read is put aside, one of something else is
        begun anew; `say` tells which, in a line."""
        journal = Journal(path, key)
        if not path.exists():
            return journal
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            blocks = {str(k): check_block(v) for k, v in data["blocks"].items()}
            known = dict(data["key"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            aside = path.with_name(path.name + ".damaged")
            os.replace(path, aside)
            say(f"{path} is damaged: put aside as {aside.name}, the search begins anew")
            return journal
        other = sorted(name for name in {*known, *key} if known.get(name) != key.get(name))
        if other or data.get("schema") != SCHEMA:
            say(f"{path} is of another {', '.join(other) or 'version'}: the search begins anew")
            return journal
        say(f"{path}: goes on from {len(blocks)} measured blocks")
        journal.blocks = blocks
        return journal

    def remembering(self, measure: Measure) -> Measure:
        """The same, but for blocks that are there already; others are written as they come."""

        def remembered(phase: str, cases: Sequence[Case], turns: int) -> Block:
            name = block_name(phase, cases, turns)
            if name in self.blocks:
                self.used += 1
                return _block(self.blocks[name], cases)
            block = measure(phase, cases, turns)
            self.blocks[name] = {"phase": phase, "turns": turns} | block.facts()
            self.measured += 1
            self.write()
            return block

        return remembered

    def write(self) -> None:
        data = {"schema": SCHEMA, "key": self.key, "blocks": self.blocks}
        with whole_file(self.path) as path:
            path.write_text(json_text(data), encoding="utf-8")


def block_name(phase: str, cases: Sequence[Case], turns: int) -> str:
    text = json.dumps([phase, [case.facts() for case in cases], turns], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_block(facts: Any) -> dict[str, Any]:
    """The facts of a block. ValueError, KeyError or TypeError for what is none."""
    results, turns = facts["results"], int(facts["turns"])
    if not (math.isfinite(facts["seconds"]) and facts["seconds"] >= 0):
        raise ValueError("a time is not negative")
    for result in results:
        for agreement in result["hits"].values():
            Agreement(**agreement)
        costs = set(result["costs"])
        if "refused" in result:
            continue
        if costs != set(COSTS):
            raise ValueError("a structure has its costs")
        for values in result["ms"].values():
            if len(values) != turns or not all(v > 0 and math.isfinite(v) for v in values):
                raise ValueError("a block has a time for each turn")
    if not results or "refused" in results[0]:
        raise ValueError("a block begins with its default")
    return dict(facts)


def _block(facts: Mapping[str, Any], cases: Sequence[Case]) -> Block:
    results = tuple(
        Measured(
            case,
            item["ms"],
            {name: Agreement(**hits) for name, hits in item["hits"].items()},
            item.get("refused"),
            item["costs"],
        )
        for case, item in zip(cases, facts["results"], strict=True)
    )
    return Block(results, float(facts["seconds"]))
