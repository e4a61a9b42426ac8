"""The command that makes an adapter's records: what it runs, and what a step leaves behind."""

import fcntl
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.main import get_command

from benchmarks.card_records import CPU, GPU, Sizes, Step, make_steps, run_step
from benchmarks.committed_records import RECORDS, ROOT
from treeline.cli.commands import app

ASSETS = Path("/models")
NOT_COMMITTED_YET = {
    "fallback-hall",
    "fallback-path-hall-frame",
    "fallback-path-new-probe-hall-frame",
}


def python(program: str, made: str = "made.json") -> Step:
    return Step("it", (sys.executable, "-c", program, "{made}"), made, 10.0)


@pytest.mark.parametrize("sizes", [GPU, CPU], ids=["gpu", "cpu"])
def test_every_command_is_one_that_treeline_takes(sizes: Sizes) -> None:
    command = get_command(app)
    parsed = 0
    for step in make_steps(sizes, ASSETS):
        if step.command[1:3] != ("-m", "treeline"):
            continue
        name, *arguments = (
            part.replace("{made}", "/made").replace("{minutes}", "1") for part in step.command[3:]
        )
        of_name = command.commands[name]
        context = of_name.make_context(name, arguments, resilient_parsing=False)
        parsed += 1
        assert not context.args
    assert parsed >= 12


def test_names_are_those_of_the_committed_records() -> None:
    names = [step.record for step in make_steps(CPU, ASSETS)]
    assert len(set(names)) == len(names)
    committed = {path.stem for path in RECORDS.glob("*.json")}
    tags = ("llvmpipe", "h200")
    missing = {n for n in names if not any(f"{n}-{tag}" in committed for tag in tags)}
    assert missing <= NOT_COMMITTED_YET <= set(names)


def test_a_whole_record_is_put_in_its_place(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; (pathlib.Path(sys.argv[1]) / 'made.json').write_text('{\"a\": 1}')"
    )
    place = tmp_path / "deep" / "it-here.json"
    assert run_step(python(program), place, 10.0) == ""
    assert json.loads(place.read_text()) == {"a": 1}
    assert [path.name for path in place.parent.iterdir()] == ["it-here.json"]


def test_a_failure_says_its_last_line_and_leaves_the_old_record(tmp_path: Path) -> None:
    place = tmp_path / "it-here.json"
    place.write_text("old")
    said = run_step(python("print('first'); raise SystemExit('no such lamp')"), place, 10.0)
    assert said == "exit code 1: no such lamp" and place.read_text() == "old"
    late = (
        "import sys, pathlib; (pathlib.Path(sys.argv[1]) / 'made.json').write_text('{}'); "
        "raise SystemExit('a fault found')"
    )
    assert run_step(python(late), place, 10.0) == "exit code 1: a fault found"
    assert place.read_text() == "old"


# Measures one of three things each time that it is run, and says what is left.
RESUMING = """
import json, pathlib, sys
made = pathlib.Path(sys.argv[1])
(made / "progress").open("a").write("x")
done = len((made / "progress").read_text())
if done == 2:
    raise SystemExit("ended in the middle")
(made / "made.json").write_text(json.dumps({"done": done, "left_out": ["c"][done // 3:]}))
"""


def test_a_step_that_resumes_finds_what_it_left(tmp_path: Path) -> None:
    step = replace(python(RESUMING), resumes=True)
    place, parts = tmp_path / "it-here.json", tmp_path / "it-here.part"
    said = run_step(step, place, 10.0)
    assert said == "1 left out for want of time; the same command goes on with it"
    assert json.loads(place.read_text())["done"] == 1  # what there is can be used
    assert run_step(step, place, 10.0) == "exit code 1: ended in the middle"
    assert json.loads(place.read_text())["done"] == 1 and parts.is_dir()
    assert run_step(step, place, 10.0) == ""
    assert json.loads(place.read_text()) == {"done": 3, "left_out": []} and not parts.exists()


def test_a_step_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    """Whoever started it may have been killed: two would write the same files."""
    step = replace(python("pass"), resumes=True)
    parts = tmp_path / "it-here.part"
    parts.mkdir()
    with open(parts / "log", "w") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        said = run_step(step, tmp_path / "it-here.json", 10.0)
    assert said == f"{parts} is in use: an earlier run of this step has not ended"


def test_a_command_is_told_less_than_its_step_may_take(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; (pathlib.Path(sys.argv[1]) / 'made.json').write_text(sys.argv[2])"
    )
    step = replace(python(program), command=(*python(program).command, "{minutes}"))
    assert run_step(step, tmp_path / "it.json", 60.0) == ""
    assert 0.5 < float((tmp_path / "it.json").read_text()) < 1.0


def test_a_step_out_of_time_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    child = (
        "import time, pathlib\n"
        f"for _ in range(500): pathlib.Path({str(alive)!r}).touch(); time.sleep(0.02)"
    )
    program = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "time.sleep(60)"
    )
    place = tmp_path / "it-here.json"
    assert run_step(python(program), place, 2.0) == "not done within 2 s"
    beat = alive.stat().st_mtime_ns  # it was started
    time.sleep(0.3)
    assert alive.stat().st_mtime_ns == beat and not place.exists()


def test_a_step_ends_with_the_command_that_is_ended(tmp_path: Path) -> None:
    """The step would write the file two seconds after the command was terminated."""
    started, alive = tmp_path / "started", tmp_path / "alive"
    step = (
        f"import time, pathlib; pathlib.Path({str(started)!r}).touch(); time.sleep(2.0); "
        f"pathlib.Path({str(alive)!r}).touch()"
    )
    program = (
        "import sys, pathlib\n"
        "from benchmarks import card_records\n"
        f"step = card_records.Step('it', (sys.executable, '-c', {step!r}), 'made.json', 10.0)\n"
        "card_records.make_steps = lambda sizes, assets: [step]\n"
        f"card_records.main('here', None, '', 1.0, pathlib.Path({str(tmp_path)!r}), False)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    end = time.monotonic() + 30.0
    while not started.exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait(10.0) == 143
    time.sleep(2.0)
    assert not alive.exists()
