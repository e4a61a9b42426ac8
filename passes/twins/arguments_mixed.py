"""Twin of arguments_mixed.wgsl: what waits in two queues as the group counts of one dispatch."""

from passes.queue import GROUP_SIZE
from passes.twins.arguments import fold_groups
from passes.twins.queue_push import RayQueue
from passes.twins.wgsl_functions import U32


def arguments_mixed(queue: RayQueue, other_queue: RayQueue, arguments: U32) -> None:
    """`arguments` are a MIXED_ARGUMENTS record's words; both queues' records count as drained."""
    groups = [-(-q.waiting // GROUP_SIZE) for q in (queue, other_queue)]
    x, rows = fold_groups(sum(groups))
    spans = [(int(q.header["drained"]), q.count) for q in (queue, other_queue)]
    arguments[:] = (x, rows, 1, groups[0], *spans[0], *spans[1])
    for q in (queue, other_queue):
        q.header["drained"] = q.count
