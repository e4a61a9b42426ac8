"""The passes that drain two queues in one dispatch (`passes.mixed`)."""

from collections.abc import Mapping
from dataclasses import replace

from engine.frame.render_pass import Pass
from passes.mixed import MIXED
from passes.ray_kernel import loops_here
from passes.rays import RayType
from passes.sorting import filled_queue
from passes.stage_passes import StagePasses
from passes.traverse_passes import kernel_slots, kernel_variant

# Constants that differ between ray types, and what the kernel of two types calls them.
OWN = {"ANY_HIT": "ANY_HIT", "SORT": "SORT", "RAY_MASK": "MASK"}


def mixed_passes(make: StagePasses, number: int, first: RayType, other: RayType) -> list[Pass]:
    """What is left of two types' queues, traced by the frame's mixed dispatch `number`. The type
    whose rays take longer is best the first: its last rays end beside the other's."""
    name = MIXED[number]
    slots, constants = mixed_kernel(make, first, other)
    filled = [filled_queue(make.options, ray) for ray in (first, other)]
    return [
        make.arguments(name, *filled),
        make.over_queue(
            f"traverse/{name}",
            "traverse_mixed",
            name,
            slots=slots,
            constants=constants,
            trusted=True,  # as in passes/traverse_passes.py
            queue=first.queue,
            results=first.results,
            other_queue=other.queue,
            other_results=other.results,
            spans=f"{name}_arguments",
        ),
    ]


def mixed_kernel(
    make: StagePasses, first: RayType, other: RayType
) -> tuple[dict[str, str], Mapping[str, float]]:
    """Slots and constants of the kernel that traces both types."""
    variants = [kernel_variant(make.scene, make.options, ray) for ray in (first, other)]
    if variants[0].two_level != variants[1].two_level:  # one of them sees nothing
        variants = [replace(v, two_level=True, start_instance_unit=0) for v in variants]
    if variants[0].loops != variants[1].loops:  # the frame's serve both
        loops = loops_here(make.options.loops, make.scene.device.info)
        variants = [replace(v, loops=loops) for v in variants]
    stack = max(make.options.kernel_stack(ray.family) for ray in (first, other))
    one, two = (variant.constants() for variant in variants)
    shared = {name: value for name, value in one.items() if name not in OWN}
    slots = {
        **kernel_slots(make.scene, make.options, variants[0], stack),
        "ray_types": "bvh/shaders/mixed_ray_types.wgsl",
        "record": first.record_shader,
        "other_record": other.record_shader,
    }
    own = {
        f"{which}_{short}": values[name]
        for which, values in (("FIRST", one), ("OTHER", two))
        for name, short in OWN.items()
    }
    return slots, {**shared, **own}
