"""This process's heap, which should shrink when what lay in it goes: structures, what drivers keep
while they compile, and all buffers of a CPU driver.

glibc's malloc raises its threshold for mapping a block by itself with every large block that is
freed, up to 32 MiB, and opens eight arenas a core. Buffers of a software driver then come from
arenas, where one small block that stays holds tens of MiB: a viewer that is resized and switched
keeps a third more memory than it has given out. mallopt(3) fixes both for the whole process.
"""

import ctypes

_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_MAPPED_FROM_BYTES = 1 << 20
_ARENAS = 2


def return_large_blocks() -> bool:
    """Blocks from 1 MiB go back to the system when they are freed. To be called before the driver
    starts its threads; False where the C library is not glibc, which needs no such help."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return False
    mapped = libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
    arenas = libc.mallopt(_M_ARENA_MAX, _ARENAS)
    return bool(mapped and arenas)


def give_back_free_blocks() -> bool:
    """What malloc keeps of freed blocks goes back to the system, in all arenas: milliseconds, in
    which other threads may wait for memory. False where nothing went or the C library is not
    glibc."""
    libc = ctypes.CDLL(None)
    return hasattr(libc, "malloc_trim") and bool(libc.malloc_trim(0))
