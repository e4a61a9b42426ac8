"""What a stage on the GPU left otherwise than its twin, on equal inputs.

Whole numbers are equal. A driver's sqrt, pow, exp2, sin and cos are off by a few ULPs, it may fuse
products into sums and move factors out of sums (`treeline doctor` shows what it does), and then it
rounds otherwise than NumPy. So floats may differ by 1e-5 or by 1e-5 of their size, where no bound
of their own is known (rounding.py); numbers packed into 8 or 16 bits by one step, in at most 1% of
the places. A few rays lie so near to where something is decided that rounding decides: how many
these may be is said, and all others are held to the bounds. On llvmpipe nearly everything is equal
to the bit.
"""

from typing import Any

import numpy as np

from bvh.counters import COUNTERS
from passes.depth_pyramid import TOP, corner
from passes.lights_apart import LIGHTS_APART, NO_REFLECTION_QUEUE
from passes.rays import BOUNCES, RAY_TYPES
from passes.slot_counts import SLOT_COUNTS
from passes.twins.queue_push import RayQueue
from tests.passes.twins.rounding import (
    ABSOLUTE,
    RELATIVE,
    depths_apart,
    directions_close,
    origins_close,
    weights_close,
)

LIGHTS = tuple(LIGHTS_APART.values())
PACKED_FIELDS = ("cone", "direction", "path")  # two 16-bit numbers in a word
PACKED_APART = 0.01  # part of packed numbers that may be one step apart
HALF_STEP = 2.0**-10  # between two halves, of them
PAST_APART = 1e-4  # of means over frames, and of themselves
# Of node and test counts: the oracle sorts all four children, the kernel finds the nearest; in
# any-hit traversal they visit unsorted children in different orders.
COUNTS_APART = {ray.name: 0.15 if ray.any_hit else 0.02 for ray in RAY_TYPES}
STACK_APART = 3
RASTER_PIXELS = 0.01  # part of the pixels in which a rasteriser may see what rays do not
QUEUE_KEYS = {ray.queue: ray.slot_field for ray in (*RAY_TYPES, *BOUNCES)}
CLOSEST_HITS = {ray.results: ray.queue for ray in (*RAY_TYPES, *BOUNCES) if not ray.any_hit}


def close(a: Any, b: Any) -> bool:
    return np.allclose(a, b, rtol=RELATIVE, atol=ABSOLUTE)


def packed_close(a: Any, b: Any, bits: int) -> bool:
    """Words that hold numbers of so many bits."""
    kind = {8: np.uint8, 16: np.uint16}[bits]
    x, y = (np.ascontiguousarray(v).view(kind).astype(int).ravel() for v in (a, b))
    apart = np.abs(x - y)
    return bool(apart.max(initial=0) <= 1 and (apart > 0).sum() <= PACKED_APART * apart.size)


def find_differences(step: Any, strict: bool) -> list[str]:
    """What of the frame the twin left in another state than the GPU: empty when they agree.
    `strict`: see rounding.py."""
    found = []
    for name, gpu in step.gpu.items():
        cpu = step.cpu[name]
        if name in QUEUE_KEYS:
            found += queue_differences(name, gpu, cpu, strict)
        elif name == "surface":
            material, rough_metal = np.uint32(0xFFFF), np.uint32(16)
            same = all(packed_close(gpu[..., k], cpu[..., k], b) for k, b in enumerate((16, 16, 8)))
            same &= bool(((gpu[..., 3] ^ cpu[..., 3]) & material == 0).all())
            same &= packed_close(gpu[..., 3] >> rough_metal, cpu[..., 3] >> rough_metal, 8)
            found += [] if same else [name]
        elif name == "visibility":
            same = np.array_equal(gpu[..., :2], cpu[..., :2])
            same = same and weights_close(gpu, cpu, step.gpu, strict)
            found += [] if same else [name]
        elif name in ("direct", "reflected", *LIGHTS):
            found += [] if packed_close(gpu, cpu, 16) else [name]
        elif name.endswith("_filtered") or "_round_" in name:
            past = name.replace("_filtered", "_history")
            if strict or past not in step.gpu:
                same = packed_close(gpu, cpu, 16)
            else:
                same = filtered_close(gpu, cpu, past_close(step.gpu[past], step.cpu[past]))
            found += [] if same else [name]
        elif name == "pyramid":
            found += [] if pyramid_close(gpu, cpu) else [name]
        elif name == "guide":
            depth_rough = (np.ascontiguousarray(v[:, ::3]).view(np.float32) for v in (gpu, cpu))
            same = close(*depth_rough)
            same &= packed_close(gpu[:, 1], cpu[:, 1], 16) and (gpu[:, 2] == cpu[:, 2]).all()
            found += [] if same else [name]
        elif name.endswith("_history"):
            found += [] if history_close(gpu, cpu) else [name]
        elif name == "picture":
            found += [] if packed_close(gpu, cpu, 8) else [name]
        elif name in ("shadow_map", "probe_ids"):
            # The rasteriser and rays may see different triangles at edges.
            apart = gpu != cpu if name == "probe_ids" else depths_apart(gpu, cpu, strict)
            found += [] if apart.mean() < RASTER_PIXELS else [f"{name}: {apart.mean()}"]
        elif name == NO_REFLECTION_QUEUE:
            found += [] if gpu.header == cpu.header else [name]
        elif name.endswith("/view"):
            continue
        elif name in CLOSEST_HITS:
            # Rubbish lies behind the queue's end.
            gpu, cpu = (v[: step.gpu[CLOSEST_HITS[name]].count] for v in (gpu, cpu))
            same = all((gpu[k] == cpu[k]).all() for k in ("object", "primitive", "instance"))
            same = same and all(close(gpu[k], cpu[k]) for k in ("t", "u", "v"))
            found += [] if same else [name]
        elif name.endswith("_counters"):
            found += counter_differences(name, gpu, cpu)
        elif name.endswith("_slot_counts"):
            found += plane_differences(name, gpu, cpu)
        elif gpu.dtype == np.float32:
            found += [] if np.array_equal(gpu, cpu, equal_nan=True) or close(gpu, cpu) else [name]
        elif not np.array_equal(gpu, cpu):
            found.append(name)
    return found


