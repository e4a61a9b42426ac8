"""A KD-tree on the CPU: the structure that the BVH is compared with. Nothing else uses it."""
