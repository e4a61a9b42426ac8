"""What stands for the reflection ray of a surface too rough to send one, or whose block's sender is
(option `rough_fallback`): the environment in the mirrored direction, its mean over the surface's
lobe, or what the frame's probe shows (passes/probe_passes.py)."""

from passes.frame_options import FrameOptions


def rough_constants(options: FrameOptions) -> dict[str, float]:
    """Overrides of passes/shaders/rough_radiance.wgsl."""
    if options.rough_fallback == "probe":
        return {"ROUGH_PROBE": True, "PROBE_SIZE": options.probe_size}
    return {"ROUGH_LOBE": True} if options.rough_fallback == "lobe" else {}


def probe_texture(options: FrameOptions) -> str:
    """What is bound as `probe`: where nobody reads it any texture of floats."""
    return "probe" if options.rough_fallback == "probe" else "depth"
