"""Times of compute passes: GPU timestamps; on CPU drivers, and where there are none, the wall
clock, each pass submitted and waited for on its own.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.stage import submit_pass
from engine.gpu.timer import PassTimer

F64 = NDArray[np.float64]
Encode = Callable[[Any], None]


def time_once(device: Device, passes: Sequence[Encode], timer: PassTimer | None = None) -> F64:
    """[passes] milliseconds of passes that run in order, once. `timer` saves making one."""
    if device.timing_source == "wall-clock":
        times = []
        for encode in passes:
            start = time.perf_counter()
            submit_pass(device, encode, label="timed")
            device.wait()
            times.append(1e3 * (time.perf_counter() - start))
        return np.array(times)
    timer = timer or PassTimer(device, len(passes))
    encoder = device.wgpu.create_command_encoder(label="timed")
    for index, encode in enumerate(passes):
        writes = timer.writes(index)
        scope = encoder.begin_compute_pass(
            label="timed", **({"timestamp_writes": writes} if writes else {})
        )
        encode(scope)
        scope.end()
    timer.resolve(encoder)
    device.wgpu.queue.submit([encoder.finish()])
    spans = timer.read_ms()
    return np.array(spans[:, 1] - spans[:, 0])


def time_passes(device: Device, passes: Sequence[Encode], repeats: int, warmup_ms: float) -> F64:
    """[passes, repeats] milliseconds of passes that run in order, after a warm-up: an idle GPU
    clocks down."""
    if not passes:
        return np.empty((0, repeats))
    timer = PassTimer(device, len(passes))
    start = time.perf_counter()
    time_once(device, passes, timer)
    while 1e3 * (time.perf_counter() - start) < warmup_ms:
        time_once(device, passes, timer)
    return np.array([time_once(device, passes, timer) for _ in range(repeats)]).T


def spread(times: F64) -> dict[str, float]:
    """Median, quartiles, least and greatest of repeats, in ms."""
    low, middle, high = np.percentile(times, (25, 50, 75))
    return {
        "median": float(middle),
        "low": float(low),
        "high": float(high),
        "min": float(times.min()),
        "max": float(times.max()),
    }
