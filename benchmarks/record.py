"""Records of benchmark runs: where their numbers come from, and writing them whole."""

import datetime
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from engine.gpu.device import Device
from treeline.version import commit, version

SCHEMA = 1


def make_context(device: Device) -> dict[str, Any]:
    """What a reader needs to run the same again."""
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": version(),
        "commit": commit(),
        "adapter": device.info.adapter,
        "adapter_type": device.info.adapter_type,
        "backend": device.info.backend,
        "driver": device.info.driver,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Writes the JSON in one step, so that an interrupted run leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(partial, path)
