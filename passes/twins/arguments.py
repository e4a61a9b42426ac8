"""Twin of arguments.wgsl: what waits in a queue as the group counts of an indirect dispatch."""

from passes.queue import GROUP_SIZE
from passes.twins.queue_push import RayQueue
from passes.twins.wgsl_functions import U32

GROUPS_PER_DIMENSION = 65535


def fold_groups(groups: int) -> tuple[int, int]:
    """Columns and rows."""
    rows = max(1, (groups + GROUPS_PER_DIMENSION - 1) // GROUPS_PER_DIMENSION)
    return (groups + rows - 1) // rows, rows


def arguments(queue: RayQueue, arguments: U32) -> None:
    """`arguments` [3] is written."""
    arguments[:3] = (*fold_groups((queue.waiting + GROUP_SIZE - 1) // GROUP_SIZE), 1)
