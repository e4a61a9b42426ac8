"""Twin of rough_radiance.wgsl: what stands for a reflection ray that was not sent."""

from typing import Any

from passes.twins.camera import camera_direction
from passes.twins.environment import ambient_radiance, environment
from passes.twins.gbuffer import GBufferSurface, Pixels
from passes.twins.probe import probe_radiance
from passes.twins.wgsl_functions import F32, mix, normalize, reflect


def lobe_environment(frame: Any, mirrored: F32, normal: F32, roughness: F32) -> F32:
    """[n, 3]"""
    alpha = (roughness * roughness)[:, None]
    middle = normalize(mix(mirrored, normal, alpha))
    return mix(environment(frame, middle), ambient_radiance(frame, middle), alpha)


def rough_radiance(
    frame: Any,
    s: GBufferSurface,
    view: F32,
    pixels: Pixels,
    depth: F32,
    probe: F32,
    fallback: str = "environment",
) -> F32:
    """[n, 3] for surfaces that `pixels` see; `fallback` is FrameOptions.rough_fallback."""
    mirrored = reflect(-view, s.shading_normal)
    if fallback == "probe":
        away = depth[pixels.y, pixels.x][:, None] * camera_direction(frame, pixels.x, pixels.y)
        position = frame["camera_origin"][:3] + away
        return probe_radiance(frame, probe, position, mirrored, s.roughness)
    if fallback == "lobe":
        return lobe_environment(frame, mirrored, s.shading_normal, s.roughness)
    return environment(frame, mirrored)
