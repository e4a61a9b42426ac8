"""A measurement as one document: a context and google-benchmark rows.

Every row has the fields that google-benchmark's compare tool reads (`name`, `run_name`,
`run_type`, `iterations`, `real_time`, `cpu_time`, `time_unit`), `real_time` being the median
over frames, `real_time_p95` its 95th percentile and `samples` all of them. `run` says for each
number which run gave it: "timed", "counted", "computed" (from
counts), "build", "host" or "model". A number that does not
exist is null.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from treeline.cost_model import is_update, mixes_types, predict_frame, traversal_ms, type_ms
from treeline.measure import Measurement, SizeRun, median, p95
from treeline.ray_measures import MEASURES, measured_rays, sum_fields
from treeline.report_context import Setting, make_context, plain
from treeline.report_found import FOUND_ROW
from treeline.report_objects import hit_table_rows, object_rows, update_rows
from treeline.report_reuse import REDRAWN, REUSED
from treeline.report_row import Row, add, is_plain, make_row, ratio, timed_row
from treeline.report_spreads import spread_rows


def make_report(setting: Setting, bvh: Any, measurement: Measurement) -> dict[str, Any]:
    """`context` and `benchmarks`; holds only JSON types, and no NaN."""
    rows = [
        *frame_rows(measurement.main),
        *ray_rows(measurement),
        *found_rows(measurement),
        *spread_rows(measurement),
        *object_rows(measurement),
        *update_rows(measurement),
        *hit_table_rows(measurement),
        *build_rows(bvh),
        *host_rows(measurement),
        *model_rows(measurement),
    ]
    return {"context": make_context(setting, measurement), "benchmarks": [plain(r) for r in rows]}


def frame_rows(timed: SizeRun) -> list[Row]:
    """The frame as a whole, then every pass in frame order."""
    total = [f.frame_total_ms for f in timed.frames]
    gaps = [f.frame_gaps_ms for f in timed.frames]
    cpu = median([f.cpu_ms for f in timed.frames])
    rows = [
        timed_row("frame/total", total, cpu_time=cpu),
        timed_row("frame/gaps", gaps),
    ]
    if timed.redrawn is not None:
        add(rows[0], "timed", **{REDRAWN: timed.redrawn.frame_total_ms})
    for name in timed.frames[0].passes:
        row = timed_row(f"pass/{name}", timed.pass_ms(partial(str.__eq__, name)))
        add(row, "timed", share_of_frame=ratio(row["real_time"], rows[0]["real_time"]))
        reused = sum(name in stats.reused for stats in timed.frames)
        if reused and timed.redrawn is not None:
            add(row, "timed", **{REUSED: reused, REDRAWN: timed.redrawn.passes[name]})
        rows.append(row)
    return rows


def ray_rows(measurement: Measurement) -> list[Row]:
    """One row a ray type: its traversal's time and what one ray of it visits."""
    rows = []
    for ray_type, measured in measured_rays(measurement.main).items():
        frames = measurement.main.frames
        in_timed = frames[-1].rays[ray_type]
        row = timed_row(f"ray/{ray_type}", [traversal_ms(f.passes, ray_type) for f in frames])
        add(
            row,
            "timed",
            rays=in_timed.rays,
            rays_per_pixel=ratio(in_timed.rays, measured.pixels),
            mrays_per_s=ratio(in_timed.rays, 1e3 * row["real_time"]),
            all_passes_ms=median([type_ms(f.passes, ray_type) for f in frames]),
            share_of_frame=ratio(
                median([type_ms(f.passes, ray_type) for f in frames]),
                median([f.frame_total_ms for f in frames]),
            ),
            payload_bytes=in_timed.payload_bytes,
            dropped=max(f.rays[ray_type].dropped for f in frames),
        )
        for field, run, value in sum_fields(measured):
            add(row, run, **{field: value})
        add(row, "counted", **{item.field: item.of(measured) for item in MEASURES})
        rows.append(row)
    return rows


