"""Decoding the two instructions, and telling their starts from words that look like them.

Encodings marked "assembler" are what LLVM 14's gfx1030 assembler emits; the rest are the chapter's.
"""

from dataclasses import replace

import pytest

from bvh.contract.mimg import VARIANTS, decode, is_bvh_word, operand_map, operand_names, refusals
from bvh.contract.program import Role, scan
from engine.gpu.errors import UserError

CONTIGUOUS = [0xF1989F01, 0x00081014]
WIDE = [0xF19C9F01, 0x00081014]
SCATTERED = [0xF1989F07, 0x00071001, 0x3D3E3C15, 0x38095851, 0x00003A39]
# image_bvh_intersect_ray v[4:7], [v50, v46, v23, v17, v16, v15, v21, v20, v19, v37, v40], s[12:15]
ASSEMBLER_NSA = [0xF1989F07, 0x0003_0432, 0x1011172E, 0x1314150F, 0x00002825]
# image_bvh_intersect_ray v[4:7], v[9:16], s[4:7] a16
ASSEMBLER_A16 = [0xF1989F01, 0x40010409]
# image_bvh64_intersect_ray v[4:7], [v50, v46, v23, v17, v16, v15, v21, v20, v19], s[12:15] a16
ASSEMBLER_A16_NSA = [0xF19C9F05, 0x40030432, 0x1011172E, 0x1314150F]
END = 0xBF810000


@pytest.mark.parametrize(
    ("words", "opcode", "nsa", "size", "first"),
    [(CONTIGUOUS, 0xE6, 0, 8, 0x14), (WIDE, 0xE7, 0, 8, 0x14), (SCATTERED, 0xE6, 3, 20, 1)],
)
def test_the_chapter_s_encodings(
    words: list[int], opcode: int, nsa: int, size: int, first: int
) -> None:
    found = decode(words)
    assert (found.opcode, found.nsa, 4 * found.word_count) == (opcode, nsa, size)
    assert (found.dmask, found.r128, found.unrm, found.dim) == (0xF, 1, 1, 0)
    assert (found.a16, found.d16, found.tfe, found.lwe) == (0, 0, 0, 0)
    assert found.registers[0] == first and len(found.registers) == len(operand_names(opcode))
    assert refusals(found) == []


def test_operand_maps() -> None:
    found = operand_map(decode(CONTIGUOUS))
    assert found["result"] == "v[16:19]" and found["descriptor"] == "s[32:35]"
    assert (found["node"], found["extent"], found["inverse.z"]) == ("v20", "v21", "v30")
    wide = operand_map(decode(WIDE))
    assert (wide["node.low"], wide["node.high"], wide["inverse.z"]) == ("v20", "v21", "v31")
    scattered = decode(SCATTERED)
    assert scattered.registers == (1, 21, 60, 62, 61, 81, 88, 9, 56, 57, 58)


def test_the_assembler_s_registers() -> None:
    found = decode(ASSEMBLER_NSA)
    assert found.registers == (50, 46, 23, 17, 16, 15, 21, 20, 19, 37, 40)
    assert (found.result_registers, found.descriptor_registers) == (range(4, 8), range(12, 16))
    packed = decode(ASSEMBLER_A16)
    assert packed.a16 == 1 and packed.registers == tuple(range(9, 17))
    both = decode(ASSEMBLER_A16_NSA)
    assert both.registers == (50, 46, 23, 17, 16, 15, 21, 20, 19)
    assert [reason.split(":")[0] for reason in refusals(both)] == ["a16 1", "nsa 2"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"a16": 1}, "a16 1"),
        ({"d16": 1}, "d16 1"),
        ({"r128": 0}, "r128 0"),
        ({"dmask": 0x7}, "dmask 7"),
        ({"dmask": 0x0}, "dmask 0"),
        ({"nsa": 1}, "nsa 1"),
        ({"nsa": 2}, "nsa 2"),
        ({"unrm": 0}, "unrm 0"),
        ({"dim": 1}, "dim 1"),
        ({"lwe": 1}, "lwe 1"),
        ({"tfe": 1}, "tfe 1"),
        ({"vdata": 253}, "result registers"),
        ({"registers": tuple(range(250, 261))}, "address registers"),
    ],
)
def test_each_refused_variant_says_why(change: dict, reason: str) -> None:
    found = refusals(replace(decode(CONTIGUOUS), **change))
    assert len(found) == 1 and found[0].startswith(reason) and len(found[0]) > len(reason) + 5


def test_the_matrix_decides_every_value_once() -> None:
    widths = {"opcode": 2, "dmask": 16, "dim": 8, "nsa": 4}
    for field in {variant.field for variant in VARIANTS}:
        values = [value for v in VARIANTS if v.field == field for value in v.values]
        assert len(values) == len(set(values)) == widths.get(field, 2), field
    assert all(variant.reason for variant in VARIANTS if not variant.supported)


def test_what_is_none_of_the_two_is_refused() -> None:
    image_sample = 0xF0800F08
    assert not is_bvh_word(image_sample)
    for words in ([], [image_sample, 0], [END]):
        with pytest.raises(UserError, match="starts no BVH instruction"):
            decode(words)
    with pytest.raises(UserError, match="5 words, 4"):
        decode(SCATTERED[:4])


