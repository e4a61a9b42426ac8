"""Static BLASes on disk, so that a scene that was built once opens at once.

An entry is keyed by everything that its bytes follow from: triangles, ids, opacity, build options,
container version, and the sources of the builders. Files are written beside their place and moved
there, so that no reader sees half of one; a checksum finds damaged ones, which are removed and
built again. Past the size limit those used longest ago go first. A folder that cannot be written
is no error: the cache then only misses.
"""

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh import header
from bvh.build import Blas, BuildOptions, BuildStats, build_blas

# Raise it when entries come to follow from something that the key does not have.
CACHE_VERSION = 1
DEFAULT_LIMIT = 2 << 30
_MAGIC = b"TLBLAS01"
_SUFFIX = ".blas"

F32 = NDArray[np.float32]
U32 = NDArray[np.uint32]


def cache_folder() -> Path:
    """`$TREELINE_CACHE`; where that is unset `$XDG_CACHE_HOME/treeline/blas`, or below `~/.cache`
    where that is unset or relative (XDG Base Directory Specification)."""
    own = os.environ.get("TREELINE_CACHE")
    if own:
        return Path(own)
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".cache"
    return base / "treeline" / "blas"


@cache
def source_digest() -> str:
    """SHA-256 of this package's Python and WGSL: no entry outlives a change of a builder."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".wgsl")):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(data)} ".encode())
        digest.update(data)
    return digest.hexdigest()


def blas_key(
    triangles: F32, geometry: U32, primitive: U32, opaque: NDArray[np.bool_], options: BuildOptions
) -> str:
    """SHA-256 of what `build_blas` would be given, in hex."""
    versions = {name: value for name, value in vars(header).items() if name.endswith("VERSION")}
    settings = {
        "cache": CACHE_VERSION,
        "source": source_digest(),
        "container": versions,
        "options": asdict(options),
        "stats": [item.name for item in fields(BuildStats)],
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for values, dtype in (
        (triangles, np.float32),
        (geometry, np.uint32),
        (primitive, np.uint32),
        (opaque, np.uint8),
    ):
        array = np.ascontiguousarray(values, dtype)
        digest.update(array.size.to_bytes(8, "little"))
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@dataclass(slots=True)
class CacheCounts:
    """What happened since the cache was opened."""

    hits: int = 0
    misses: int = 0
    damaged: int = 0
    written: int = 0
    evicted: int = 0
    refused: int = 0  # writes that the file system refused, and entries larger than the limit


class BlasCache:
    """A folder of BLASes of at most `limit_bytes` in total. The folder appears with its first
    entry."""

    def __init__(self, folder: Path | None = None, limit_bytes: int = DEFAULT_LIMIT) -> None:
        self.folder = folder or cache_folder()
        self.limit_bytes = limit_bytes
        self.counts = CacheCounts()

    def build(
        self,
        triangles: F32,
        geometry: U32,
        primitive: U32,
        opaque: NDArray[np.bool_],
        options: BuildOptions,
        build: Callable[..., Blas] = build_blas,
    ) -> Blas:
        """What `build` makes of the same arguments, from the disk where it is there. `stats` are
        those of the build that made it, its time included."""
        key = blas_key(triangles, geometry, primitive, opaque, options)
        found = self.get(key)
        if found is None:
            found = build(triangles, geometry, primitive, opaque, options)
            self.put(key, found)
        return found

    def get(self, key: str) -> Blas | None:
        """The entry; None where there is none, or a damaged one, which is removed."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            self.counts.misses += 1
            return None
        try:
            found = _unpack(data)
        except (ValueError, KeyError, TypeError, OSError, EOFError):
            self.counts.damaged += 1
            self._remove(path)
            return None
        self.counts.hits += 1
        try:
            os.utime(path)
        except OSError:
            pass  # gone or read-only: only its age is lost
        return found

    def put(self, key: str, blas: Blas) -> None:
        """Writes an entry, then makes room."""
        data = _pack(blas)
        if len(data) > self.limit_bytes:
            self.counts.refused += 1
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(name, self._path(key))
            except BaseException:
                self._remove(Path(name))
                raise
        except OSError:
            self.counts.refused += 1
            return
        self.counts.written += 1
        self._make_room(key)

    def clear(self) -> None:
        """Removes every entry."""
        for _, _, path in self._entries():
            self._remove(path)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _entries(self) -> list[tuple[int, int, Path]]:
        """(time of last use in ns, bytes, file) of all entries, oldest first. Parts of writes that
        were cut off count, too."""
        found = []
        try:
            paths = [p for p in self.folder.iterdir() if p.suffix in (_SUFFIX, ".part")]
        except OSError:
            return []
        for path in paths:
            try:
                facts = path.stat()
            except OSError:
                continue  # another process was faster
            found.append((facts.st_mtime_ns, facts.st_size, path))
        return sorted(found)

    def _make_room(self, newest: str) -> None:
        entries = self._entries()
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= self.limit_bytes:
                return
            if path != self._path(newest):
                self._remove(path)
                self.counts.evicted += 1
                total -= size

    def _remove(self, path: Path) -> None:
        try:
            path.unlink()
        except OSError:
            pass


def _pack(blas: Blas) -> bytes:
    facts = {"stats": asdict(blas.stats), "geometry_count": blas.geometry_count}
    arrays: dict[str, Any] = {
        "words": blas.words,
        "parents": blas.parents,
        "bounds": blas.bounds,
        "facts": np.frombuffer(json.dumps(facts).encode(), np.uint8),
    }
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    payload = stream.getbuffer()
    return b"".join([_MAGIC, hashlib.sha256(payload).digest(), payload])


def _unpack(data: bytes) -> Blas:
    start = len(_MAGIC) + hashlib.sha256().digest_size
    payload = memoryview(data)[start:]
    if (
        data[: len(_MAGIC)] != _MAGIC
        or data[len(_MAGIC) : start] != hashlib.sha256(payload).digest()
    ):
        raise ValueError("damaged entry")
    with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
        facts = json.loads(arrays["facts"].tobytes())
        return Blas(
            words=arrays["words"],
            parents=arrays["parents"],
            stats=BuildStats(**facts["stats"]),
            bounds=arrays["bounds"],
            geometry_count=int(facts["geometry_count"]),
        )
