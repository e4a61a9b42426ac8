"""Where a report's numbers come from: this program, the adapter, the scene, what was asked for."""

import datetime
import math
import os
import platform
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from passes.frame_options import FrameOptions
from passes.ray_kernel import loops_here
from passes.rays import frame_rays
from treeline.measure import Measurement
from treeline.version import commit, version

SCHEMA = 1
# Of FrameOptions, what a command line may set.
FRAME_FIELDS = (
    "seed",
    "sampler",
    "gbuffer",
    "reflection_scale",
    "upsample",
    "narrow_lobes",
    "reflection_bounces",
    "reflections",
    "shadows",
    "shadow_map_size",
    "probe_size",
    "probe_position",
    "probe_distance",
    "screen_steps",
    "history",
    "denoiser",
    "roughness_cutoff",
    "rough_fallback",
    "shadow_rays",
    "light_choice",
    "traversal",
    "any_hit",
    "any_hit_mode",
    "hit_table",
    "update",
    "passes",
    "compaction",
    "ray_sort",
    "sorted_rays",
    "hit_sort",
)


@dataclass(frozen=True, slots=True)
class Setting:
    """What was asked for, next to the measurement."""

    scene: Any  # engine.scene.scene.Scene, as loaded
    scene_path: str
    device: Any  # engine.gpu.device.Device
    options: Any  # bvh.build.BuildOptions
    group: str
    frame: FrameOptions  # its size is the measurement's
    occlusion: dict[str, Any] = field(default_factory=dict)  # its radius, if there is any
    tuned: dict[str, Any] = field(default_factory=dict)  # what a tuned profile set, if any
    profile: dict[str, Any] = field(default_factory=dict)  # which class of machines it was for
    built: dict[str, Any] = field(default_factory=dict)  # treeline.structures.Structure.context
    pose: dict[str, Any] = field(default_factory=dict)  # clip and time, if any


def make_context(setting: Setting, measurement: Measurement) -> dict[str, Any]:
    """The context of a report."""
    timed = measurement.main
    context = structure_context(
        setting.scene, setting.scene_path, setting.device, setting.options, setting.group
    )
    return (
        context
        | plain(setting.built)
        | plain(setting.occlusion)
        | plain(setting.pose)
        | plain(setting.tuned)
        | plain(setting.profile)
        | plain(
            {
                "width": timed.width,
                "height": timed.height,
                **{name: getattr(setting.frame, name) for name in FRAME_FIELDS},
                "loops": traversal_loops(setting.frame, setting.device.info),
                "frames": len(timed.frames),
                "warmup": timed.warmup,
                "result_hash": timed.result_hash,
                "valid": measurement.valid,
            }
        )
    )


def traversal_loops(options: FrameOptions, adapter: Any) -> dict[str, str]:
    """Ray type -> how many loops its traversal kernel has here (passes/ray_kernel.py)."""
    return {
        ray.name: loops_here(options.kernel_loops(ray.family), adapter)
        for ray in frame_rays(options)
    }


def structure_context(
    scene: Any, scene_name: str, device: Any, options: Any, group: str
) -> dict[str, Any]:
    """The part of a context that has nothing to do with pictures."""
    light = scene.light
    return device_context(device) | plain(
        {
            "scene": scene_name,
            "scene_sha256": scene.sha256,
            "triangles": scene.triangle_count,
            **options_context(options),
            "group": group,
            "light": {
                "source": scene.light_source,
                "center": light.center,
                "half_u": light.half_u,
                "half_v": light.half_v,
                "radiance": light.radiance,
            },
            **({"lights": len(scene.lights)} if scene.more_lights else {}),
            "camera": {"source": scene.camera_source, "transform": scene.camera.transform},
            "notes": scene.notes,
        }
    )


def host_context(device: Any = None) -> dict[str, Any]:
    """`device_context`, or the same without a device: whose times are the CPU's."""
    if device is not None:
        return device_context(device)
    return program_context() | {
        "adapter": None,
        "adapter_type": None,
        "timing_source": "wall-clock, CPU",
        "cpu": platform.processor() or platform.machine(),
    }


def options_context(options: Any) -> dict[str, Any]:
    """BuildOptions by the names of their command line options."""
    return {
        "builder": options.builder,
        "leaf": options.leaf,
        "nodes": options.nodes,
        "collapse": options.collapse,
        "optimize": options.reinsertion,
        "pairing": options.pairing,
        "opacity": options.opacity,
    }


def device_context(device: Any) -> dict[str, Any]:
    """The part of a context that has nothing to do with a scene."""
    return program_context() | {
        "adapter": device.info.adapter,
        "adapter_type": device.info.adapter_type,
        "backend": device.info.backend,
        "driver": device.info.driver,
        "timing_source": device.timing_source,
    }


def program_context() -> dict[str, Any]:
    """The part of a context that has nothing to do with a device."""
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "version": version(),
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "num_cpus": os.cpu_count() or 0,
    }


def plain(value: Any) -> Any:
    """The value in JSON's types; a number that is not finite becomes null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
