"""Which treeline this is: the package's version and, in a git checkout, its commit."""

import os
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version() -> str:
    try:
        return metadata.version("treeline")
    except metadata.PackageNotFoundError:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        return str(project["project"]["version"])


def commit() -> str:
    """The checkout's commit, with "-modified" where tracked files differ from it. Where git knows
    none, what TREELINE_COMMIT says (a copy of the tree on another machine), else "unknown"."""
    told = os.environ.get("TREELINE_COMMIT", "unknown")
    if not (ROOT / ".git").exists():
        return told
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=-modified"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or told
