"""The winner against the default in a process of its own, where nothing of the search is left."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.gpu.errors import CheckFailed
from treeline.tune.blocks import Block, gain

ROOT = Path(__file__).resolve().parents[2]


def confirmation(block: Block) -> dict[str, Any]:
    """Of a block of two cases, the default and another: gain of each ray type and of all, or why
    the other is none."""
    default, tuned = block.results
    if tuned.refused:
        return {"refused": tuned.refused}

    def facts(ray: str | None) -> dict[str, Any]:
        found = gain(tuned, default, ray).facts()
        for name, item in (("default_ms", default), ("tuned_ms", tuned)):
            values = [item.ms[ray]] if ray else list(item.ms.values())
            found[name] = sum(sorted(v)[len(v) // 2] for v in values)
        return found

    return {
        "total": facts(None),
        "rays": {ray: facts(ray) for ray in default.ms},
        "hits": {ray: hits.facts() for ray, hits in tuned.hits.items()},
        "costs": {"default": dict(default.costs), "tuned": dict(tuned.costs)},
    }


def confirm_apart(profile: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """`treeline tune --confirm` of the profile, with these further words, and what it found.
    CheckFailed where it failed."""
    with tempfile.TemporaryDirectory(prefix="treeline-tune-") as folder:
        path = Path(folder) / "profile.json"
        path.write_text(json.dumps(profile), encoding="utf-8")
        command = [sys.executable, "-m", "treeline", "tune", "--confirm", str(path)]
        command += ["--json", "-", "--quiet", *words]
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CheckFailed(f"the winner could not be confirmed in a process of its own: {last}")
    found = json.loads(done.stdout)
    if "refused" in found:
        raise CheckFailed(f"the winner does not hold in a process of its own: {found['refused']}")
    return dict(found)
