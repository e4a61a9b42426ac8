"""What a ray that is followed over the picture may meet, cell by cell: a pyramid of intervals.

    screen/depth_pyramid   from the G-buffer, all levels at once

Level 0 has a pixel's plane: the reciprocal of its depth, which is linear over the picture, and how
it changes from pixel to pixel. Each cell of level n stands for 2^n x 2^n pixels and has the least
and the greatest reciprocal depth at which a ray may meet one of them; a cell that shows nothing has
an interval that nothing meets. Sides are those of the picture, up to whole cells of the top level,
so that no level has half a cell. The levels lie in one texture: the first above, the others side by
side below it.
"""

TOP = 5  # the top level (passes/shaders/pyramid_layout.wgsl)
FORMAT = "rg32uint"


def padded(side: int) -> int:
    """A side of the picture, up to whole cells of the top level."""
    return -(-side >> TOP) << TOP


def corner(level: int, width: int, height: int) -> tuple[int, int]:
    """(x, y) of a level's first texel, of a picture of that size."""
    if level == 0:
        return 0, 0
    return padded(width) - (2 * padded(width) >> level), padded(height)


def texture_size(width: int, height: int) -> tuple[int, int]:
    """Width and height of the texture of a picture of that size."""
    return padded(width), padded(height) + padded(height) // 2
