"""What the viewer writes: pictures, the report, a capture of the frame, the camera as text.

Each goes whole or not at all into one folder, under the next free number. Names carry what they
are: treeline-003-window.png, treeline-004-report.json.
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.gpu.errors import UserError
from treeline.capture import capture_frame, save
from treeline.outputs import whole_file
from treeline.pictures import save_png
from treeline.report_csv import report_csv

if TYPE_CHECKING:
    from treeline.view.session import ViewSession

_NUMBERED = re.compile(r"treeline-(\d{3,})-")


def next_path(folder: Path, what: str) -> Path:
    """`treeline-NNN-<what>` in `folder`, after the highest number there."""
    there = folder.iterdir() if folder.is_dir() else ()
    numbers = [int(m[1]) for m in (_NUMBERED.match(path.name) for path in there) if m]
    return folder / f"treeline-{max(numbers, default=0) + 1:03d}-{what}"


def write_picture(path: Path, pixels: Any) -> Path:
    """U8 [h, w, 3] as PNG."""
    with whole_file(path) as place:
        save_png(place, pixels)
    return path


def write_report(path: Path, document: dict[str, Any]) -> Path:
    """report.json's format, and the same as CSV beside it."""
    text = json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    with whole_file(path) as place:
        place.write_text(text, encoding="utf-8")
    with whole_file(path.with_suffix(".csv")) as place:
        place.write_text(report_csv(document), encoding="utf-8")
    return path


def write_capture(path: Path, session: "ViewSession") -> Path:
    """The frame that is shown, for `treeline replay`. UserError where there is no valid one."""
    frame = session.frame
    if frame is None or session.timed is None or not session.timed.valid:
        raise UserError("there is no valid frame to capture")
    taken = capture_frame(
        frame,
        frame.data.rays,
        scene_name=session.scene_name,
        scene_sha256=session.scene.sha256,
    )
    save(path, taken)
    return path
