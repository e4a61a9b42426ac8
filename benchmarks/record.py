"""Records of benchmark runs: where their numbers come from, and writing them whole."""

import json
import os
from pathlib import Path
from typing import Any

from engine.gpu.device import Device
from engine.scene.scene import Scene
from treeline.report_context import device_context


def make_context(device: Device) -> dict[str, Any]:
    """What a reader needs to run the same again; the same as in reports."""
    return device_context(device)


def frame_context(
    device: Device, scene: Path | None, loaded: Scene, width: int, height: int
) -> dict[str, Any]:
    """`make_context` and what is drawn: the scene (none: the hall), its hash, the picture size."""
    return {
        **make_context(device),
        "scene": "hall" if scene is None else scene.name,
        "scene_sha256": loaded.sha256,
        "width": width,
        "height": height,
    }


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
