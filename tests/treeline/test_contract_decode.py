"""`treeline contract decode`: the chapter's words, refusals, lookalikes, the matrix."""

import json
from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def test_the_chapter_s_instruction(run: Run) -> None:
    for words in (("F1989F01", "00081014"), ("0xf1989f01", "0x81014")):
        result = run("contract", "decode", *words)
        assert result.exit_code == 0
        text = result.stdout
        assert "image_bvh_intersect_ray opcode 0xE6, 8 bytes" in text
        assert "result v[16:19], descriptor s[32:35], node v20" in text and "supported" in text


def test_a_stream_with_a_literal_that_looks_like_one(run: Run) -> None:
    words = "be8003ff f1989f01 f19c9f01 00081014 bf810000 f1989f01".split()
    data = json.loads(run("contract", "decode", *words, "--json", "-").stdout)
    assert [(i["byte_pc"], i["opcode"]) for i in data["instructions"]] == [(8, "0xE7")]
    assert [(i["byte_pc"], i["role"]) for i in data["lookalikes"]] == [
        (4, "literal"),
        (20, "not reached"),
    ]
    assert len(data["words"]) == len(words)


def test_a_refused_variant_is_decoded_with_its_reason(run: Run) -> None:
    result = run("contract", "decode", "f1989f01", "40010409")
    assert result.exit_code == 0 and "refused: a16 1: " in result.stdout


def test_nothing_found_is_exit_code_1(run: Run) -> None:
    result = run("contract", "decode", "be8003ff", "f1989f01", "bf810000")
    assert result.exit_code == 1
    assert "looks like a BVH instruction and is none (literal)" in result.stdout
    assert "no BVH instruction starts" in result.stderr


def test_bad_words(run: Run, one_line: Callable[[Any, int], str]) -> None:
    assert "'zz'" in one_line(run("contract", "decode", "zz"), 2)
    assert "32 bits" in one_line(run("contract", "decode", "1f1989f01"), 2)
    assert "--matrix" in one_line(run("contract", "decode"), 2)


def test_the_matrix(run: Run) -> None:
    text = run("contract", "decode", "--matrix").stdout
    assert "a16" in text and "refused" in text and "supported" in text
    rows = json.loads(run("contract", "decode", "--matrix", "--json", "-").stdout)
    assert {row["field"] for row in rows} >= {"opcode", "a16", "d16", "r128", "dmask", "nsa"}
