// Members of a block: a triangle in the low bits, one of its corners above.

const TRIANGLE_MASK = (1u << CORNER_SHIFT) - 1u;
