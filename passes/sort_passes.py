"""The passes that put rays and hits in order (`passes.sorting`): keys -> radix sort -> for rays, a
copy. Each is a pass of its own, so that what an order costs stands beside what it saves.
"""

from typing import Any

from engine.frame.render_pass import Parts, Pass, Resources
from engine.gpu.primitives.radix_sort import RadixSort
from passes.frame_uniforms import FRAME_UNIFORMS
from passes.rays import RayType
from passes.sorting import (
    AXIS_BITS,
    MATERIAL_BITS,
    filled_queue,
    hits_of,
    key_bits,
    sorted_names,
    sorts_hits,
    sorts_rays,
)
from passes.stage_passes import StagePasses


def sort_rays(make: StagePasses, ray: RayType, again: str = "") -> list[Pass]:
    """From the queue that was filled, whose arguments are there, to the one that is drained: what
    no pass has drained yet. `again` tells a frame's second sort of a type from its first; none
    where rays keep their order."""
    options = make.options
    if not sorts_rays(options, ray):
        return []
    name, filled = f"sort/{ray.name}{again}", filled_queue(options, ray)
    axis_bits, names = AXIS_BITS[options.ray_sort], sorted_names(ray.name)
    return [
        make.over_queue(
            f"{name}/keys",
            "ray_keys",
            ray.name,
            slots={"record": ray.record_shader},
            constants={"AXIS_BITS": axis_bits},
            queue=filled,
            keys=names["keys"],
            order=names["order"],
            live=names["live"],
        ),
        radix_pass(make, f"{name}/radix", ray.name, key_bits(axis_bits)),
        make.over_queue(
            f"{name}/gather",
            "gather_rays",
            ray.name,
            constants={"RECORD_WORDS": ray.record.size // 4},
            unsorted=filled,
            order=names["order"],
            queue=ray.queue,
        ),
    ]


def sort_hits(make: StagePasses, ray: RayType) -> list[Pass]:
    """The hits of a closest-hit type before they are shaded; none where they keep their order."""
    if not sorts_hits(make.options, ray):
        return []
    name, hits = f"shade/{ray.name}", hits_of(ray)
    names = sorted_names(hits)
    return [
        make.over_queue(
            f"{name}/keys",
            "hit_keys",
            ray.name,
            queue=ray.queue,
            results=ray.results,
            keys=names["keys"],
            order=names["order"],
            live=names["live"],
        ),
        radix_pass(make, f"{name}/radix", hits, MATERIAL_BITS),
    ]


def radix_pass(make: StagePasses, name: str, what: str, bits: int) -> Pass:
    """Sorts `<what>_order` by `<what>_keys`. Its parts are the sort's dispatches."""
    keys, order, live, totals = (f"{what}_{part}" for part in ("keys", "order", "live", "totals"))
    sort = RadixSort(make.device, 0, key_bits=bits)
    fitted: list[Any] = []

    def encode(scope: Any, resources: Resources, first: int, count: int) -> None:
        buffers = [resources[n] for n in (keys, order, live, totals)]
        if fitted != buffers:  # queues grow
            fitted[:] = buffers
            sort.set_capacity(buffers[0].size // 4, buffers[2], buffers[3])
        sort.encode(scope, buffers[0], buffers[1], first, count)

    parts = Parts(
        units=lambda _: sort.step_count,
        encode=encode,
        words=lambda _: (0,),
        at=("frame", FRAME_UNIFORMS.offsets["first_group"]),
    )
    names = (keys, order, live, totals)
    return Pass(
        name,
        names,
        (keys, order, totals),
        lambda scope, resources: encode(scope, resources, 0, sort.step_count),
        parts=parts,
    )
