"""Constants that the stages of `bvh.gpu.tree_order` and `bvh.gpu.collapse` share with the host."""

from bvh.tree import MAX_DEPTH, STACK_LIMIT

LEVELS = 64  # entries of `level_starts`; trees have at most MAX_DEPTH levels
RIGHT_CHILD = 1 << 31  # in a word of `parents`, beside the parent's index
NO_PARENT = 0xFFFFFFFF
DEPTH_SHIFT = 16  # in the second word of a path: the depth above 16 of its turns

# A shape says which binary nodes below a wide node are opened. The wide node has code 1, the
# children of code c have 2c and 2c + 1; bit c - 2 of a mask stands for code c. A slot below two
# opened ones has a code of 8 or more: past the mask, never opened.
MASK_BITS = 6
ENTRY_BITS = 6

# A mark of a wide node: 1, its mask, what waits on the way to it, its level among wide nodes.
MARK_MASK_SHIFT = 1
MARK_WAITING_SHIFT = 8
MARK_LEVEL_SHIFT = 16


def wgsl() -> str:
    """The constants for shaders."""
    constants = {
        "MAX_DEPTH": MAX_DEPTH,
        "STACK_ENTRIES": STACK_LIMIT,
        "LEVELS": LEVELS,
        "RIGHT_CHILD": RIGHT_CHILD,
        "NO_PARENT": NO_PARENT,
        "DEPTH_SHIFT": DEPTH_SHIFT,
        "MASK_BITS": MASK_BITS,
        "ENTRY_BITS": ENTRY_BITS,
        "MARK_MASK_SHIFT": MARK_MASK_SHIFT,
        "MARK_WAITING_SHIFT": MARK_WAITING_SHIFT,
        "MARK_LEVEL_SHIFT": MARK_LEVEL_SHIFT,
    }
    lines = [f"const {name}: u32 = {value}u;" for name, value in constants.items()]
    return "\n".join(["// Generated from bvh/gpu/tree_order_records.py.", *lines])