def pyramid_close(a: Any, b: Any) -> bool:
    """[height, width, 2] words: in the upper two thirds reciprocal depths and packed tilts, below
    two bounds. A tilt that is packed a step apart may move a bound of the lowest level; those above
    are the ends of what they stand for, to the bit."""
    rows = 2 * len(a) // 3
    floats = [np.ascontiguousarray(v).view(np.float32) for v in (a, b)]
    same = np.isclose(*floats, rtol=1e-5, atol=0)
    tilts = [v[:rows, :, 1].copy().view(np.float16).astype(np.float32) for v in (a, b)]
    same[:rows, :, 1] = np.isclose(*tilts, rtol=2e-3, atol=1e-7).reshape(rows, -1, 2).all(-1)
    few = (~same).sum() <= PACKED_APART * same.size
    return bool(few) and all(exact_levels(v) for v in floats)


def exact_levels(pyramid: Any) -> bool:
    """Whether each level of bounds is made of the one below it."""
    height, width = 2 * len(pyramid) // 3, pyramid.shape[1]

    def level(number: int) -> Any:
        x, y = corner(number, width, height)
        return pyramid[y : y + (height >> number), x : x + (width >> number)]

    for number in range(2, TOP + 1):
        cells = level(number)
        blocks = level(number - 1).reshape(len(cells), 2, -1, 2, 2)
        ends = np.stack([blocks[..., 0].max((1, 3)), blocks[..., 1].min((1, 3))], -1)
        if not np.array_equal(cells, ends):
            return False
    return True


def history_close(a: Any, b: Any) -> bool:
    """A past that lies at the limit of what counts as the same may count for one alone, as much as
    a packed number may be a step apart."""
    same = past_close(a, b)
    return bool((~same).sum() <= PACKED_APART * same.size)


def past_close(a: Any, b: Any) -> Any:
    """Which of [n, 4] words agree: light, frames and deviation."""
    light, more = (
        [np.ascontiguousarray(v[:, part]) for v in (a, b)] for part in (slice(3), slice(3, 4))
    )
    floats = [v.view(np.float32) for v in light] + [v.view(np.float16).astype(float) for v in more]
    same = np.isclose(floats[0], floats[1], rtol=PAST_APART, atol=PAST_APART).all(-1)
    return same & np.isclose(floats[2], floats[3], rtol=2e-3, atol=1e-3).all(-1)


def filtered_close(a: Any, b: Any, past_same: Any) -> bool:
    """[n, 2] words, four halves a pixel: where the past is the same the mean differs as that does,
    and by a half's step."""
    same = past_same.reshape(-1, len(a)).all(0)
    x, y = (np.ascontiguousarray(v[same]).view(np.float16).astype(float) for v in (a, b))
    return np.allclose(x, y, rtol=PAST_APART + HALF_STEP, atol=PAST_APART)


def queue_differences(name: str, gpu: RayQueue, cpu: RayQueue, strict: bool) -> list[str]:
    if gpu.header != cpu.header:
        return [f"{name}: {gpu.header} against {cpu.header}"]
    # Which workgroup pushes first is up to the GPU.
    key = QUEUE_KEYS[name]
    x, y = (q.records[: q.count][np.argsort(q.records[key][: q.count])] for q in (gpu, cpu))
    bad = []
    for field in x.dtype.names:
        if field in PACKED_FIELDS and x[field].dtype == np.uint32:
            same = packed_close(x[field], y[field], 16)
        elif field == "origin":
            same = origins_close(x[field], y[field], strict)
        elif field == "direction":
            same = directions_close(x[field], y[field], strict)
        elif x[field].dtype == np.float32:
            same = close(x[field], y[field])
        else:
            same = np.array_equal(x[field], y[field])
        bad += [] if same else [f"{name}.{field}"]
    return bad


def plane_differences(name: str, gpu: Any, cpu: Any) -> list[str]:
    """Planes of counts by slot: the same slots sent a ray, the sums agree."""
    planes = [v.astype(np.int64).reshape(len(SLOT_COUNTS), -1) for v in (gpu, cpu)]
    bad = [] if ((planes[0][0] > 0) == (planes[1][0] > 0)).all() else [f"{name}: other slots"]
    for field, x, y in zip(SLOT_COUNTS, *planes, strict=True):
        if field == "stack_max":
            same = np.abs(x - y).max(initial=0) <= STACK_APART
        else:
            same = abs(x.sum() - y.sum()) <= COUNTS_APART[name.split("_")[0]] * x.sum()
        bad += [] if same else [f"{name}.{field}: {x.sum()} against {y.sum()}"]
    return bad


def counter_differences(name: str, gpu: Any, cpu: Any) -> list[str]:
    bad = []
    for index, field in enumerate(COUNTERS):
        x, y = int(gpu[index]), int(cpu[index])
        allowed = STACK_APART if field == "stack_max" else COUNTS_APART[name.split("_")[0]] * x
        if abs(x - y) > (0 if field in ("rays", "hits", "overflows") else allowed):
            bad.append(f"{name}.{field}: {x} against {y}")
    return bad
