"""Treeline from Python: `import treeline as tl`.

    scene = tl.load("kitchen.glb")            # or tl.load() for the embedded hall
    prepared = tl.build(scene, nodes="fp32")
    picture = tl.render(prepared, 1280, 720)  # U8 [720, 1280, 3] sRGB
    answer = tl.cast_rays(prepared, rays)     # rays float32 [n, 6]: origin, direction
    caster = tl.ray_caster(prepared)          # for many calls: caster.cast(rays)

What a user can mend raises `tl.UserError` or one of its kinds (engine/gpu/errors.py); arrays of
another shape, or with numbers that mean nothing, raise ValueError. Lengths are metres, angles
radians. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bvh import build_defaults as default
from engine.gpu.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from engine.gpu.device import Device
    from engine.scene.scene import Scene
    from passes.prepare import PreparedScene
    from treeline.casting import RayCaster

__all__ = ["UserError", "build", "cast_rays", "load", "open_device", "ray_caster", "render"]


def load(
    path: str | Path | None = None, assets: Sequence[str] = (), *, allow_outside: bool = False
) -> Scene:
    """The scene in a .glb, .gltf, .obj, .ply or .stl file, that which a .toml file describes
    (`engine.scene.describe`), or the embedded one. `assets` are more folders that a .toml's paths
    may lead to, `FOLDER` or `NAME=FOLDER`; `allow_outside` lets them lead anywhere. Raises
    UserError for a file that is missing, damaged or without triangles."""
    from treeline.scenes import load as load_scene

    return load_scene(path, assets, allow_outside=allow_outside)


def open_device(adapter: str | None = None) -> Device:
    """The best adapter, or the one whose name contains `adapter`. Raises AdapterError."""
    from engine.gpu.device import open_device as open_named

    return open_named(adapter)


def build(
    scene: Scene,
    *,
    builder: str = default.BUILDER,
    leaf: int = default.LEAF,
    nodes: str = default.NODES,
    collapse: str = default.COLLAPSE,
    optimize: int = default.REINSERTION,
    pairing: str = default.PAIRING,
    opacity: str = default.OPACITY,
    group: str = "static",
    device: Device | None = None,
) -> PreparedScene:
    """The scene with its structures, ready to be rendered and traced. Options as in the
    command line: `treeline build --help`. With a `device` and near pairing it is built there, to
    the same bytes. Raises UserError for an unknown value and for geometry out of range."""
    from bvh.build import BuildOptions
    from engine.scene.scene import Scene
    from passes.prepare import prepare

    if not isinstance(scene, Scene):
        raise TypeError(f"build takes a scene that load gave, not {type(scene).__name__}")

    options = BuildOptions(
        builder=builder,
        nodes=nodes,
        leaf=leaf,
        collapse=collapse,
        reinsertion=optimize,
        pairing=pairing,
        opacity=opacity,
    )
    return prepare(scene, options, group, device=device)


def render(
    prepared: PreparedScene,
    width: int,
    height: int,
    *,
    device: Device | None = None,
    samples: int = 1,
    **options: Any,
) -> NDArray[np.uint8]:
    """The hybrid frame as sRGB [height, width, 3], the mean of `samples` frames from the scene's
    own camera. `options` are fields of FrameOptions (passes/frame_options.py): `seed`,
    `reflection_bounces`, `history`, ... Raises UserError for a value that is not allowed and for a
    picture beyond the adapter's limits, TypeError for an option that there is not, RuntimeError for
    a frame that lost rays."""
    from passes.hybrid import FrameOptions, HybridFrame
    from passes.prepare import PreparedScene
    from treeline.draw_pictures import draw

    if not isinstance(prepared, PreparedScene):
        raise TypeError(f"render takes a scene that build gave, not {type(prepared).__name__}")
    if samples < 1:
        raise UserError(f"a picture is the mean of 1 sample or more, not {samples}")
    settings = FrameOptions(width, height, **options)
    frame = HybridFrame(device or open_device(), prepared, settings)
    stats, _ = draw(frame, samples)
    if not stats.valid:
        raise RuntimeError("; ".join(stats.failures))
    return frame.image()


def cast_rays(
    prepared: PreparedScene,
    rays: ArrayLike,
    *,
    device: Device | None = None,
    any_hit: bool = False,
) -> dict[str, NDArray[Any]]:
    """The closest hit of each ray (or some hit, with `any_hit`), traced on the GPU.

    `rays` is [n, 6] (origin, direction) or [n, 8] (origin, t_min, direction, t_max), taken as
    float32, in metres; any number of them. Directions are used as given, so t counts in their
    lengths; a direction of zeros hits nothing. Everything is taken as opaque. Gives `t_hit`
    float32 [n] (inf on a miss), `uv` float32 [n, 2] (weights of the triangle's second and third
    vertex), and `object_ids`, `primitive_ids`, `instance_ids` uint32 [n] (0xffffffff on a miss).
    Raises ValueError for another shape, and for a ray that is not finite in float32 (t_max may be
    inf) with its number; TypeError for a scene that was not built and for complex numbers;
    RuntimeError where traversal failed. Each call opens a device, unless it is given one, and
    compiles a kernel; `ray_caster` does that once.
    """
    return ray_caster(prepared, device=device).cast(rays, any_hit=any_hit)


def ray_caster(prepared: PreparedScene, *, device: Device | None = None) -> RayCaster:
    """For many calls over one scene: `caster.cast(rays, any_hit=False)` answers as cast_rays does,
    without a new device, upload and kernel each time. TypeError for a scene that was not built."""
    from treeline.casting import RayCaster

    return RayCaster(prepared, device)
