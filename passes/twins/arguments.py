"""Twin of arguments.wgsl: a queue's count as the group counts of an indirect dispatch."""

from passes.queue import GROUP_SIZE
from passes.twins.queue_push import RayQueue
from passes.twins.wgsl_functions import U32

GROUPS_PER_DIMENSION = 65535


def arguments(queue: RayQueue, arguments: U32) -> None:
    """`arguments` [3] is written."""
    groups = (queue.count + GROUP_SIZE - 1) // GROUP_SIZE
    rows = max(1, (groups + GROUPS_PER_DIMENSION - 1) // GROUPS_PER_DIMENSION)
    arguments[:3] = ((groups + rows - 1) // rows, rows, 1)
