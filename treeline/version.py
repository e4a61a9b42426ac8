"""Which treeline this is: the package's version and, in a git checkout, its commit."""

import subprocess
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version() -> str:
    try:
        return metadata.version("treeline")
    except metadata.PackageNotFoundError:
        return "not installed"


def commit() -> str:
    """The checkout's commit, with "-modified" where tracked files differ from it; "unknown"
    outside a checkout."""
    if not (ROOT / ".git").exists():
        return "unknown"
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=-modified"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"
