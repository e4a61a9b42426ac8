"""One buffer for a whole scene: the TLAS container, then every BLAS container.

Bases are 256-byte aligned, as the descriptor stores them; the gaps are zero. Node pointers count
from their own container's base, the instance nodes' BLAS pointers from the start of the buffer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bvh.blas_pool import BlasHandle, BlasIdentity
from bvh.build import Blas, BuildOptions, BuildStats
from bvh.encode import encode
from bvh.header import pack_header, unpack_header
from bvh.layout import BASE_ALIGN_BYTES, HEADER_BYTES, INVALID_POINTER, UNIT_BYTES
from bvh.tlas import BvhInstance, build_tlas
from engine.gpu.errors import LimitError

U32 = NDArray[np.uint32]

# Byte offsets of BLAS roots must fit the low word of a node pointer, which counts 64-byte units
# in 29 bits.
LARGEST_SCENE_BYTES = 1 << 35


@dataclass(frozen=True, slots=True)
class SceneBvh:
    """`words` is the scene buffer; `parents[i]` is the parent's node pointer (relative to the
    container that unit i lies in) of the node at 64-byte unit i, INVALID_POINTER where there is
    none. `blas_bases` are bytes. Instance ids index `instances`.
    `blas_identities` say which builds these BLASes are; empty where that is not known (a file)."""

    words: U32
    parents: U32
    blas_bases: U32
    blas_stats: tuple[BuildStats, ...]
    blas_names: tuple[str, ...]
    instances: tuple[BvhInstance, ...]
    options: BuildOptions
    blas_identities: tuple[BlasIdentity, ...] = ()

    @property
    def tlas_words(self) -> U32:
        return self.words[: unpack_header(self.words).size_bytes // 4]

    def blas_words(self, index: int) -> U32:
        """The container of BLAS `index`, a view."""
        words = self.words[int(self.blas_bases[index]) // 4 :]
        return words[: unpack_header(words).size_bytes // 4]


def assemble(
    given: Sequence[Blas | BlasHandle],
    names: Sequence[str],
    instances: Sequence[BvhInstance],
    options: BuildOptions | None = None,
    tlas_room: int = 0,
) -> SceneBvh:
    """Builds the TLAS and lays everything out, the TLAS with `tlas_room` bytes at least. No BLAS
    and no instance are both valid; bad instances and stale handles are UserErrors that name
    them."""
    options = options or BuildOptions()
    if len(names) != len(given):
        raise ValueError(f"{len(names)} names for {len(given)} BLASes")
    blases: list[Blas] = []
    identities: list[BlasIdentity] = []
    for number, item in enumerate(given):
        fresh = (item, BlasIdentity(number)) if isinstance(item, Blas) else item.resolve()
        blases.append(fresh[0])
        identities.append(fresh[1])
    # The TLAS's size depends on its topology only, so bases of zero will do to learn it.
    draft, _ = encode(build_tlas(blases, np.zeros(len(blases), np.int64), instances, options))
    bases = []
    end = max(4 * len(draft), tlas_room)
    for blas in blases:
        end = -(-end // BASE_ALIGN_BYTES) * BASE_ALIGN_BYTES
        bases.append(end)
        end += 4 * len(blas.words)
    if end > LARGEST_SCENE_BYTES or (bases and bases[-1] > 0xFFFFFFFF):
        raise LimitError(f"the scene's BVH needs {end} bytes, pointers reach 4294967295")
    tlas = build_tlas(blases, np.array(bases, np.int64), instances, options)

    words = np.zeros(end // 4, np.uint32)
    parents = np.full(end // UNIT_BYTES, INVALID_POINTER, np.uint32)
    tlas_words, tlas_parents = encode(tlas)
    words[: len(tlas_words)] = tlas_words
    parents[: len(tlas_parents)] = tlas_parents
    for base, blas in zip(bases, blases, strict=True):
        first = base // 4
        words[first : first + len(blas.words)] = blas.words
        header = replace(unpack_header(blas.words), base_bytes=base)
        words[first : first + HEADER_BYTES // 4] = pack_header(header)
        parents[base // UNIT_BYTES : base // UNIT_BYTES + len(blas.parents)] = blas.parents
    return SceneBvh(
        words=words,
        parents=parents,
        blas_bases=np.array(bases, np.uint32),
        blas_stats=tuple(blas.stats for blas in blases),
        blas_names=tuple(names),
        instances=tuple(instances),
        options=options,
        blas_identities=tuple(identities),
    )
