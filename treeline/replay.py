"""Traces a capture again on this adapter, word for word, and logs one of its rays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bvh.gpu.ray_log import RayLog, new_log, read_log, without_start
from bvh.gpu.trace_rays import FAILURES, LANES_ALONE, Variant, stack_shader
from bvh.ray_steps import Difference, Step, compare_steps, oracle_steps
from engine.gpu.device import Device
from engine.gpu.errors import UserError
from engine.gpu.stage import Stage
from passes.frame_uniforms import FRAME_UNIFORMS
from passes.queue import GROUP_SIZE, QUEUE_HEADER
from passes.ray_kernel import AS_FRAME, STACKS
from passes.rays import RayType
from passes.twins.traverse_queue import alpha_test
from treeline.capture import Capture, QueueCapture

U32 = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class QueueReplay:
    """One queue traced again: `different` are indices of rays whose words are not the captured
    ones, `first` the captured and the new words of the first of them."""

    name: str
    rays: int
    words: int
    different: NDArray[np.int64]
    first: tuple[tuple[int, ...], tuple[int, ...]] | None
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RayReplay:
    """The log of one ray from the GPU, the oracle's, and how they differ."""

    queue: str
    ray_index: int
    log: RayLog
    oracle: tuple[Step, ...]
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Nothing but what wider boxes explain, and nothing dropped."""
        return not self.log.dropped and not any(d.serious for d in self.differences)


def kernel_of(capture: Capture, ray: RayType) -> tuple[dict[str, str], dict[str, float]]:
    """Slots and constants of a captured queue's kernel. Only this program's own shaders and
    constants are taken from a file; UserError names another."""
    kernel = capture.identity["kernels"][ray.name]
    constants = dict(kernel["constants"])
    traversal = "contract" if "GROWTH" in constants else "fast"
    known = Variant("", traversal=traversal)
    slots = {"vote": LANES_ALONE, **kernel["slots"]}  # older captures have none
    allowed = {
        **{name: {value} for name, value in known.slots().items()},
        "stack": {stack_shader(int(size)) for size in STACKS if size != AS_FRAME},
        "accept": {f"passes/shaders/accept_{name}.wgsl" for name in ("alpha", "opaque")},
        "count": {"bvh/shaders/count_nothing.wgsl"},
        "vote": {LANES_ALONE},
        "record": {ray.record_shader},
    }
    for name in set(slots) | set(allowed):
        if slots.get(name) not in allowed.get(name, set()):
            raise UserError(f"the capture's {ray.name} kernel has slot {name} = {slots.get(name)}")
    unknown = set(constants) - set(known.constants())
    if unknown:
        raise UserError(f"the capture's {ray.name} kernel has a constant {sorted(unknown)[0]}")
    return slots, constants


def _resources(device: Device, capture: Capture, queue: QueueCapture) -> dict[str, Any]:
    header = np.zeros(1, QUEUE_HEADER.dtype)
    header["count"] = header["capacity"] = len(queue.records)
    words = np.concatenate([header.view(np.uint32), queue.records.reshape(-1)])
    size = queue.ray.result_bytes * result_count(queue)
    # Captures from before a field of the uniforms was added end earlier; new fields start as 0.
    frame = np.zeros(FRAME_UNIFORMS.size // 4, np.uint32)
    given = capture.buffers["frame"][: len(frame)]
    frame[: len(given)] = given
    return {
        "frame": device.upload("frame", frame, "UNIFORM|COPY_DST"),
        "bvh": device.upload("bvh", capture.buffers["bvh"]),
        "queue": device.upload("queue", words),
        "results": device.buffer("results", size),
        "alpha": device.upload("alpha", capture.buffers["alpha"]),
        "texels": device.upload("texels", capture.buffers["texels"]),
    }


def result_count(queue: QueueCapture) -> int:
    """Results that the kernel's buffer has room for: by slot or by ray, as the type keeps them."""
    if not queue.ray.results_by_slot or not len(queue.records):
        return len(queue.records)
    return int(_slots(queue).max()) + 1


def _slots(queue: QueueCapture) -> U32:
    """[n] of each ray."""
    return np.asarray(queue.records.view(queue.ray.record.dtype)[queue.ray.slot_field][:, 0])


def replay_queue(device: Device, capture: Capture, queue: QueueCapture) -> QueueReplay:
    """Traces a queue with the kernel that it was captured from, run-time checks left in: the bytes
    may come from anywhere."""
    slots, constants = kernel_of(capture, queue.ray)
    name = queue.ray.name
    if not len(queue.records):
        return QueueReplay(name, 0, 0, np.zeros(0, np.int64), None, ())
    stage = Stage(
        device,
        f"replay/{name}",
        "passes/shaders/traverse_queue.wgsl",
        slots=slots,
        constants={**constants, "CHECK_POINTERS": True},
    )
    resources = _resources(device, capture, queue)
    stage.run(resources, -(-len(queue.records) // GROUP_SIZE))
    every = device.read(resources["results"], np.uint32)
    every = every[: result_count(queue) * queue.ray.result_bytes // 4]
    results = every.reshape(-1, queue.ray.result_bytes // 4)
    if queue.ray.results_by_slot:
        results = results[_slots(queue)]
    header = device.read(resources["queue"], QUEUE_HEADER.dtype, count=1)[0]
    different = np.flatnonzero((results != queue.results).any(axis=1))
    first = None
    if len(different):
        i = int(different[0])
        first = (tuple(queue.results[i].tolist()), tuple(results[i].tolist()))
    failed = int(header["failed"])
    failures = tuple(text for bit, text in FAILURES.items() if failed & bit)
    return QueueReplay(name, len(results), results.size, different, first, failures)


def replay_ray(
    device: Device, capture: Capture, queue: QueueCapture, ray_index: int, capacity: int
) -> RayReplay:
    """Traces a queue again with ray `ray_index` logged, and that ray through the oracle."""
    if not 0 <= ray_index < len(queue.records):
        raise UserError(
            f"the capture's {queue.ray.name} queue has {len(queue.records)} rays, "
            f"there is no ray {ray_index}"
        )
    slots, constants = kernel_of(capture, queue.ray)
    if "GROWTH" in constants:
        raise UserError("step logs are written by the fast traversal; this capture is of contract")
    stage = Stage(
        device,
        f"log/{queue.ray.name}",
        "passes/shaders/traverse_queue_logged.wgsl",
        slots={**slots, "count": "bvh/shaders/count_steps.wgsl"},
        constants={**constants, "CHECK_POINTERS": True},
    )
    buffer = new_log(device, ray_index, capacity)
    resources = {**_resources(device, capture, queue), "ray_log": buffer}
    stage.run(resources, -(-len(queue.records) // GROUP_SIZE))
    log = read_log(device, buffer)
    steps = _oracle(capture, constants, log)
    expected = without_start(steps, log.start_byte)
    differences = compare_steps(log.steps, expected, log.ray)
    return RayReplay(queue.ray.name, ray_index, log, tuple(expected), tuple(differences))


def _oracle(capture: Capture, constants: Mapping[str, float], log: RayLog) -> list[Step]:
    accept = None
    if constants["HAS_ALPHA"]:
        accept = alpha_test(capture.buffers["alpha"], capture.buffers["texels"])
    steps, _ = oracle_steps(
        capture.buffers["bvh"],
        log.ray.reshape(1),
        any_hit=bool(constants["ANY_HIT"]),
        sort=bool(constants["SORT"]),
        mask=int(constants["RAY_MASK"]),
        flags=int(constants["RAY_FLAGS"]),
        accept=accept,
    )
    return steps