def found_rows(measurement: Measurement) -> list[Row]:
    """Where reflections were found, if they were looked for on the screen: pixels, one row."""
    counted = measurement.main.counted
    found = None if counted is None else counted.found
    if found is None:
        return []
    row = make_row(FOUND_ROW, 1, 0.0)
    row["run"] = {}
    add(row, "counted", **{f"{name}_pixels": count for name, count in found.items()})
    return [row]


def build_rows(bvh: Any) -> list[Row]:
    """One row a BLAS, built once on the host before the frame."""
    rows = []
    uses = Counter(item.blas for item in bvh.instances)
    names = unique_names(bvh.blas_names)
    for number, (name, stats) in enumerate(zip(names, bvh.blas_stats, strict=True)):
        numbers = asdict(stats)
        build_ms = numbers.pop("build_ms")
        row = make_row(f"build/{name}", 1, build_ms, cpu_time=build_ms)
        row["run"] = {"real_time": "build", "cpu_time": "build"}
        add(
            row,
            "build",
            **{k: v for k, v in numbers.items() if is_plain(v)},
            instances=uses[number],
        )
        rows.append(row)
    return rows


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with " (2)" and so on after those that came before: meshes may share one."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result


def host_rows(measurement: Measurement) -> list[Row]:
    """What the host did: compile, encode, move bytes, wait, allocate."""
    timed = measurement.main
    last = timed.frames[-1]
    cold = timed.compile_ms
    warm = measurement.smaller[-1].compile_ms if measurement.smaller else None
    compile_row = make_row("host/compile", 1, cold, cpu_time=cold)
    compile_row["run"] = {"real_time": "host", "cpu_time": "host"}
    add(compile_row, "host", compile_ms_cold=cold, compile_ms_warm=warm)
    cpu = [f.cpu_ms for f in timed.frames]
    cpu_row = timed_row("host/cpu", cpu, cpu_time=median(cpu))
    add(cpu_row, "timed", cpu_ms=median(cpu), cpu_ms_p95=p95(cpu))
    rows = [compile_row, cpu_row]
    for name, fields in (
        ("host/upload", {"upload_bytes": last.upload_bytes}),
        ("host/readback", {"readback_bytes": last.readback_bytes}),
        ("host/waits", {"forced_waits": last.forced_waits}),
        ("host/scratch", {"peak_scratch_bytes": measurement.scratch_bytes}),
    ):
        row = make_row(name, len(timed.frames), 0.0)
        row["run"] = {}
        add(row, "timed", **fields)
        rows.append(row)
    return rows


def model_rows(measurement: Measurement) -> list[Row]:
    """The chapter's cost sum, fitted at other sizes, against what was measured; none where that is
    not a sum over ray types."""
    if not measurement.smaller or mixes_types(measurement.main.frames[0].passes):
        return []
    prediction = predict_frame(measurement.main, measurement.smaller)
    row = make_row("model/frame", len(measurement.main.frames), prediction.predicted)
    row["run"] = {"real_time": "model"}
    add(
        row,
        "model",
        predicted=prediction.predicted,
        residual=prediction.residual,
        residual_share=ratio(prediction.residual, prediction.measured),
    )
    update_ms = median(measurement.main.pass_ms(is_update))
    add(row, "timed", measured=prediction.measured, build_update_cost=update_ms)
    for ray_type, c in prediction.coefficients.items():
        add(
            row,
            "model",
            **{
                f"{ray_type}_ns_per_ray": c.traversal * 1e6,
                f"{ray_type}_ns_per_hit": c.hit * 1e6,
                f"{ray_type}_ns_per_miss": c.miss * 1e6,
                f"{ray_type}_predicted": prediction.terms[ray_type],
            },
        )
    row["fit_sizes"] = list(prediction.fit_sizes)
    shared = [t for t, c in prediction.coefficients.items() if c.shared]
    row["fit"] = (
        "least squares through the origin of each ray type's passes over its ray, hit and miss "
        f"counts at {' and '.join(prediction.fit_sizes)}; measured is the sum of all ray types' "
        "passes; updates are build_update_cost, in neither of them"
    ) + (f"; hits and misses share one coefficient for {', '.join(shared)}" if shared else "")
    return [row]