# Assembler output with 0xF1989F01 as its last word, or near it: none is a BVH instruction.
LOOKALIKES = {
    "s_mov_b32 s0, lit": ([0xBE8003FF, 0xF1989F01], Role.LITERAL),
    "s_add_u32 s0, s1, lit": ([0x8000FF01, 0xF1989F01], Role.LITERAL),
    "s_cmp_eq_u32 s0, lit": ([0xBF06FF00, 0xF1989F01], Role.LITERAL),
    "s_setreg_imm32_b32": ([0xBA80F801, 0xF1989F01], Role.LITERAL),
    "v_add_f32 v0, lit, v1": ([0x060002FF, 0xF1989F01], Role.LITERAL),
    "v_cmp_eq_u32 vcc_lo, lit, v1": ([0x7D8402FF, 0xF1989F01], Role.LITERAL),
    "v_fmamk_f32 v0, v1, lit, v2": ([0x58000501, 0xF1989F01], Role.LITERAL),
    "v_fmaak_f16 v0, v1, v2, lit": ([0x70000501, 0xF1989F01], Role.LITERAL),
    "v_fma_f32 v0, v1, lit, v2": ([0xD54B0000, 0x0409FF01, 0xF1989F01], Role.LITERAL),
    "scattered register word": (
        [0xF1989F07, 0x00071001, 0xF1989F01, 0x38095851, 0x00003A39], Role.REST,
    ),
    "s_load_dwordx4 offset word": ([0xF4080100, 0xF1989F01], Role.REST),
    "buffer_store_dword second word": ([0xE0700000, 0xF1989F01], Role.REST),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKALIKES)
def test_false_positives(name: str) -> None:
    words, role = LOOKALIKES[name]
    found = scan([*words, *CONTIGUOUS, END])
    at = words.index(0xF1989F01)
    assert found.roles[at] == role
    assert found.lookalikes == (at,)
    assert [index for index in found.found if index >= len(words)] == [len(words)]


@pytest.mark.parametrize(
    "words",
    [
        [0x060004FA, 0xFF00E401],  # v_add_f32_dpp quad_perm
        [0x060004F9, 0x06051601],  # v_add_f32_sdwa
        [0x7E0002E9, 0x05397701],  # v_mov_b32_dpp dpp8
        [0x060004EA, 0x05397701],  # v_add_f32_dpp dpp8 fi
        [0xDC308000, 0x017D0002],  # global_load_dword
        [0xD8D80000, 0x01000002],  # ds_read_b32
        [0xF800080F, 0x03020100],  # exp mrt0
        [0xE8B00000, 0x80010100],  # tbuffer_load_format_x
        [0xF0800F08, 0x00000000],  # image_sample
        [0xCC0E4000, 0x1BCA0501],  # v_pk_fma_f16
        [0xC8000001],  # v_interp_p1_f32
        [0xB0000010],  # s_movk_i32
        [0xBE801F00],  # s_getpc_b64
    ],
)
def test_lengths_of_other_encodings(words: list[int]) -> None:
    found = scan([*words, *CONTIGUOUS, END])
    assert list(found.found) == [len(words)]
    assert found.roles[: len(words)].count(Role.START) == 1


def test_a_program_with_stores_and_data_behind_its_end() -> None:
    store = [0xE0700000, 0x80010100]
    words = [0xBE8003FF, 0xF1989F01, *CONTIGUOUS, *store, *SCATTERED, *store, END, *CONTIGUOUS]
    found = scan(words)
    assert {at: item.nsa for at, item in found.found.items()} == {2: 0, 6: 3}
    assert found.lookalikes == (1, 14)
    assert found.roles[14] == Role.UNREACHED and found.notes == ()


def test_branches_are_followed_and_data_between_is_not() -> None:
    jump_over_data = 0xBF820002  # s_branch 2
    found = scan([jump_over_data, *CONTIGUOUS, *WIDE, END])
    assert list(found.found) == [3] and found.lookalikes == (1,)
    loop = 0xBF85FFFD  # s_cbranch_scc1 -3
    assert list(scan([*CONTIGUOUS, loop, END]).found) == [0]
    call = [0xBE802102]  # s_swappc_b64: returns, its target is unknown
    assert list(scan([*call, *CONTIGUOUS, END]).found) == [1]
    assert "indirect" in scan([*call, *CONTIGUOUS, END]).notes[0]
    leave = [0xBE802000]  # s_setpc_b64
    assert scan([*leave, *CONTIGUOUS]).found == {}
    into_operand = [0xBF850001, *CONTIGUOUS, END]  # s_cbranch_scc1 1
    assert any("operand word" in note for note in scan(into_operand).notes)


def test_streams_that_make_no_sense_end_with_a_note() -> None:
    assert "no RDNA2 encoding" in scan([0xC4000000]).notes[0]
    assert "cut off" in scan(SCATTERED[:3]).notes[0]
    assert "leaves" in scan([0xBF820010]).notes[0]
    assert scan([]).found == {}
