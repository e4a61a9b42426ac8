"""A frame's statistics out of what was read back: queue headers, counters, times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bvh.counters import COUNTERS, OBJECT_COUNTERS
from bvh.gpu.trace_rays import FAILURES
from engine.frame.frame import FrameTimes
from engine.gpu.device import Device
from passes.frame_data import FrameData
from passes.frame_options import FrameOptions
from passes.frame_stats import FrameStats, RayStats
from passes.frame_uniforms import FrameInputs
from passes.node_histogram import octaves, percentiles
from passes.queue import QUEUE_HEADER
from passes.rays import RayType
from passes.screen_counts import COUNT_NAMES
from passes.sorting import filled_queue

TLAS_NAME = "(TLAS)"
_HEADER_FIELDS = tuple(field.name for field in QUEUE_HEADER.fields)
Numbers = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes moved and waits, of a device so far or of one frame."""

    upload_bytes: int
    readback_bytes: int
    forced_waits: int

    @classmethod
    def so_far(cls, device: Device) -> "Traffic":
        return cls(device.upload_bytes, device.readback_bytes, device.forced_waits)

    def since(self, earlier: "Traffic") -> "Traffic":
        return Traffic(
            self.upload_bytes - earlier.upload_bytes,
            self.readback_bytes - earlier.readback_bytes,
            self.forced_waits - earlier.forced_waits,
        )


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """What reading a frame's numbers takes to know of it: no buffer, as numbers that nobody has
    looked at yet would keep it alive. `candidates` are a ray type's queues of them."""

    options: FrameOptions
    rays: tuple[RayType, ...]
    objects: tuple[str, ...]
    candidates: Mapping[str, tuple[str, ...]]
    timing_source: str

    @classmethod
    def of(cls, data: FrameData) -> "ReadFacts":
        return cls(
            data.options,
            tuple(data.rays),
            data.objects,
            {ray.name: data.candidate_queues(ray) for ray in data.rays},
            data.device.timing_source,
        )


def collect_stats(
    facts: ReadFacts,
    numbers: Numbers,
    times: FrameTimes,
    traffic: Traffic,
    inputs: FrameInputs,
    unbuilt: Sequence[str] = (),
    history_lost: str = "",
) -> FrameStats:
    """Statistics of the frame that `numbers` (`StatisticsLayout.unpack`), `times` and `inputs`
    belong to; `unbuilt` says which trees had no room (`MovingScene.unbuilt`), `history_lost` why
    it remembers no light."""
    return FrameStats(
        **read_times(times),
        **read_counts(facts, numbers, unbuilt),
        **known_of(facts, traffic, inputs, history_lost, times.reused),
    )


def known_of(
    facts: ReadFacts,
    traffic: Traffic,
    inputs: FrameInputs,
    history_lost: str,
    reused: tuple[str, ...],
) -> dict[str, Any]:
    """The fields that nothing has to be read back for."""
    return {
        "counted": facts.options.count,
        "upload_bytes": traffic.upload_bytes,
        "readback_bytes": traffic.readback_bytes,
        "forced_waits": traffic.forced_waits,
        "timing_source": facts.timing_source,
        "history_lost": history_lost,
        "reused": reused,
        "inputs": inputs,
    }


def read_times(times: FrameTimes) -> dict[str, Any]:
    """The fields that tell of time."""
    return {
        "passes": times.passes_ms,
        "frame_total_ms": times.total_ms,
        "frame_gaps_ms": times.gaps_ms,
        "cpu_ms": times.encode_ms,
        "begins": tuple((times.spans_ms[:, 0] - times.spans_ms[0, 0]).tolist()),
    }


def read_ticks(
    names: Sequence[str], ticks: Sequence[int], period_ns: float, encode_ms: float
) -> dict[str, Any]:
    """`read_times` from timestamps that are all written, each `period_ns` long: plain numbers, of
    which there are too few for NumPy to be worth its calls."""
    ms = 1e-6 * period_ns
    begins, ends = ticks[::2], ticks[1::2]
    took = [ms * (end - begin) for begin, end in zip(begins, ends, strict=True)]
    total = ms * (max(ends) - min(begins))
    return {
        "passes": dict(zip(names, took, strict=True)),
        "frame_total_ms": total,
        "frame_gaps_ms": total - sum(took),
        "cpu_ms": encode_ms,
        "begins": tuple([ms * (begin - begins[0]) for begin in begins]),
    }


