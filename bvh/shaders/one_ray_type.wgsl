// What a kernel knows of its rays where all are of one type: the $ray_types slot of traversal.wgsl.
override ANY_HIT: bool = false;
override SORT: bool = true; // false: children in slot order (any-hit may prefer it)
override RAY_MASK: u32 = 255u;
