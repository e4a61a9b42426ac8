"""The sizes of a reflection probe's levels of blur."""

LEAST = 4  # texels a side of the most blurred level (passes/shaders/probe_layout.wgsl)


def level_sizes(size: int) -> list[int]:
    """Texels a side of each level, the sharpest, of `size`, first."""
    return [size >> level for level in range((size // LEAST).bit_length())]
