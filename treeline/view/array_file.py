"""Passes a value with large arrays between processes: a file that the receiver maps.

Pickled with its arrays' bytes beside it (PEP 574), so that neither side copies them once more.
Only for files that this program wrote itself a moment ago: unpickling runs what it is told.
"""

import mmap
import pickle
import struct
from pathlib import Path
from typing import Any

ALIGN = 64


def write_value(path: Path, value: Any) -> None:
    """Layout: u64 n; then n u64 sizes, the pickle's and those of n - 1 buffers; then their bytes,
    each at a multiple of ALIGN."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    parts: list[Any] = [head, *(buffer.raw() for buffer in buffers)]
    sizes = [memoryview(part).nbytes for part in parts]
    with path.open("wb") as file:
        file.write(struct.pack(f"<{1 + len(sizes)}Q", len(sizes), *sizes))
        for part in parts:
            file.seek(_aligned(file.tell()))
            file.write(part)


def read_value(path: Path) -> Any:
    """The value; its arrays are writable views of the mapped file, whose changes stay here. The
    file may be unlinked afterwards."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    view = memoryview(mapped)
    (count,) = struct.unpack_from("<Q", view)
    sizes = struct.unpack_from(f"<{count}Q", view, 8)
    at, parts = 8 + 8 * count, []
    for size in sizes:
        at = _aligned(at)
        parts.append(view[at : at + size])
        at += size
    return pickle.loads(parts[0], buffers=parts[1:])


def _aligned(at: int) -> int:
    return -(-at // ALIGN) * ALIGN
