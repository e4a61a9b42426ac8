"""The four children of a box node, read from guest words, and the order to visit them in."""

import numpy as np
from numpy.typing import NDArray

from bvh import layout

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Index = NDArray[np.int64]

_SLOT = np.arange(layout.BOX_WIDTH, dtype=np.int64)[:, None]
# Word (FP32) or half (FP16) offset of child c, min/max, axis: both formats list
# min.x min.y min.z max.x max.y max.z a child.
_FP32_BOUNDS = layout.BOX_BOUNDS_WORD + np.arange(24)[:, None]
_FP16_BOUNDS = 2 * layout.BOX_BOUNDS_WORD + np.arange(24)[:, None]
# binary16 to float32 is exact; a table is several times faster than the conversion.
_HALF_VALUES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
_NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)
_NETWORK = ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2))


def read_children(words: U32, address: Index, half: bool) -> tuple[U32, F32]:
    """Child pointers [4, m] and bounds [4, 2 (min, max), 3, m] of the nodes at word `address`."""
    pointers = words.take(address + _SLOT)
    if half:
        bounds = _HALF_VALUES.take(words.view(np.uint16).take(2 * address + _FP16_BOUNDS))
    else:
        bounds = words.view(np.float32).take(address + _FP32_BOUNDS)
    return pointers, bounds.reshape(layout.BOX_WIDTH, 2, 3, address.size)


def order_children(
    pointers: U32, entry: F32, hit: NDArray[np.bool_], sort: bool, kernel_order: bool = False
) -> U32:
    """The hit children of each lane first, [4, m]: near-first (equal entries: lower slot first)
    or in slot order. What stands behind them means nothing.

    `kernel_order` keeps the first of them and puts the others in falling slot order: the kernel
    pushes them in slot order and pops the last. It also compares entries without their last two
    bits."""
    m = pointers.shape[1]
    if sort:
        # Entries are >= 0, so their bits order like the numbers; adding +0 removes -0.
        key = (entry + np.float32(0)).view(np.uint32).astype(np.uint64)
        if kernel_order:
            key &= np.uint64(0xFFFFFFFC)
        key <<= np.uint64(2)
        key |= _SLOT.astype(np.uint64)
    else:
        key = np.broadcast_to(_SLOT.astype(np.uint64), pointers.shape)
    key = np.where(hit, key, _NO_KEY)
    if kernel_order:
        rest = (np.uint64(4 * layout.BOX_WIDTH) - _SLOT.astype(np.uint64)) << np.uint64(2)
        rest = rest | _SLOT.astype(np.uint64)
        first = (key == key.min(0)) & hit
        key = np.where(first, _SLOT.astype(np.uint64), np.where(hit, rest, _NO_KEY))
    for low, high in _NETWORK:
        smaller = np.minimum(key[low], key[high])
        np.maximum(key[low], key[high], out=key[high])
        key[low] = smaller
    slot = (key & np.uint64(3)).astype(np.int64)
    return np.asarray(pointers.reshape(-1).take(slot * m + np.arange(m)))