def read_counts(facts: ReadFacts, numbers: Numbers, unbuilt: Sequence[str]) -> dict[str, Any]:
    """The fields that tell of rays and objects, and of what went wrong."""
    rays: dict[str, RayStats] = {}
    objects: dict[tuple[str, str], dict[str, int]] = {}
    failed = int(numbers["primary_failed"][0])
    for ray in facts.rays:
        record = numbers[ray.queue][0]
        header = dict(zip(_HEADER_FIELDS, record.tolist(), strict=True))
        filled = numbers[filled_queue(facts.options, ray)][0]
        header |= {name: int(filled[name]) for name in ("count", "dropped", "replaced", "lost")}
        failed |= header["failed"]
        basic: dict[str, Any] = {
            "rays": header["count"] - header["dropped"],
            "dropped": header["dropped"],
            "payload_bytes": ray.record.size,
            "replaced": header["replaced"],
            "lost": header["lost"],
            "failed": header["failed"],
            "widened": header["widened"],
            "unlike": header["unlike"],
            "candidates_dropped": sum(
                int(numbers[name][0]["dropped"]) for name in facts.candidates[ray.name]
            ),
        }
        counted = _counted(facts, numbers, ray, header, objects) if facts.options.count else {}
        rays[ray.name] = RayStats(**basic, **counted)
    dropped = sum(r.dropped + r.candidates_dropped for r in rays.values())
    failures = [text for bit, text in FAILURES.items() if failed & bit]
    if dropped:
        failures.append(f"{dropped} rays were dropped by full queues")
    failures += unbuilt
    return {
        "rays": rays,
        "objects": objects,
        "dropped": dropped,
        "valid": not failures,
        "failures": tuple(failures),
        "found": _found(numbers),
    }


def _found(numbers: Numbers) -> dict[str, int] | None:
    """Where reflections were found that were looked for on the screen."""
    if "screen_counts" not in numbers:
        return None
    return dict(zip(COUNT_NAMES, numbers["screen_counts"][0].tolist(), strict=True))


def _not_counted(options: FrameOptions, totals: Mapping[str, int]) -> list[str]:
    """Counters whose zeros mean that nobody counted (bvh/counters.py)."""
    known = totals["rays"] == 0 or totals["subgroup_lanes"] > 0
    lanes = [] if known else ["subgroup_steps", "subgroup_nodes", "subgroup_lanes"]
    steps = ["nodes_fp16", "leaf_blocks"] if options.traversal == "contract" else []
    return [*lanes, *steps]


def _counted(
    facts: ReadFacts,
    numbers: Numbers,
    ray: RayType,
    header: dict[str, int],
    objects: dict[tuple[str, str], dict[str, int]],
) -> dict[str, Any]:
    counters = numbers[f"{ray.name}_counters"]
    totals = dict(zip(COUNTERS, counters[: len(COUNTERS)].tolist(), strict=True))
    rows = counters[len(COUNTERS) :].reshape(-1, len(OBJECT_COUNTERS))
    for name, row in zip((TLAS_NAME, *facts.objects), rows.tolist(), strict=True):
        if any(row):
            objects[name, ray.name] = dict(zip(OBJECT_COUNTERS, row, strict=True))

    histogram = numbers[f"{ray.name}_node_histogram"]
    p50, p95, p99, most = percentiles(histogram, [50, 95, 99, 100])
    result: dict[str, Any] = {
        name: value for name, value in totals.items() if name not in ("rays",)
    }
    result["misses"] = totals["rays"] - totals["hits"]
    result["nodes_miss"] = totals["nodes"] - totals["nodes_hit"]
    result["texture_fetches"] = header["texture_fetches"]
    for name in _not_counted(facts.options, totals):
        result[name] = None
    result["nodes_octaves"] = octaves(histogram)
    return {**result, "nodes_p50": p50, "nodes_p95": p95, "nodes_p99": p99, "nodes_max": int(most)}
