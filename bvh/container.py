"""The container: its bytes in a buffer and its file.

A container is a 128-byte header, box nodes depth first from the root at byte 128 (always FP32,
pointer 0x15), then leaf records in the order of the same walk: triangle blocks of 64 bytes in a
BLAS or as many bytes a sphere (version 3), instance nodes of 128 bytes in a TLAS. A BLAS with fans
is of version 2: behind its leaves
stands the table of their primitive ids (its words are in `bvh.layout`), filled up to 64 bytes.
Node pointers count from the container's first byte. A scene buffer is the TLAS container at byte 0
and then the BLAS containers, each at a multiple of 256 bytes. Parent links are a buffer of their
own, one u32 for each 64-byte unit.

| byte | type | field | value |
| --- | --- | --- | --- |
| 0 | u32 | magic | 0x48564254, "TBVH" |
| 4 | u32 | version | 1, with fans 2, of spheres 3 |
| 8 | u32 | kind | 0 BLAS, 1 TLAS |
| 12 | u32 | root pointer | 0x15: FP32 box node at byte 128 |
| 16 | u32 | size | whole container in 64-byte units |
| 20 | u32 | leaf unit | first 64-byte unit of the leaf records |
| 24 | u32 | FP32 nodes | the root included |
| 28 | u32 | FP16 nodes | |
| 32 | u32 | leaves | triangle blocks, spheres or instance nodes |
| 36 | u32 | primitives | triangles, spheres or instances |
| 40 | u32 | geometries | of a BLAS; 0 in a TLAS |
| 44 | u32 | depth | levels of box nodes, 1 = the root alone |
| 48 | f32 x 3 | bounds min | NaN when empty |
| 60 | f32 x 3 | bounds max | NaN when empty |
| 72 | u32 | fan unit | first 64-byte unit of the fan table; 0 without fans |
| 76 | u32 | fans | blocks of three or four triangles |
| 80 | u32 x 4 | descriptor | base >> 8 in the scene buffer, growth 6, sort, exact size, mode 1 |
| 96 | u32 | spheres | all leaves of a version 3, else 0 |
| 100 | u32 x 7 | reserved | 0 |

The file is an uncompressed `.npz`, read without pickle:

| key | dtype, shape | content |
| --- | --- | --- |
| format | str | "treeline-bvh" |
| version | int64 | 1 |
| words | uint32 [k] | the scene buffer |
| parents | uint32 [k / 16] | parent links |
| blas_bases | uint32 [b] | byte offset of each BLAS container |
| blas_names | str [b] | |
| blas_stats | str [b] | JSON object of BuildStats |
| instance_blas, _mask, _first_object, _custom_index, _flags | uint32 [n] | fields of BvhInstance |
| instance_transforms | float64 [n, 4, 4] | object to world |
| instance_names | str [n] | |
| options | str | JSON object of BuildOptions |
| context | str | JSON object that the writer chose, such as the scene's name |
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.build import BuildOptions, BuildStats
from bvh.header import KIND_BLAS, KIND_TLAS, VERSION, unpack_header
from bvh.layout import UNIT_WORDS, InstanceFlags
from bvh.npz_file import read_npz
from bvh.scene_bvh import SceneBvh
from bvh.tlas import BvhInstance
from engine.gpu.errors import UserError

FORMAT = "treeline-bvh"
_INTEGERS = ("blas", "mask", "first_object", "custom_index", "flags")
_SHAPES = {  # key -> (dtype kind, dimensions)
    "words": ("u", 1),
    "parents": ("u", 1),
    "blas_bases": ("u", 1),
    "blas_names": ("U", 1),
    "blas_stats": ("U", 1),
    "instance_transforms": ("f", 3),
    "instance_names": ("U", 1),
    "options": ("U", 0),
    "context": ("U", 0),
    **{f"instance_{name}": ("u", 1) for name in _INTEGERS},
}


def save(path: str | Path, bvh: SceneBvh, context: Mapping[str, Any] | None = None) -> None:
    """Writes the file in one step: it is whole or absent. Missing folders are made; a place that
    cannot be written is a UserError."""
    arrays: dict[str, NDArray[Any]] = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION, np.int64),
        "words": bvh.words,
        "parents": bvh.parents,
        "blas_bases": bvh.blas_bases,
        "blas_names": _texts(bvh.blas_names),
        "blas_stats": _texts([json.dumps(asdict(stats)) for stats in bvh.blas_stats]),
        "instance_transforms": np.array([x.transform for x in bvh.instances], np.float64).reshape(
            -1, 4, 4
        ),
        "instance_names": _texts([x.name for x in bvh.instances]),
        "options": np.array(json.dumps(asdict(bvh.options))),
        "context": np.array(json.dumps(dict(context or {}))),
    }
    for name in _INTEGERS:
        values = [int(getattr(instance, name)) for instance in bvh.instances]
        arrays[f"instance_{name}"] = np.array(values, np.uint32)
    path = Path(path)
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(21, "is a folder")
        handle, temporary = tempfile.mkstemp(prefix=".treeline-", suffix=".npz", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        # mkstemp makes private files; a result gets the permissions of any new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _texts(values: Any) -> NDArray[Any]:
    # An empty list would become float64.
    return np.array(list(values), np.str_) if len(values) else np.empty(0, "U1")


def load(path: str | Path) -> SceneBvh:
    """Reads and checks the file's shape; the bytes of nodes are `validate`'s business. A missing,
    damaged or foreign file is a UserError."""
    arrays = read_npz(Path(path), FORMAT, VERSION, "BVH file")
    try:
        return _assemble(arrays)
    except (ValueError, TypeError, KeyError, UserError) as error:
        raise UserError(f"{path}: damaged BVH file ({error})") from error


def _assemble(arrays: dict[str, NDArray[Any]]) -> SceneBvh:
    for key, (letter, dimensions) in _SHAPES.items():
        if key not in arrays:
            raise ValueError(f"key '{key}' is missing")
        if arrays[key].dtype.kind != letter or arrays[key].ndim != dimensions:
            raise ValueError(f"key '{key}' has type {arrays[key].dtype}, shape {arrays[key].shape}")
    words = np.ascontiguousarray(arrays["words"], np.uint32)
    parents = np.ascontiguousarray(arrays["parents"], np.uint32)
    bases = np.ascontiguousarray(arrays["blas_bases"], np.uint32)
    if len(words) % UNIT_WORDS or len(parents) * UNIT_WORDS != len(words):
        raise ValueError(f"{len(words)} words with {len(parents)} parent links")
    for base, kind in [(0, KIND_TLAS), *((int(b), KIND_BLAS) for b in bases)]:
        header = unpack_header(words[base // 4 :])
        if header.kind != kind or base + header.size_bytes > 4 * len(words):
            raise ValueError(f"container at byte {base} has a wrong kind or size")
    if not len(bases) == len(arrays["blas_names"]) == len(arrays["blas_stats"]):
        raise ValueError("BLAS arrays differ in length")
    transforms = arrays["instance_transforms"].astype(np.float64)
    count = len(transforms)
    if transforms.shape[1:] != (4, 4):
        raise ValueError(f"instance transforms of shape {transforms.shape}")
    columns = [arrays[f"instance_{name}"] for name in _INTEGERS]
    names = arrays["instance_names"]
    if any(len(column) != count for column in [*columns, names]):
        raise ValueError("instance arrays differ in length")
    blas, mask, first, custom, flags = (column.tolist() for column in columns)
    if count and max(blas) >= len(bases):
        raise ValueError(f"an instance of BLAS {max(blas)}, there are {len(bases)}")
    instances = tuple(
        BvhInstance(
            blas=blas[i],
            transform=transforms[i],
            mask=mask[i],
            first_object=first[i],
            custom_index=custom[i],
            flags=InstanceFlags(flags[i]),
            name=str(names[i]),
        )
        for i in range(count)
    )
    stat_names = {field.name for field in fields(BuildStats)}
    needed = {field.name for field in fields(BuildStats) if field.default is MISSING}
    stats = []
    for text in arrays["blas_stats"]:
        record = json.loads(str(text))
        if not needed <= set(record) <= stat_names:
            raise ValueError("build statistics with other fields")
        stats.append(BuildStats(**record))
    return SceneBvh(
        words=words,
        parents=parents,
        blas_bases=bases,
        blas_stats=tuple(stats),
        blas_names=tuple(str(name) for name in arrays["blas_names"]),
        instances=instances,
        options=BuildOptions(**json.loads(str(arrays["options"]))),
    )
