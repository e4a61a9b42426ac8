"""A batch of single instructions as arrays: what a backend needs to run test vectors.

Every array is uint32 and holds raw bits, floats too, so that a NaN's payload survives. Both the
NumPy definition (`bvh.contract.intersect.intersect_cases`) and a GPU backend take a `Cases` and
the rule set's name and return `[n, 4]` words.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]

Rules = Literal["chapter", "gpurt"]
RULES: tuple[Rules, ...] = ("chapter", "gpurt")

NODE_WORDS = 32  # an FP32 box node; a 64-byte node fills the first 16
BLOCK_WORDS = 16


@dataclass(frozen=True, slots=True)
class Cases:
    """n instructions, each with the bytes of the one node that it may read.

    `backed[i]` says how many 64-byte blocks of `node_words[i]` exist (0, 1 or 2). An instruction
    that needs more returns the reject words of its node type, as for any unavailable block.

    Where a rule set says nothing, both backends do the same (ours): `gpurt` packs return mode 0 as
    `chapter` does (flag word + type, hit); a weight whose source is 3 is +0 in `gpurt`; every NaN
    in a result word is 0x7fc00000.
    """

    descriptor: U32  # [n, 4]
    pointer_low: U32  # [n]
    pointer_high: U32  # [n]: zero for the 32-bit form
    node_words: U32  # [n, 32], zero where not backed
    backed: U32  # [n]
    extent: U32  # [n] float32 bits
    origin: U32  # [n, 3] float32 bits
    direction: U32  # [n, 3] float32 bits
    inverse_direction: U32  # [n, 3] float32 bits: an input, never recomputed

    def __len__(self) -> int:
        return len(self.pointer_low)

    def take(self, index: NDArray[Any]) -> "Cases":
        """The cases at `index` (integers or a mask)."""
        return Cases(*(getattr(self, name)[index] for name in self.__slots__))


def make_cases(
    descriptor: Any,
    pointer: Any,
    node_words: Any,
    extent: Any,
    origin: Any,
    direction: Any,
    inverse_direction: Any,
    *,
    backed: Any = None,
) -> Cases:
    """Cases from arrays of bits: descriptor `[n, 4]` or `[4]`, pointer `[n]` up to 64 bits,
    node_words `[n, <= 32]`, ray fields as uint32 bits or as float32 (float32 is reinterpreted).
    Without `backed`, every block that `node_words` has a full row for exists."""
    wide = np.atleast_1d(np.asarray(pointer, np.uint64))
    n = len(wide)
    given = np.asarray(node_words, np.uint32)
    words = np.zeros((n, NODE_WORDS), np.uint32)
    words[:, : given.shape[-1]] = given
    blocks = given.shape[-1] // BLOCK_WORDS if backed is None else backed
    return Cases(
        descriptor=np.array(np.broadcast_to(_bits(descriptor), (n, 4))),
        pointer_low=(wide & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        pointer_high=(wide >> np.uint64(32)).astype(np.uint32),
        node_words=words,
        backed=np.array(np.broadcast_to(np.asarray(blocks, np.uint32), (n,))),
        extent=np.array(np.broadcast_to(_bits(extent), (n,))),
        origin=np.array(np.broadcast_to(_bits(origin), (n, 3))),
        direction=np.array(np.broadcast_to(_bits(direction), (n, 3))),
        inverse_direction=np.array(np.broadcast_to(_bits(inverse_direction), (n, 3))),
    )


def _bits(values: Any) -> U32:
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, np.float32).view(np.uint32)
    return array.astype(np.uint32)
