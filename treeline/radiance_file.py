"""Linear pictures in files: `.npz` (NumPy) and `.exr` (OpenEXR), with what they are pictures of.

A file of ours carries its facts as JSON: as the array `facts`, or in the EXR header's attribute
`treeline`. Files of other programs have none; of such a picture only the size is known.
"""

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError

F32 = NDArray[np.float32]

SUFFIXES = (".exr", ".npz")
ATTRIBUTE = "treeline"


@dataclass(frozen=True, slots=True)
class RadiancePicture:
    """Linear RGB radiance float32 [height, width, 3], and what it shows (`facts`, may be empty)."""

    pixels: F32
    facts: dict[str, Any] = field(default_factory=dict)


def check_suffix(path: Path) -> None:
    """UserError for a file that is no linear picture by its name, or that needs a library that is
    not there."""
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"a linear picture is {' or '.join(SUFFIXES)}, not {path.name}")
    if path.suffix.lower() == ".exr":
        _openexr()


def save_radiance(path: Path, picture: RadiancePicture) -> None:
    """Writes it, lossless; the caller gives a path inside treeline.outputs. UserError for an
    EXR file that cannot be written."""
    check_suffix(path)
    facts = json.dumps(picture.facts)
    pixels = np.ascontiguousarray(picture.pixels, np.float32)
    if path.suffix.lower() == ".npz":
        np.savez_compressed(path, radiance=pixels, facts=np.array(facts))
        return
    exr = _openexr()
    header = {
        "compression": exr.ZIP_COMPRESSION,
        "type": exr.scanlineimage,
        ATTRIBUTE: facts,
    }
    with exr.File(header, {"RGB": pixels}) as file:
        try:
            file.write(str(path))
        except RuntimeError as error:
            reason = str(error).rpartition(f'"{path}". ')[2]
            raise UserError(f"cannot write {path.name}: {reason}") from error


def load_radiance(path: Path) -> RadiancePicture:
    """UserError for a file that is none of these pictures."""
    check_suffix(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    picture = _load_npz(path) if path.suffix.lower() == ".npz" else _load_exr(path)
    shape = picture.pixels.shape
    if len(shape) != 3 or shape[2] != 3 or 0 in shape:
        raise UserError(f"{path}: a linear picture is [height, width, 3], not {list(shape)}")
    return picture


def _load_npz(path: Path) -> RadiancePicture:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if "radiance" not in arrays:
                raise UserError(f"{path}: no array 'radiance' in it, there are {arrays.files}")
            pixels = np.asarray(arrays["radiance"])
            if pixels.dtype.kind != "f":
                raise UserError(f"{path}: radiance is {pixels.dtype}, not a float")
            facts = _facts(path, str(arrays["facts"])) if "facts" in arrays else {}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: not an .npz file ({error})") from error
    return RadiancePicture(pixels.astype(np.float32), facts)


def _load_exr(path: Path) -> RadiancePicture:
    exr = _openexr()
    try:
        with exr.File(str(path), separate_channels=True) as file:
            channels = file.channels()
            missing = [name for name in "RGB" if name not in channels]
            if missing:
                there = ", ".join(channels)
                raise UserError(f"{path}: no channel {missing[0]} in it, there are {there}")
            pixels = np.stack([channels[name].pixels for name in "RGB"], axis=-1)
            facts = _facts(path, file.header().get(ATTRIBUTE, "{}"))
    except RuntimeError as error:
        raise UserError(f"{path}: not an EXR file ({error})") from error
    return RadiancePicture(pixels.astype(np.float32), facts)


def _facts(path: Path, text: str) -> dict[str, Any]:
    try:
        facts = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: its facts are no JSON ({error})") from error
    if not isinstance(facts, dict):
        raise UserError(f"{path}: its facts are no JSON object")
    return facts


def _openexr() -> Any:
    try:
        import OpenEXR
    except ImportError as error:
        raise UserError(
            "EXR files need OpenEXR: pip install 'treeline[metrics]', or use .npz"
        ) from error
    return OpenEXR
