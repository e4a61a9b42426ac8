"""Runs the checks of the faults in engine/gpu/faults.py, through each path on its own.

A path that may end the process or lose the device runs in a process of its own, and so does one
that slows its process down: `python -m treeline.fault_checks FAULT PATH [ADAPTER]` prints what it
found as JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.gpu.errors import UserError
from engine.gpu.faults import FAULTS, SWITCH, Fault
from treeline.fault_paths import PATHS, Outcome, Path

TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Result:
    fault: Fault
    path: str
    is_workaround: bool
    outcome: Outcome

    @property
    def text(self) -> str:
        """In one word, for people."""
        if self.outcome.works is None:
            return "NOT TRIED"
        if self.is_workaround:
            return "PASS" if self.outcome.works else "FAIL"
        return "no fault" if self.outcome.works else "FAULT"


def check_all(adapter: str | None) -> Iterator[Result]:
    """Every path of every fault, as it ends. AdapterError where there is no such adapter."""
    for fault in FAULTS:
        paths = PATHS[fault.name]
        for path in paths:
            own = path.isolated
            outcome = run_isolated(fault, path, adapter) if own else path.run(adapter)
            yield Result(fault, path.name, path is paths[-1], outcome)


def fault_facts(results: list[Result]) -> list[Mapping[str, Any]]:
    """A fault each, with its paths, in JSON's types."""
    return [
        {
            "name": fault.name,
            "drivers": fault.drivers,
            "symptom": fault.symptom,
            "workaround": fault.workaround,
            "where": list(fault.where),
            "paths": [
                {"path": r.path, "is_workaround": r.is_workaround, **asdict(r.outcome)}
                for r in results
                if r.fault is fault
            ],
        }
        for fault in FAULTS
    ]


def run_isolated(fault: Fault, path: Path, adapter: str | None) -> Outcome:
    """The path in a process of its own, whose end without an answer is an outcome, too."""
    words = [sys.executable, "-m", "treeline.fault_checks", fault.name, path.name]
    # A check goes the way that it names, whatever is turned off.
    environment = {key: value for key, value in os.environ.items() if key != SWITCH}
    try:
        done = subprocess.run(
            [*words, *([adapter] if adapter is not None else [])],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(False, f"did not end within {TIMEOUT_S:g} s")
    if done.returncode < 0:
        return Outcome(False, f"the process was ended by signal {-done.returncode}")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        return Outcome(found["works"], found["detail"])
    except (IndexError, KeyError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return Outcome(False, f"exit code {done.returncode}: {last}")


def main(words: list[str]) -> int:
    """Runs one path in this process."""
    fault, name, *adapter = words
    path = next(p for p in PATHS[fault] if p.name == name)
    try:
        outcome = path.run(adapter[0] if adapter else None)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(asdict(outcome)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
