"""Retrying instructions whose pages had not arrived, without doing anything twice.

An instruction changes nothing but its result words, so only the lanes that were unavailable run
again, and a caller counts, pushes and commits once, from the result that is returned. The number
of attempts is bounded: a page that never comes ends as `Status.UNAVAILABLE`, not as a miss.
"""

import numpy as np

from bvh.contract.cases import Cases, Rules
from bvh.contract.intersect import Result, Status, intersect, node_blocks
from bvh.contract.memory import GuestMemory, Pager
from bvh.layout import UNIT_BYTES

ATTEMPTS = 4


def intersect_resident(
    memory: GuestMemory,
    cases: Cases,
    rules: Rules,
    pager: Pager | None = None,
    attempts: int = ATTEMPTS,
) -> Result:
    """`intersect`, asking `pager` for missing pages up to `attempts - 1` times."""
    result = intersect(memory, cases, rules)
    for _ in range(attempts - 1 if pager else 0):
        lanes = np.flatnonzero(result.status == Status.UNAVAILABLE)
        if not lanes.size:
            break
        assert pager is not None
        again = cases.take(lanes)
        address, blocks = node_blocks(again)
        ends = address + (blocks.astype(np.uint64) - np.uint64(1)) * np.uint64(UNIT_BYTES)
        pager(memory, memory.missing_pages(np.concatenate([address, ends])))
        part = intersect(memory, again, rules)
        result.words[lanes], result.status[lanes] = part.words, part.status
    return result
