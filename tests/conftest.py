"""Fixtures that every test shares: seeded random numbers, the shared scenes, one GPU device.

A missing adapter is an error here, not a skip: llvmpipe counts as one, and the set-up installs it.
"""

import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

# Before anything imports PyOpenGL: the raster oracle has no display.
os.environ.setdefault("PYOPENGL_PLATFORM", "egl")

import numpy as np
import pytest

# pyrender still reads the name that numpy 2 removed.
np.infty = np.inf  # type: ignore[attr-defined]  # noqa: NPY201

# Infinity and NaN have to be asked for with np.errstate where they are meant.
np.seterr(over="raise", invalid="raise", divide="raise", under="ignore")

# Commands that keep what they built, started here or as processes, keep it here and not with the
# user's. (XDG_CACHE_HOME would hide the drivers' compiled shaders, too.)
_CACHE = tempfile.TemporaryDirectory(prefix="treeline-cache-")
os.environ["TREELINE_CACHE"] = _CACHE.name

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that are the same on every run and different for every test."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="session")
def shared_scenes() -> Path:
    """The folder of real scenes beside the repository, which are too large to keep in it."""
    folder = ROOT.parent / "shared" / "scenes"
    if not folder.is_dir():
        pytest.skip(f"no real scenes here: {folder} does not exist")
    return folder


@pytest.fixture(scope="session")
def device() -> Any:
    """The one GPU device (and so the one pipeline cache) of the whole test session."""
    from engine.gpu.device import open_device

    return open_device()
