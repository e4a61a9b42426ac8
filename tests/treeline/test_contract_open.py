"""`treeline contract open`: a dump that no code here wrote, its exports, its faults, a ray."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]
OneLine = Callable[[Any, int], str]
BASE = 0x1234_5600
INVALID = 0xFFFFFFFF
DESCRIPTOR = ("00123456", "83000000", "00000005", "81000000")


def dump_words() -> np.ndarray:
    """By hand: an FP32 root at unit 0 with an FP16 box (unit 2) and a pair of triangles (unit 4)
    and a user node (unit 5 would be too short, so unit 3 as type 7); odd bits in unread words."""
    words = np.zeros(16 * 6, np.uint32)
    f32 = words.view(np.float32)
    words[0:4] = [2 << 3 | 4, 4 << 3 | 1, 3 << 3 | 7, INVALID]
    f32[4:10] = [-4, -1, -1, -2, 1, 1]
    f32[10:16] = [0, 0, 0, 1, 1, 0]
    f32[16:22] = [2, -1, -1, 3, 1, 1]
    words[22:28] = 0x7FC00000
    words[28:32] = [0, 7, 0xDEADBEEF, 0]
    words[32:36] = [5 << 3 | 0, INVALID, INVALID, INVALID]
    words[36:39] = [0xBC00_C400, 0xC000_BC00, 0x3C00_3C00]  # -4 -1 -1 to -2 1 1
    words[39:48] = 0x7E007E00
    words[48:64] = np.arange(16) + 0x5000
    f32[64:76] = [0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0]
    words[76:80] = [0x0100_0003, 10, 11, 0x0404_0909]
    f32[80:89] = [-4, -1, -1, -2, -1, -1, -3, 1, 1]
    words[95] = 9
    return words


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.bin"
    dump_words().astype("<u4").tofile(path)
    return path


def opened(run: Run, path: Path, *more: object, root: str = "5") -> Any:
    return run("contract", "open", path, "--descriptor", *DESCRIPTOR, "--root", root, *more)


def test_what_is_in_it(run: Run, dump: Path) -> None:
    data = json.loads(opened(run, dump, "--json", "-").stdout)
    assert data["nodes"] == {
        "triangle 0": 1, "triangle 1": 1, "FP16 box": 1, "FP32 box": 1, "procedural": 1,
    }  # fmt: skip
    assert data["descriptor"]["base"] == "0x12345600" and data["descriptor"]["growth"] == 6
    assert data["depth"] == 3 and data["bounds"] == [[-4, -1, -1], [3, 1, 1]]
    assert data["address_range"] == ["0x12345600", f"0x{BASE + 6 * 64:x}"]
    assert data["faults"] == []
    labels = {(row["node"], row["field"]): row["label"] for row in data["fields"]}
    assert labels["FP32 box", "children"] == "observed"
    kept = {(row["byte"], row["word"]) for row in data["unread_bits"] if row["node"] == "FP32 box"}
    assert kept == {(116, "00000007"), (120, "deadbeef")}


def test_as_text(run: Run, dump: Path) -> None:
    result = opened(run, dump)
    assert result.exit_code == 0
    for part in ("FP16 box", "observed", "deadbeef", "no fault", "3 levels"):
        assert part in result.stdout


def test_exports(run: Run, dump: Path, tmp_path: Path) -> None:
    assert opened(run, dump, "--export", tmp_path / "d.npz", "-q").exit_code == 0
    with np.load(tmp_path / "d.npz", allow_pickle=False) as data:
        assert data["pointers"].tolist() == [5, 0x14, 0x21, 0x1F, 0x28]
        assert data["file_offsets"].tolist() == [0, 128, 256, 192, 320]
        # The bytes come back: each node's words lie where the file has them.
        back = np.zeros(96, np.uint32)
        sizes = {5: 32}
        for at, kind, words in zip(data["file_offsets"], data["kinds"], data["words"], strict=True):
            size = sizes.get(int(kind), 16)
            back[at // 4 : at // 4 + size] = words[:size]
        assert (back == dump_words()).all()
        assert data["triangle_pointers"].tolist() == [0x20, 0x21, 0x28]
        assert data["triangles"].shape == (3, 3, 3)
    assert opened(run, dump, "--export", tmp_path / "d.obj", "-q").exit_code == 0
    lines = (tmp_path / "d.obj").read_text().splitlines()
    assert sum(line.startswith("f ") for line in lines) == 3
    assert sum(line.startswith("v ") for line in lines) == 9


@pytest.mark.parametrize("rules", ["chapter", "gpurt"])
def test_a_ray(run: Run, dump: Path, rules: str) -> None:
    arguments = ("--trace", "0.25,0.25,1", "0,0,-1", "--rules", rules)
    result = opened(run, dump, *arguments)
    assert result.exit_code == 0, result.output
    assert "node 5 (FP32 box) at 0x12345600: 00000021" in result.stdout
    assert "hit: t 1, u 0.25, v 0.25, node 20; 3 instructions, stack empty" in result.stdout
    steps = json.loads(opened(run, dump, *arguments, "--json", "-").stdout)["trace"]["steps"]
    assert [step["node_pointer"] for step in steps] == ["0x5", "0x21", "0x20"]


def test_a_ray_that_meets_a_user_node_ends_there(run: Run, dump: Path) -> None:
    result = opened(run, dump, "--trace", "2.5,0,5", "0,0,-1")
    assert result.exit_code == 1
    assert "a node that this walk cannot enter" in result.stdout


def test_the_first_fault_stands_first(run: Run, tmp_path: Path) -> None:
    words = dump_words()
    words[32] = 0x1000
    path = tmp_path / "bad.bin"
    words.astype("<u4").tofile(path)
    result = opened(run, path)
    assert result.exit_code == 1
    fault = next(line for line in result.stdout.splitlines() if line.startswith("fault"))
    assert "node 0x1000 at 0x12345680" in fault and "file offset 128" in fault
    data = json.loads(opened(run, path, "--json", "-").stdout)
    assert data["faults"][0]["words"][0] == "00001000"


def test_another_base_and_a_page_table(run: Run, dump: Path, tmp_path: Path) -> None:
    padded = tmp_path / "padded.bin"
    padded.write_bytes(bytes(256) + dump.read_bytes())
    assert opened(run, padded, "--base", f"{BASE - 256:x}").exit_code == 0
    table = tmp_path / "pages.txt"
    table.write_text(f"0x{BASE:x} 256 256\n0x{BASE + 256:x} 512 128\n")
    assert opened(run, padded, "--pages", table).exit_code == 0
    table.write_text(f"0x{BASE:x} 256 256\n0x{BASE + 256:x} - 128\n")
    result = opened(run, padded, "--pages", table)
    assert result.exit_code == 1 and "has not arrived" in result.stdout


def test_mistakes(run: Run, dump: Path, tmp_path: Path, one_line: OneLine) -> None:
    wrong = ("00123456", "83000000", "00000005", "01000000")
    result = run("contract", "open", dump, "--descriptor", *wrong, "--root", "5")
    assert "type 0" in one_line(result, 2)
    assert "none.bin" in one_line(opened(run, tmp_path / "none.bin"), 2)
    assert ".npz or .obj" in one_line(opened(run, dump, "--export", "x.ply"), 2)
    assert "X,Y,Z" in one_line(opened(run, dump, "--trace", "1,2", "0,0,1"), 2)
    assert "'q'" in one_line(opened(run, dump, root="q"), 2)
    (tmp_path / "short.bin").write_bytes(b"abc")
    assert "64-byte block" in one_line(opened(run, tmp_path / "short.bin"), 2)


def test_our_own_structure_is_entered_on_demand(run: Run, tmp_path: Path, box: Path) -> None:
    from bvh.container import load

    saved = tmp_path / "box_bvh.npz"
    assert run("build", "--scene", box, "--out", saved, "-q").exit_code == 0
    words = load(saved).words
    path = tmp_path / "own.bin"
    words.astype("<u4").tofile(path)
    size = f"{len(words) // 16 - 1:x}"
    command = ("contract", "open", path, "--descriptor", "0", "83000000", size, "81000000")
    ray = ("--root", "15", "--trace", "0.1,1,9", "0,0,-1")
    assert "cannot enter" in run(*command, *ray).stdout
    result = run(*command, *ray, "--enter-instances")
    assert result.exit_code == 0, result.output
    assert "entered instance 0" in result.stdout and "hit: t " in result.stdout
