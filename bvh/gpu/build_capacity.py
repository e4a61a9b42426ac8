"""For how many triangles a build on the GPU is made.

Some stages work by the capacity of their buffers rather than by the count (levels of SAH, the size
of a hash table), so that it shows in the bytes. It therefore follows from the count alone, and
there are few sizes, so that meshes of about one size share a builder and its buffers.
"""

SMALL_SIZES = (1 << 10, 1 << 12, 1 << 14, 1 << 16)


def build_capacity(count: int) -> int:
    """At least `count`: a power of four up to 65,536, then at most a quarter more than `count`."""
    for size in SMALL_SIZES:
        if count <= size:
            return size
    quarter = 1 << (count - 1).bit_length() - 3
    return -(-count // quarter) * quarter
