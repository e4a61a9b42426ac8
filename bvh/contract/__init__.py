"""The instruction-level definition: what IMAGE_BVH_INTERSECT_RAY does with guest bytes.

Start with `intersect.py`. `pointer.py` and `descriptor.py` hold the two packed inputs, `box.py`
and `triangle.py` the two tests, `memory.py` the guest pages, `wave.py` the wave form with EXEC,
`mimg.py` the instruction's encoding, `ledger.py` every fact with its evidence label, and
`traverse.py` a whole traversal in which every node goes through the instruction.
"""
