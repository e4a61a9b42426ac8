"""Test vector files, schema 1: reading them and running them against a backend.

An intersection vector has descriptor, node pointer, node words, ray, and the expected four words
of each model; null says that the model does not apply. An encoding vector has an operation, its
input and its output. Words are "0x..." strings, other integers JSON numbers. A node's words are
all that its test may read.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.contract.cases import BLOCK_WORDS, NODE_WORDS, RULES, Cases, Rules, make_cases
from bvh.contract.encodings import OPERATIONS
from bvh.contract.intersect import intersect_cases
from engine.gpu.errors import UserError

U32 = NDArray[np.uint32]

SCHEMA = 1
DEFAULT_MODELS = {"chapter": "kyty", "gpurt": "gpurt"}

# Four words [n, 4] of a batch.
Backend = Callable[[Cases, Rules], U32]


@dataclass(frozen=True, slots=True)
class Vectors:
    """A file's vectors. `expected` has one entry a case and model: four words or None."""

    names: tuple[str, ...]
    cases: Cases
    expected: dict[Rules, tuple[tuple[int, ...] | None, ...]]
    encodings: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    name: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"FAIL {self.name}: expected {self.expected}, got {self.actual}"


@dataclass(frozen=True, slots=True)
class Report:
    passed: int
    failures: tuple[Failure, ...]
    not_applicable: int

    def __str__(self) -> str:
        return (
            f"{self.passed} passed, {len(self.failures)} failed, "
            f"{self.not_applicable} not applicable"
        )


def run_on_cpu(cases: Cases, rules: Rules) -> U32:
    """The backend that is the definition."""
    return intersect_cases(cases, rules).words


def load(path: Path) -> Vectors:
    """UserError for what is no schema 1 file, naming the vector and the field."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        raise UserError(f"{path}: schema {found!r}; this reads schema {SCHEMA}")
    models = {**DEFAULT_MODELS, **data.get("rules", {})}
    vectors = data.get("intersection", [])
    rows = []
    expected: dict[Rules, list[tuple[int, ...] | None]] = {rules: [] for rules in RULES}
    for number, vector in enumerate(vectors):
        try:
            rows.append(_row(vector))
            for rules in RULES:
                words = vector["expected"].get(models[rules])
                expected[rules].append(None if words is None else _words(words, 4))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            name = vector.get("name", number) if isinstance(vector, dict) else number
            kind = "no field" if isinstance(error, KeyError) else "bad value:"
            raise UserError(f"{path}: intersection vector {name}: {kind} {error}") from None
    columns = zip(*rows, strict=True) if rows else [[]] * 8
    pointer, node, backed, descriptor, extent, origin, direction, inverse = map(list, columns)
    cases = make_cases(
        np.array(descriptor, np.uint32).reshape(-1, 4),
        np.array(pointer, np.uint64),
        np.array(node, np.uint32).reshape(-1, NODE_WORDS),
        np.array(extent, np.uint32),
        *(np.array(v, np.uint32).reshape(-1, 3) for v in (origin, direction, inverse)),
        backed=np.array(backed, np.uint32),
    )
    return Vectors(
        tuple(str(vector.get("name", i)) for i, vector in enumerate(vectors)),
        cases,
        {rules: tuple(found) for rules, found in expected.items()},
        tuple(data.get("encoding", [])),
    )


def run(vectors: Vectors, rules: Rules, backend: Backend = run_on_cpu) -> Report:
    """All vectors of a file. The intersections run on `backend` in one batch, the encodings on
    the host. Words must be equal, except that any NaN equals any other NaN."""
    failures, passed, skipped = [], 0, 0
    actual = backend(vectors.cases, rules) if vectors.names else np.empty((0, 4), np.uint32)
    for name, want, got in zip(vectors.names, vectors.expected[rules], actual, strict=True):
        if want is None:
            skipped += 1
        elif all(_same(a, b) for a, b in zip(want, got.tolist(), strict=True)):
            passed += 1
        else:
            failures.append(Failure(name, _text(want), _text(got.tolist())))
    for number, vector in enumerate(vectors.encodings):
        failure = _run_encoding(vector, number)
        passed += failure is None
        failures += [failure] if failure else []
    return Report(passed, tuple(failures), skipped)


def _row(vector: dict[str, Any]) -> tuple[Any, ...]:
    node = _words(vector["node_words"])
    if len(node) > NODE_WORDS:
        raise ValueError(f"{len(node)} node words, a node has at most {NODE_WORDS}")
    ray = vector["ray"]
    return (
        _word(vector["node_pointer"], 64),
        node + (0,) * (NODE_WORDS - len(node)),
        -(-len(node) // BLOCK_WORDS),
        _words(vector["descriptor"], 4),
        _word(ray["extent"]),
        *(_words(ray[field], 3) for field in ("origin", "direction", "inverse_direction")),
    )


def _word(value: Any, bits: int = 32) -> int:
    number = int(value, 0) if isinstance(value, str) else int(value)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{value} is no {bits}-bit word")
    return number


def _words(values: Any, count: int | None = None) -> tuple[int, ...]:
    words = tuple(_word(value) for value in values)
    if count is not None and len(words) != count:
        raise ValueError(f"{len(words)} words where {count} belong")
    return words


def _same(expected: int, actual: int) -> bool:
    return expected == actual or (_is_nan(expected) and _is_nan(actual))


def _is_nan(word: int) -> bool:
    # 0xffffffff is the invalid pointer, never an arithmetic result.
    return word & 0x7FFFFFFF > 0x7F800000 and word != 0xFFFFFFFF


def _text(words: Any) -> str:
    return " ".join(f"{word:08x}" for word in words)


def _run_encoding(vector: dict[str, Any], number: int) -> Failure | None:
    name = str(vector.get("name", f"encoding {number}"))
    operation = OPERATIONS.get(vector.get("op", ""))
    if operation is None:
        raise UserError(f"encoding vector {name}: unknown op {vector.get('op')!r}")
    try:
        actual = operation(vector["input"])
    except UserError as error:
        return Failure(name, json.dumps(vector.get("output")), f"error: {error}")
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"encoding vector {name}: bad input: {error}") from None
    expected = _numbers(vector["output"])
    if isinstance(expected, dict) and isinstance(actual, dict):
        actual = {key: actual.get(key) for key in expected}  # a file may ask for fewer
    if expected == actual:
        return None
    return Failure(name, _plain(expected), _plain(actual))


def _numbers(value: Any) -> Any:
    if isinstance(value, str):
        return int(value, 0)
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return {k: _numbers(v) for k, v in value.items()} if isinstance(value, dict) else value


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={_plain(item)}" for key, item in value.items())
    if isinstance(value, list):
        return _text(value)
    return f"{value:#x}" if isinstance(value, int) and value >= 0 else str(value)
