"""Host memory: large blocks are mapped by themselves, so that they go back when they are freed."""

import ctypes
import subprocess
import sys

import pytest

from engine.gpu.host_memory import return_large_blocks

# Frees a block of 16 MiB, after which glibc would keep smaller ones in its arenas, then looks at
# bit 1 of the word in front of a new block: mapped by itself.
PROGRAM = """
import ctypes, sys
from engine.gpu.host_memory import return_large_blocks
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
if sys.argv[1] == "set":
    return_large_blocks()
libc.free(libc.malloc(16 << 20))
block = libc.malloc(4 << 20)
print(bool(ctypes.c_size_t.from_address(block - 8).value & 2))
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="needs glibc's malloc"
)
def test_freed_blocks_do_not_raise_the_threshold() -> None:
    mapped = {
        way: subprocess.check_output([sys.executable, "-c", PROGRAM, way], text=True).strip()
        for way in ("left", "set")
    }
    assert mapped == {"left": "False", "set": "True"}


def test_it_says_whether_it_could() -> None:
    assert return_large_blocks() == hasattr(ctypes.CDLL(None), "gnu_get_libc_version")


# 64 MiB in small blocks below one that stays: malloc keeps them until it is asked to give back.
KEEPER = """
import ctypes, os
from engine.gpu.host_memory import give_back_free_blocks
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
blocks = [libc.malloc(64 << 10) for _ in range(1024)]
for block in blocks:
    ctypes.memset(block, 1, 64 << 10)
stays = libc.malloc(64 << 10)
for block in blocks:
    libc.free(block)
kept = resident()
give_back_free_blocks()
print(kept - resident())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc's malloc")
def test_free_blocks_are_given_back() -> None:
    given_back = int(subprocess.check_output([sys.executable, "-c", KEEPER], text=True))
    assert given_back >= 48
