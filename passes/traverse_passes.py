"""The passes that trace the rays of one type, and the kernel that they share.

One pass, or where alpha tests wait in queues of their own (`passes.candidates`) rounds of
traverse -> arguments -> test -> arguments, and a last one that tests inline.
"""

from collections.abc import Mapping

from bvh.gpu.trace_rays import Variant, counter_slots, fit_variant, stack_shader, vote_slots
from engine.frame.render_pass import Pass
from passes.candidates import queue_names, round_count
from passes.frame_options import PRIMARY, FrameOptions
from passes.gpu_scene import GpuScene
from passes.ray_kernel import loops_here
from passes.rays import RayType
from passes.stage_passes import SHADERS, StagePasses


def kernel_variant(scene: GpuScene, options: FrameOptions, ray: RayType | None) -> Variant:
    """The traversal kernel for a ray type (None: primary rays)."""
    name, any_hit = (ray.family, ray.any_hit) if ray else (PRIMARY, False)
    variant = Variant(
        name,
        any_hit=any_hit,
        sort=options.kernel_sorts(name, any_hit),
        loops=loops_here(options.kernel_loops(name), scene.device.info),
        mask=options.mask(name),
        flags=int(options.ray_flags),
        traversal=options.traversal,
    )
    return fit_variant(variant, scene.prepared.bvh, has_alpha=scene.rays_ask)


def kernel_slots(
    scene: GpuScene, options: FrameOptions, variant: Variant, stack: int
) -> dict[str, str]:
    """Its slots, but for the ray's record; `stack` in entries."""
    return {
        **variant.slots(),
        "stack": stack_shader(stack),
        "accept": _accept(scene.rays_ask, options.count),
        **counter_slots(scene.device, options.count, options.count_lanes),
        **vote_slots(scene.device, variant.loops),
    }


def traversal(
    scene: GpuScene, options: FrameOptions, ray: RayType | None
) -> tuple[dict[str, str], Mapping[str, float]]:
    """Slots and override constants of the traversal kernel for a ray type (None: primary rays)."""
    variant = kernel_variant(scene, options, ray)
    stack = options.kernel_stack(ray.family if ray else PRIMARY)
    slots = kernel_slots(scene, options, variant, stack)
    if ray:
        slots["record"] = ray.record_shader
    return slots, variant.constants()


def _accept(asks: bool, count: bool) -> str:
    if not asks:
        return f"{SHADERS}accept_opaque.wgsl"
    return "passes.counted_alpha" if count else f"{SHADERS}accept_alpha.wgsl"


def traverse_passes(make: StagePasses, ray: RayType) -> list[Pass]:
    """From the type's queue, whose arguments are there, to its results."""
    options = make.options
    ray = ray.of(options)
    slots, constants = traversal(make.scene, options, ray)
    tests: dict[str, float] = {}  # constants of the alpha test
    if options.count:
        tests = {"SLOTS_PER_PIXEL": ray.slots_per_pixel}
        constants = {**constants, **tests}
    bound = {
        "queue": ray.queue,
        "results": ray.results,
        "counters": f"{ray.name}_counters",
        "slot_counts": ray.slot_counts,
    }

    def queue_pass(
        name: str, file: str, arguments: str, settings: Mapping[str, float], **bind: str
    ) -> Pass:
        filled = slots
        if file == "traverse_round":  # which tests nothing
            filled = {**slots, "accept": f"{SHADERS}accept_opaque.wgsl"}
        return make.over_queue(
            name,
            f"{file}_counted" if options.count else file,
            arguments,
            slots=filled,
            constants=settings,
            trusted=True,  # only bytes that were built in this process reach a frame
            **bound,
            **bind,
        )

    name = f"traverse/{ray.name}"
    rounds = round_count(options, make.scene.rays_ask)
    if not rounds:
        return [queue_pass(f"{name}/0", "traverse_queue", ray.name, constants)]
    found: list[Pass] = []
    arguments, behind = ray.name, queue_names(ray.name, 0)[1]
    for number in range(rounds):
        here, rejected = queue_names(ray.name, number)
        settings = {**constants, "DEFER": True, "RESUMED": number > 0}
        bind = {"rejected": behind, "push_queue": here}
        test = {"candidates": here, "push_queue": rejected}
        found += [
            queue_pass(f"{name}/{number}", "traverse_round", arguments, settings, **bind),
            make.arguments(here, here),
            queue_pass(f"any-hit/{ray.name}/{number}", "test_candidates", here, tests, **test),
            make.arguments(rejected, rejected),
        ]
        arguments = behind = rejected
    settings = {**constants, "RESUMED": True}
    last = queue_pass(f"{name}/{rounds}", "traverse_last", arguments, settings, rejected=behind)
    return [*found, last]
