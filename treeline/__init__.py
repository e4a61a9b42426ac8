"""Treeline from Python: `import treeline as tl`.

    scene = tl.load("kitchen.glb")            # or tl.load() for the embedded hall
    prepared = tl.build(scene, nodes="fp32")
    picture = tl.render(prepared, 1280, 720)  # U8 [720, 1280, 3] sRGB
    answer = tl.cast_rays(prepared, rays)     # rays float32 [n, 6]: origin, direction

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

__all__ = ["UserError", "build", "cast_rays", "load", "open_device", "render"]

RAYS_AT_ONCE = 1 << 20  # 32 MiB of records, and as much of hits


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
    RuntimeError where traversal failed.
    """
    import numpy as np

    from bvh.gpu.default_kernel import default_kernel
    from bvh.gpu.trace_rays import RayTracer, Variant, scene_has_fans, scene_has_spheres
    from bvh.rays import make_rays
    from passes.prepare import PreparedScene

    if not isinstance(prepared, PreparedScene):
        raise TypeError(f"cast_rays takes a scene that build gave, not {type(prepared).__name__}")
    if np.iscomplexobj(rays):
        raise TypeError("rays are real numbers, not complex ones")
    with np.errstate(over="ignore"):  # told below
        given = np.asarray(rays, np.float32)
    if given.ndim != 2 or given.shape[1] not in (6, 8):
        raise ValueError(f"rays are [n, 6] or [n, 8], not {list(given.shape)}")
    usable = np.isfinite(given[:, :7]).all(axis=1) & ~np.isnan(given).any(axis=1)
    if not usable.all():
        number = int(usable.argmin())
        raise ValueError(f"ray {number} is not finite: {given[number].tolist()}")
    # A shader may assume that nothing is infinite: no end is the largest float32 there.
    farthest = np.finfo(np.float32).max
    if given.shape[1] == 6:
        records = make_rays(given[:, :3], given[:, 3:], 0.0, farthest)
    else:
        t_max = np.minimum(given[:, 7], farthest)
        records = make_rays(given[:, :3], given[:, 4:7], given[:, 3], t_max)
    device = device or open_device()
    variant = Variant(
        "cast_rays",
        any_hit=any_hit,
        loops=default_kernel(device.info).loops,
        has_alpha=False,
        has_fans=scene_has_fans(prepared.bvh),
        has_spheres=scene_has_spheres(prepared.bvh),
    )
    tracer = RayTracer(device, prepared.bvh.words, variant)
    parts = []
    for first in range(0, max(1, len(records)), RAYS_AT_ONCE):
        trace = tracer.trace(records[first : first + RAYS_AT_ONCE])
        if trace.failures:
            raise RuntimeError("; ".join(trace.failures))
        parts.append(trace.hits)
    hits = np.concatenate(parts)
    miss = hits["object"] == 0xFFFFFFFF
    return {
        "t_hit": np.where(miss, np.float32(np.inf), hits["t"]),
        "uv": np.stack([hits["u"], hits["v"]], axis=1),
        "object_ids": hits["object"],
        "primitive_ids": hits["primitive"],
        "instance_ids": hits["instance"],
    }
