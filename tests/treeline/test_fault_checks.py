"""`doctor --faults`: what each path did, also where it took its process with it."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from engine.gpu.faults import FAULT_BY_NAME, FAULTS, SWITCH
from treeline import fault_checks
from treeline.fault_checks import Result, run_isolated
from treeline.fault_paths import PATHS, Outcome, Path


def test_every_fault_has_a_faulty_path_and_a_workaround() -> None:
    assert list(PATHS) == [fault.name for fault in FAULTS]
    assert all(len(paths) >= 2 for paths in PATHS.values())
    assert all(len({p.name for p in paths}) == len(paths) for paths in PATHS.values())


@pytest.mark.parametrize("name", [n for n, paths in PATHS.items() if not paths[-1].isolated])
def test_workarounds_that_need_no_process_work_here(name: str) -> None:
    assert PATHS[name][-1].run(None).works


def test_a_window_without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    # imgui-bundle, imported by a test before, names its own GLFW here, which does not abort.
    monkeypatch.delenv("PYGLFW_LIBRARY", raising=False)
    fault = FAULT_BY_NAME["window-abort"]
    at_once, asked = (run_isolated(fault, path, None) for path in PATHS[fault.name])
    assert at_once.works is False and "signal 6" in at_once.detail
    assert asked.works and "no display" in asked.detail


@pytest.mark.parametrize(
    "code,works,detail",
    [
        ("import os; os.abort()", False, "ended by signal 6"),
        ("raise SystemExit('no adapter')", False, "exit code 1: no adapter"),
        ("print('{}')", False, "exit code 0: no output"),
        ('print(\'noise\'); print(\'{"works": null, "detail": "none"}\')', None, "none"),
        ("import time; time.sleep(60)", False, "did not end within 2 s"),
    ],
)
def test_how_a_process_ends_is_an_outcome(
    code: str, works: bool | None, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fault_checks.subprocess.run

    def other(words: list[str], **options: Any) -> Any:
        assert words[1:3] == ["-m", "treeline.fault_checks"] and words[-1] == "llvm"
        assert SWITCH not in options["env"]
        return run([sys.executable, "-c", code], **options)

    monkeypatch.setenv(SWITCH, "contraction")
    monkeypatch.setattr(fault_checks.subprocess, "run", other)
    monkeypatch.setattr(fault_checks, "TIMEOUT_S", 2.0)
    found = run_isolated(FAULTS[0], PATHS[FAULTS[0].name][0], "llvm")
    assert found.works is works and detail in found.detail


def test_the_process_runs_one_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert fault_checks.main(["bindings-above-limit", "guaranteed number"]) == 0
    assert json.loads(capsys.readouterr().out)["works"] is True
    assert fault_checks.main(["contraction", "barrier", "no such adapter"]) == 3
    assert "no adapter matches" in capsys.readouterr().err


@pytest.mark.parametrize("workaround,exit_code", [(True, 0), (False, 1), (None, 0)])
def test_the_command(
    workaround: bool | None,
    exit_code: int,
    run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    device: Any,
) -> None:
    fault = FAULT_BY_NAME["late-timestamps"]
    known = ", known" if fault.expected_on(str(device.info)) else ""
    results = [
        Result(fault, "timestamps", False, Outcome(False, "0%")),
        Result(fault, "wall clock", True, Outcome(workaround, "100%")),
    ]
    monkeypatch.setattr(fault_checks, "check_all", lambda adapter: iter(results))
    monkeypatch.setenv(SWITCH, "contraction")
    shown = run("doctor", "--faults")
    assert shown.exit_code == exit_code
    lines = shown.stdout.splitlines()
    assert lines[1].split() == f"late-timestamps: timestamps FAULT{known} (0%)".split()
    word = {True: "PASS", False: "FAIL", None: "NOT TRIED"}[workaround]
    assert lines[2].split() == f"late-timestamps: wall clock {word} (100%)".split()
    assert "turned off: contraction" in shown.stderr
    answer = json.loads(run("doctor", "--faults", "--json", "-", "--quiet").stdout)
    assert answer["turned_off"] == ["contraction"] and len(answer["faults"]) == len(FAULTS)
    paths = {item["name"]: item["paths"] for item in answer["faults"]}
    assert [p["works"] for p in paths["late-timestamps"]] == [False, workaround]
    monkeypatch.setenv(SWITCH, "nothing")
    assert run("doctor", "--faults").exit_code == 2


def test_paths_run_where_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(adapter: str | None) -> Outcome:
        return Outcome(True, str(os.getpid()))

    both = (Path("a", here), Path("b", here, isolated=True))
    monkeypatch.setattr(fault_checks, "PATHS", dict.fromkeys(PATHS, both))
    monkeypatch.setattr(fault_checks, "run_isolated", lambda *a: Outcome(False, "elsewhere"))
    found = list(fault_checks.check_all(None))
    assert [(r.path, r.is_workaround, r.text) for r in found[:2]] == [
        ("a", False, "no fault"),
        ("b", True, "FAIL"),
    ]
    assert len(found) == 2 * len(FAULTS)
