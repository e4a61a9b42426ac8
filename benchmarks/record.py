"""Records of benchmark runs: where their numbers come from, and writing them whole."""

import json
import os
from pathlib import Path
from typing import Any

from engine.gpu.device import Device
from treeline.report_context import device_context


def make_context(device: Device) -> dict[str, Any]:
    """What a reader needs to run the same again; the same as in reports."""
    return device_context(device)


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Writes the JSON in one step, so that an interrupted run leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


def put_out(record: dict[str, Any], path: Path | None) -> None:
    """Writes the record, or prints it where there is no path."""
    if path:
        write_record(path, record)
    else:
        print(json.dumps(record, indent=1))
