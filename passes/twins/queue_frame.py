"""Queues of rays in the frame on the CPU: their sorts, their traversals and tests between these."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from passes.candidates import queue_names, round_count
from passes.frame_options import FrameOptions
from passes.mixed import MIXED
from passes.rays import RayType
from passes.sorting import AXIS_BITS, filled_queue, sort_in_place, sorted_names, sorts_rays
from passes.twins.arguments import arguments
from passes.twins.arguments_mixed import arguments_mixed
from passes.twins.cpu_pass import CpuPass
from passes.twins.gather_rays import gather_rays
from passes.twins.ray_keys import ray_keys
from passes.twins.test_candidates import test_candidates
from passes.twins.test_candidates_counted import test_candidates_counted
from passes.twins.traverse_last import traverse_last
from passes.twins.traverse_last_counted import traverse_last_counted
from passes.twins.traverse_mixed import traverse_mixed
from passes.twins.traverse_queue import traverse_queue
from passes.twins.traverse_queue_counted import traverse_queue_counted
from passes.twins.traverse_round import traverse_round
from passes.twins.traverse_round_counted import traverse_round_counted


def arguments_pass(queue: str, user: str, again: str = "") -> CpuPass:
    bind = {"queue": queue, "arguments": f"{user}_arguments"}
    return CpuPass(f"arguments/{user}{again}", arguments, bind)


def radix_pass(name: str, what: str) -> CpuPass:
    """Sorts the order of `what` by its keys (`passes.sorting.sorted_names`)."""
    return CpuPass(f"{name}/radix", sort_in_place, sorted_names(what))


@dataclass(frozen=True, slots=True)
class QueuePasses:
    """Makes them, named as in `passes.frame_passes`. `asks`: whether a triangle's alpha is to be
    tested (`PreparedScene.asks`)."""

    options: FrameOptions
    asks: bool

    def ordered(self, ray: RayType, again: str = "") -> list[CpuPass]:
        """What stands before a queue's traversal: workgroups are counted, and rays sorted if the
        options say so. `again` ends the passes' names where a frame has them twice."""
        counted = arguments_pass(filled_queue(self.options, ray), ray.name, again)
        if not sorts_rays(self.options, ray):
            return [counted]
        name, names = f"sort/{ray.name}{again}", sorted_names(ray.name)
        keys = partial(ray_keys, ray=ray, axis_bits=AXIS_BITS[self.options.ray_sort])
        bind = {
            "unsorted": filled_queue(self.options, ray),
            "order": names["order"],
            "queue": ray.queue,
        }
        return [
            counted,
            CpuPass(f"{name}/keys", keys, {"queue": filled_queue(self.options, ray), **names}),
            radix_pass(name, ray.name),
            CpuPass(f"{name}/gather", gather_rays, bind),
        ]

    def mixed(self, number: int, first: RayType, other: RayType) -> list[CpuPass]:
        """Two types' rays traced in one dispatch, the `number`th of the frame (passes/mixed.py)."""
        name = f"{MIXED[number]}_arguments"
        counted = {
            "queue": filled_queue(self.options, first),
            "other_queue": filled_queue(self.options, other),
            "arguments": name,
        }
        traced = {
            "queue": first.queue,
            "results": first.results,
            "other_queue": other.queue,
            "other_results": other.results,
            "spans": name,
        }
        trace = partial(traverse_mixed, first=self._tracing(first), other=self._tracing(other))
        return [
            CpuPass(f"arguments/{MIXED[number]}", arguments_mixed, counted),
            CpuPass(f"traverse/{MIXED[number]}", trace, traced),
        ]

    def traversed(self, ray: RayType) -> list[CpuPass]:
        """Rays are traced at once, or in rounds with tests of candidates between them."""
        rays = self._tracing(ray)
        bound = {
            "queue": ray.queue,
            "results": ray.results,
            "counters": f"{ray.name}_counters",
            "slot_counts": ray.slot_counts,
        }
        name, count = f"traverse/{ray.name}", self.options.count
        rounds = round_count(self.options, self.asks)
        if not rounds:
            twin: Any = traverse_queue_counted if count else traverse_queue
            return [CpuPass(f"{name}/0", partial(twin, **rays), bound)]
        found, behind = [], queue_names(ray.name, 0)[1]
        for number in range(rounds):
            here, rejected = queue_names(ray.name, number)
            twin = partial(
                traverse_round_counted if count else traverse_round, **rays, resumed=number > 0
            )
            test = partial(
                test_candidates_counted if count else test_candidates, ray=ray.of(self.options)
            )
            bind = {**bound, "rejected": behind, "push_queue": here}
            test_bind = {**bound, "candidates": here, "push_queue": rejected}
            found += [
                CpuPass(f"{name}/{number}", twin, bind),
                arguments_pass(here, here),
                CpuPass(f"any-hit/{ray.name}/{number}", test, test_bind),
                arguments_pass(rejected, rejected),
            ]
            behind = rejected
        last = partial(traverse_last_counted if count else traverse_last, **rays)
        bind = {**bound, "rejected": behind}
        return [*found, CpuPass(f"{name}/{rounds}", last, bind)]

    def _tracing(self, ray: RayType) -> dict[str, Any]:
        """What every traversal of `ray` is told."""
        return {
            "ray": ray.of(self.options),
            "sort": self.options.kernel_sorts(ray.family, ray.any_hit),
            "mask": self.options.mask(ray.family),
            "flags": self.options.ray_flags,
        }
