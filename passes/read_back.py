"""Gathers a frame's statistics from queue headers, counters and timestamps."""

from collections import defaultdict
from typing import Any

import numpy as np

from bvh.counters import COUNTERS, OBJECT_COUNTERS, buffer_words
from bvh.gpu.trace_rays import FAILURES
from engine.frame.frame import FrameTimes
from passes.frame_data import FrameData
from passes.frame_stats import FrameStats, RayStats
from passes.rays import RAY_TYPES, RayType

TLAS_NAME = "(TLAS)"


def collect_stats(data: FrameData, times: FrameTimes, before: tuple[int, int, int]) -> FrameStats:
    """Statistics of the frame that `times` belongs to. `before` holds the device's
    upload_bytes, readback_bytes and forced_waits when the frame began."""
    device = data.device
    rays: dict[str, RayStats] = {}
    objects: dict[tuple[str, str], dict[str, int]] = {}
    failed = int(device.read(data.resources["primary_failed"], np.uint32, count=1)[0])
    for ray in RAY_TYPES:
        header = data.read_header(ray)
        failed |= header["failed"]
        basic: dict[str, Any] = {
            "rays": header["count"] - header["dropped"],
            "dropped": header["dropped"],
            "payload_bytes": ray.record.size,
            "replaced": header["replaced"],
            "failed": header["failed"],
        }
        counted = _read_counters(data, ray, header, objects) if data.options.count else {}
        rays[ray.name] = RayStats(**basic, **counted)
    dropped = sum(r.dropped for r in rays.values())
    failures = [text for bit, text in FAILURES.items() if failed & bit]
    if dropped:
        failures.append(f"{dropped} rays were dropped by full queues")
    return FrameStats(
        passes=times.passes_ms,
        frame_total_ms=times.total_ms,
        frame_gaps_ms=times.gaps_ms,
        cpu_ms=times.encode_ms,
        rays=rays,
        objects=objects,
        dropped=dropped,
        valid=not failures,
        counted=data.options.count,
        upload_bytes=device.upload_bytes - before[0],
        readback_bytes=device.readback_bytes - before[1],
        forced_waits=device.forced_waits - before[2],
        timing_source=device.timing_source,
        failures=tuple(failures),
    )


def _read_counters(
    data: FrameData,
    ray: RayType,
    header: dict[str, int],
    objects: dict[tuple[str, str], dict[str, int]],
) -> dict[str, Any]:
    words = buffer_words(data.instance_count)
    counters = data.device.read(data.resources[f"{ray.name}_counters"], np.uint32, count=words)
    totals = dict(zip(COUNTERS, counters[: len(COUNTERS)].tolist(), strict=True))
    spent = counters[len(COUNTERS) :].reshape(-1, len(OBJECT_COUNTERS)).astype(np.int64)
    names = (TLAS_NAME, *data.scene.prepared.object_names)
    by_name: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(OBJECT_COUNTERS), np.int64))
    for name, row in zip(names, spent, strict=False):
        by_name[name] += row
    for name, row in by_name.items():
        if row.any():
            objects[name, ray.name] = dict(zip(OBJECT_COUNTERS, row.tolist(), strict=True))

    nodes = data.read_slot_counts(ray, "nodes")
    sent = nodes[nodes > 0]
    p50, p95, most = np.percentile(sent, [50, 95, 100]).tolist() if len(sent) else (0.0, 0.0, 0.0)
    result: dict[str, Any] = {
        name: value for name, value in totals.items() if name not in ("rays",)
    }
    result["misses"] = totals["rays"] - totals["hits"]
    result["nodes_miss"] = totals["nodes"] - totals["nodes_hit"]
    result["texture_fetches"] = header["texture_fetches"]
    return {**result, "nodes_p50": p50, "nodes_p95": p95, "nodes_max": int(most)}
