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
