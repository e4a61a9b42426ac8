"""Reading and writing a ray set's `.npz`: whole or not at all, and never trusting what is read.

The keys are documented in `bvh.raysets`. No pickles: a foreign file cannot run code.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from bvh.npz_file import read_npz
from engine.gpu.errors import UserError

FORMAT = "treeline rays"
VERSION = 1

# key -> (dtype, shape after the ray axis)
_PER_RAY: dict[str, tuple[str, tuple[int, ...]]] = {
    "rays": ("float32", (8,)),
    "pixels": ("uint32", ()),
    "expected_t": ("float32", ()),
    "expected_object": ("uint32", ()),
    "expected_primitive": ("uint32", ()),
    "expected_instance": ("uint32", ()),
}
_NUMBERS = ("width", "height", "seed")
_TEXTS = ("kind", "scene_sha256")


def write_arrays(path: str | Path, arrays: dict[str, Any]) -> None:
    """Write to a neighbour file, then rename it over `path`."""
    target = Path(path)
    content: dict[str, Any] = {"format": np.array(FORMAT), "version": np.int64(VERSION)}
    content |= {name: np.asarray(arrays[name], dtype) for name, (dtype, _) in _PER_RAY.items()}
    content |= {name: np.int64(arrays[name]) for name in _NUMBERS}
    content |= {name: np.array(str(arrays[name])) for name in _TEXTS}
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **content)
        os.replace(temporary, target)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        # After Ctrl-C or a full disk nothing half-written is left; after the rename it is gone.
        temporary.unlink(missing_ok=True)


def read_arrays(path: str | Path) -> dict[str, Any]:
    """Every key of a ray set, checked for version, type and shape."""
    arrays: dict[str, Any] = read_npz(Path(path), FORMAT, VERSION, "ray set")
    for name in (*_PER_RAY, *_NUMBERS, *_TEXTS):
        if name not in arrays:
            raise UserError(f"{path}: damaged ray set, key '{name}' is missing")
    count = len(arrays["rays"]) if arrays["rays"].ndim else -1
    for name, (dtype, tail) in _PER_RAY.items():
        array = arrays[name]
        if array.dtype != np.dtype(dtype) or array.shape != (count, *tail):
            raise UserError(f"{path}: key '{name}' is {array.dtype} {array.shape}")
    for name in _NUMBERS:
        if arrays[name].shape != () or arrays[name].dtype.kind not in "iu":
            raise UserError(f"{path}: key '{name}' is not a whole number")
    for name in _TEXTS:
        if arrays[name].shape != () or arrays[name].dtype.kind != "U":
            raise UserError(f"{path}: key '{name}' is not a text")
    return arrays
