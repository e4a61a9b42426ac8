"""Vector files of schema 1: reading, running, failing with a line, refusing what is no vector."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.contract.cases import RULES, Cases
from bvh.contract.vectors import load, run, run_on_cpu
from engine.gpu.errors import UserError

SHARED = Path(__file__).resolve().parents[4] / "shared" / "contract" / "vectors.json"
RAY = {
    "extent": "0x40c00000",
    "origin": ["0x00000000", "0x00000000", "0x00000000"],
    "direction": ["0x00000000", "0x00000000", "0x3f800000"],
    "inverse_direction": ["0x7f800000", "0x7f800000", "0x3f800000"],
}
FAN = (
    "bf800000 bf800000 40000000 3f800000 bf800000 40000000 00000000 3f800000 40000000 40000000 "
    "3f800000 40000000 00000000 40400000 40000000 04040404"
).split()
TRIANGLE = {
    "name": "fan, type 0",
    "descriptor": ["0x00000100", "0x80000000", "0x00000100", "0x81000000"],
    "node_pointer": "0x0",
    "node_words": [f"0x{word}" for word in FAN],
    "ray": RAY,
    "expected": {
        "kyty": ["0xc1000000", "0xc0800000", "0xbf800000", "0xbf800000"],
        "gpurt": ["0xc1000000", "0xc0800000", "0xbf800000", "0xbf800000"],
    },
}
IDS = {
    **TRIANGLE,
    "name": "fan, id",
    "descriptor": ["0x00000100", "0x80000000", "0x00000100", "0x80000000"],
    "expected": {"kyty": ["0xc1000000", "0xc0800000", "0x04040404", "0x1"], "gpurt": None},
}
USER = {
    **TRIANGLE,
    "name": "user node",
    "node_pointer": "0x100000000000006",
    "node_words": [],
    "expected": {"kyty": ["0xffffffff"] * 4, "gpurt": ["0xffffffff"] * 4},
}
NAN = {
    **TRIANGLE,
    "name": "any NaN is a NaN",
    "ray": {**RAY, "origin": ["0xffc00001", "0x00000000", "0x00000000"]},
    "expected": {
        "kyty": ["0x7f800000", "0x3f800000", "0xffffffff", "0x0"],
        "gpurt": ["0xffc00001", "0xc0800000", "0x7fc00000", "0x7fffffff"],
    },
}
ENCODINGS: list[tuple[str, dict[str, Any], Any]] = [
    ("pointer_pack", {"byte_offset": 128, "type": 5}, "0x15"),
    ("pointer_pack", {"byte_offset": 1 << 36, "type": 4}, "0x200000004"),
    ("pointer_unpack", {"pointer": "0x25"},
     {"type": 5, "index64": 4, "byte_offset": 256, "word_index": 64}),
    ("descriptor_pack",
     {"base": 65536, "size_minus_1": 256, "sort": 0, "growth": 6, "return_mode": 0},
     ["0x100", "0x3000000", "0x100", "0x80000000"]),
    ("fp16_bounds", {"min": [70000, -70000, 1], "max": [70000, -70000, 1]},
     ["0xfc007bff", "0x7c003c00", "0x3c00fbff"]),
    ("triangle_flag_byte", {"i_source": 1, "j_source": 2, "opaque": 1}, "0x89"),
    ("parent_link", {"convention": "gpurt", "node": "0x15"}, {"byte_delta": -4}),
    ("mimg_decode", {"words": ["0xf19c9f01", "0x00081014"]}, {"opcode": 231, "nsa": 0, "bytes": 8}),
    ("a16_pack", {"order": "gfx11", "direction": [1, 2, 4], "inverse_direction": [1, 0.5, 0.25]},
     ["0x3c003c00", "0x38004000", "0x34004400"]),
]  # fmt: skip


def write(folder: Path, **content: Any) -> Path:
    path = folder / "vectors.json"
    path.write_text(json.dumps({"schema": 1, **content}))
    return path


def everything(folder: Path) -> Path:
    encoding = [
        {"name": f"{op} {i}", "op": op, "input": given, "output": output}
        for i, (op, given, output) in enumerate(ENCODINGS)
    ]
    return write(folder, intersection=[TRIANGLE, IDS, USER, NAN], encoding=encoding)


def test_a_file_passes(tmp_path: Path) -> None:
    vectors = load(everything(tmp_path))
    assert str(run(vectors, "chapter")) == "13 passed, 0 failed, 0 not applicable"
    assert str(run(vectors, "gpurt")) == "12 passed, 0 failed, 1 not applicable"


def test_a_failure_has_both_words(tmp_path: Path) -> None:
    wrong = {**TRIANGLE, "expected": {"kyty": ["0x0"] * 4, "gpurt": None}}
    bad = {"name": "packed", "op": "pointer_pack", "input": {"byte_offset": 128, "type": 5},
           "output": "0x16"}  # fmt: skip
    refused = {**bad, "name": "odd", "input": {"byte_offset": 3, "type": 5}}
    vectors = load(write(tmp_path, intersection=[wrong], encoding=[bad, refused]))
    report = run(vectors, "chapter")
    assert (report.passed, report.not_applicable) == (0, 0)
    assert [str(failure) for failure in report.failures] == [
        "FAIL fan, type 0: expected 00000000 00000000 00000000 00000000, "
        "got c1000000 c0800000 bf800000 bf800000",
        "FAIL packed: expected 0x16, got 0x15",
        'FAIL odd: expected "0x16", got error: byte offset 3 is no multiple of 64',
    ]
    assert str(run(vectors, "gpurt")) == "0 passed, 2 failed, 1 not applicable"


def test_a_nan_never_passes_for_the_invalid_pointer(tmp_path: Path) -> None:
    wrong = {**NAN, "expected": {"kyty": None, "gpurt": ["0xffffffff", "0xc0800000", "0x7fc00000",
                                                         "0x7fc00000"]}}  # fmt: skip
    assert len(run(load(write(tmp_path, intersection=[wrong])), "gpurt").failures) == 1


def test_a_backend_gets_one_batch_of_cases(tmp_path: Path) -> None:
    seen: list[int] = []

    def backend(cases: Cases, rules: Any) -> np.ndarray:
        seen.append(len(cases))
        words = run_on_cpu(cases, rules)
        words[0, 0] ^= np.uint32(1)
        return words

    report = run(load(everything(tmp_path)), "chapter", backend)
    assert seen == [4] and [failure.name for failure in report.failures] == ["fan, type 0"]


def test_pointers_and_backing(tmp_path: Path) -> None:
    cases = load(everything(tmp_path)).cases
    assert cases.pointer_high.tolist() == [0, 0, 0x1000000, 0]
    assert cases.backed.tolist() == [1, 1, 0, 1]


def test_the_file_names_its_models(tmp_path: Path) -> None:
    renamed = {**TRIANGLE, "expected": {"k2": ["0x0"] * 4, "gpurt": None}}
    vectors = load(write(tmp_path, rules={"chapter": "k2"}, intersection=[renamed]))
    assert len(run(vectors, "chapter").failures) == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"schema": 2}, "schema 2"),
        ({"intersection": [{**TRIANGLE, "descriptor": ["0x0"] * 3}]}, "fan, type 0.*3 words"),
        ({"intersection": [{**TRIANGLE, "node_words": ["0x0"] * 33}]}, "33 node words"),
        ({"intersection": [{**TRIANGLE, "node_pointer": "0x10000000000000000"}]}, "64-bit"),
        ({"intersection": [{k: v for k, v in TRIANGLE.items() if k != "ray"}]}, "'ray'"),
        ({"intersection": [{**TRIANGLE, "expected": {"kyty": ["zz"] * 4}}]}, "zz"),
        ({"intersection": [7]}, "vector 0"),
    ],
)
def test_what_is_no_vector_file(tmp_path: Path, content: Any, text: str) -> None:
    with pytest.raises(UserError, match=text):
        load(write(tmp_path, **content))


def test_encodings_that_nobody_knows(tmp_path: Path) -> None:
    unknown = [{"name": "new", "op": "sort_key", "input": {}, "output": 0}]
    with pytest.raises(UserError, match="new: unknown op 'sort_key'"):
        run(load(write(tmp_path, encoding=unknown)), "chapter")
    empty = [{"name": "empty", "op": "pointer_pack", "input": {}, "output": 0}]
    with pytest.raises(UserError, match="empty: bad input"):
        run(load(write(tmp_path, encoding=empty)), "chapter")
    path = tmp_path / "not.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not JSON"):
        load(path)


@pytest.mark.parametrize("rules", RULES)
def test_the_public_vectors(rules: Any) -> None:
    if not SHARED.is_file():
        pytest.skip(f"the public vectors are not here: {SHARED}")
    vectors = load(SHARED)
    report = run(vectors, rules)
    assert report.failures == ()
    assert report.passed + report.not_applicable == len(vectors.names) + len(vectors.encodings)
    assert report.not_applicable == sum(words is None for words in vectors.expected[rules])
