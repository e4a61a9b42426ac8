"""One case of a sweep, measured in the process that this runs in."""

import threading
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bvh.blas_cache import BlasCache
from engine.gpu.device import Device, open_device
from engine.gpu.errors import CheckFailed, UserError
from engine.scene.scene import Scene
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from treeline import structures
from treeline.cli.pose import choose_pose
from treeline.cli.profile import Chosen, pick_profile
from treeline.measure import Measurement, measure_size
from treeline.report import make_report
from treeline.report_context import Setting, plain
from treeline.scenes import load
from treeline.sweep import Job
from treeline.version import commit

GPU_WARMUP_MS = 1000.0  # an idle GPU needs about a second of work to reach its clock

# A process measures one case at a time, however many threads it is given.
_alone = threading.Lock()


class Silent:
    """A `treeline.measure.Progress` that nobody sees."""

    def begin(self, text: str, total: int = 1) -> None:
        pass

    def advance(self, detail: str = "") -> None:
        pass


def adapter_name(asked: str | None) -> str:
    """The adapter that is opened for this, with its driver. AdapterError where there is none."""
    return str(open_device(asked).info)


@lru_cache(maxsize=1)
def _device(asked: str | None) -> Device:
    return open_device(asked)


@lru_cache(maxsize=1)
def _scene(path: str | None, sha256: str, assets: tuple[str, ...], allow_outside: bool) -> Scene:
    """Read again where another hash is wanted: a process may outlive what a file held."""
    return load(None if path is None else Path(path), assets, allow_outside=allow_outside)


def attempt(job: Job) -> dict[str, Any]:
    """The case's report, or `error`: the one line of why there is none. Never raises."""
    with _alone:
        try:
            return measure_case(job)
        except UserError as error:
            return {"error": _one_line(str(error))}
        except Exception as error:  # whatever ends a case, the others are measured
            _device.cache_clear()  # which may be lost
            return {"error": _one_line(f"{type(error).__name__}: {error}")}


def measure_case(job: Job) -> dict[str, Any]:
    """The case's report. CheckFailed for an invalid frame, UserError where the scene, the adapter
    or the program is another than the job's."""
    case = job.case
    width, height = case.size
    settings = case.settings()
    device = _device(case.adapter)
    scene = _scene(job.path, job.sha256, job.assets, job.allow_outside)
    for what, wanted, found in (
        ("adapter", job.device, str(device.info)),
        ("scene", job.sha256, scene.sha256),
        ("commit", job.commit, commit()),
    ):
        if wanted != found:
            raise UserError(f"this process has another {what}: {found}, not {wanted}")
    chosen = Chosen()
    if case.profile is not None:
        # Options of a case are asked for, whatever their value is.
        chosen = pick_profile(case.profile, device, dict(case.options), {})
        settings = replace(settings, frame=replace(settings.frame, **chosen.frame))
    pose = choose_pose(scene, case.time, case.clip)
    structure = structures.build(
        scene,
        settings.build,
        settings.group,
        device=device,
        cache=BlasCache() if job.cached else None,
        or_cpu=True,
    )
    on_gpu = GpuScene(device, structure.prepared)

    def make_frame(width: int, height: int, count: bool) -> HybridFrame:
        options = replace(settings.frame, width=width, height=height, count=count)
        frame = HybridFrame(device, structure.prepared, options, on_gpu)
        if pose is not None:
            frame.inputs = replace(frame.inputs, **pose.fields())
        if not count:
            frame.remember()
        return frame

    warmup_ms = 0.0 if device.info.is_cpu else GPU_WARMUP_MS
    run = measure_size(
        make_frame, width, height, case.frames, case.warmup, Silent(), warmup_ms=warmup_ms
    )
    if not run.valid:
        frames = (*run.frames, run.counted)
        lines = dict.fromkeys(line for stats in frames for line in stats.failures)
        raise CheckFailed(f"the frame is not valid: {'; '.join(lines)}")
    setting = Setting(
        scene=scene,
        scene_path=case.scene,
        device=device,
        options=settings.build,
        group=settings.group,
        frame=settings.frame,
        built=structure.context(),
        pose=pose.fields() if pose else {},
    )
    document = make_report(setting, structure.bvh, Measurement(run, (), None))
    document["context"]["options"] = plain(dict(case.options))
    document["context"] |= chosen.context
    return document


def _one_line(text: str) -> str:
    return " ".join(text.split())
