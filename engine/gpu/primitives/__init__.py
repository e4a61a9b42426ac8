"""Parallel building blocks over u32 buffers: reduce, exclusive scan, radix sort.

All of them are portable: no subgroups, no waiting for another workgroup, workgroup memory zeroed
by the kernel itself. Each object is made for a capacity, owns its scratch and is encoded into a
compute pass that the caller began, as often as wanted.
"""
