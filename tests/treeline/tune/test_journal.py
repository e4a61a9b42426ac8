"""A search that was interrupted goes on where it was; a file that is damaged or of something else
is not taken."""

import json
from pathlib import Path
from typing import Any

import pytest

from passes.ray_kernel import RayKernel
from treeline.tune.journal import Journal

KEY = {"adapter": "made up", "scene_sha256": "ab" * 32}
COSTS: dict[str, Any] = {
    "kernel_costs": {("near", RayKernel("on", "one", "16")): 0.8},
    "costs": {("builder", "sah"): 0.9, ("leaf", 4): 0.85},
}


def open_journal(path: Path, said: list[str], key: Any = KEY) -> Journal:
    return Journal.open(path, key, said.append)


@pytest.mark.parametrize("breaks", [0, 1, 7, 12])
@pytest.mark.parametrize("budget_s", [1e9, 14.0])
def test_an_interrupted_search_goes_on_to_the_same_result(
    machine: Any, search: Any, tmp_path: Path, breaks: int, budget_s: float
) -> None:
    whole = machine(**COSTS)
    s = search(whole.measure, budget_s)
    expected = s.run()
    path, said = tmp_path / "p.json.state", []
    broken = machine(**COSTS, breaks=breaks)
    with pytest.raises(KeyboardInterrupt):
        search(open_journal(path, said).remembering(broken.measure), budget_s).run()
    rest = machine(**COSTS)
    journal = open_journal(path, said)
    again = search(journal.remembering(rest.measure), budget_s)
    assert again.run() == expected
    assert (journal.used, journal.measured) == (breaks, len(whole.blocks) - breaks)
    assert broken.blocks + rest.blocks == whole.blocks
    assert again.tried == s.tried and again.spent_s == s.spent_s
    assert said == ([f"{path}: goes on from {breaks} measured blocks"] if breaks else [])
    idle = machine(**COSTS)
    assert search(open_journal(path, said).remembering(idle.measure), budget_s).run() == expected
    assert idle.blocks == []


@pytest.fixture
def state(machine: Any, search: Any, tmp_path: Path) -> Path:
    path = tmp_path / "p.json.state"
    search(open_journal(path, []).remembering(machine(**COSTS).measure), 5.0).run()
    return path


def damage(path: Path, change: str) -> None:
    data = json.loads(path.read_text())
    block = next(iter(data["blocks"].values()))
    if change == "cut":
        path.write_text(path.read_text()[:-200])
        return
    if change == "a list":
        data = []
    elif change == "a time is lost":
        block["results"][1]["ms"]["near"].pop()
    elif change == "a time is negative":
        block["results"][1]["ms"]["near"][0] = -1.0
    elif change == "seconds are text":
        block["seconds"] = "1"
    elif change == "a count is lost":
        block["results"][1]["costs"].pop("build_ms")
    elif change == "a refused case without costs":
        block["results"][1] = {"ms": {}, "hits": {}, "refused": "too large"}
    elif change == "no blocks":
        del data["blocks"]
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    "change",
    [
        "cut",
        "a list",
        "a time is lost",
        "a time is negative",
        "seconds are text",
        "a count is lost",
        "a refused case without costs",
        "no blocks",
    ],
)
def test_a_damaged_state_is_put_aside(state: Path, change: str) -> None:
    damage(state, change)
    damaged, said = state.read_bytes(), []
    assert open_journal(state, said).blocks == {}
    assert said == [
        f"{state} is damaged: put aside as p.json.state.damaged, the search begins anew"
    ]
    assert state.with_name("p.json.state.damaged").read_bytes() == damaged
    assert not state.exists()


def test_a_state_of_something_else_is_not_taken(state: Path) -> None:
    said: list[str] = []
    other = open_journal(state, said, {**KEY, "adapter": "another"})
    assert other.blocks == {}
    assert said == [f"{state} is of another adapter: the search begins anew"]
    assert len(open_journal(state, []).blocks) > 0
