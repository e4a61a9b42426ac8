"""The sizes of a reflection probe's levels of blur, and who works on them."""

LEAST = 4  # texels a side of the most blurred level (passes/shaders/probe_layout.wgsl)
TEXEL_LANES = 64  # that share a texel's block at most (passes/shaders/probe_blur.wgsl)


def level_sizes(size: int) -> list[int]:
    """Texels a side of each level, the sharpest, of `size`, first."""
    return [size >> level for level in range((size // LEAST).bit_length())]


def texel_lanes(level: int) -> int:
    """How many lanes share each texel of a level."""
    return min(4**level, TEXEL_LANES)


def blur_lanes(size: int) -> int:
    """Of all levels together."""
    return sum(side * side * texel_lanes(level) for level, side in enumerate(level_sizes(size)))
