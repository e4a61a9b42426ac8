"""What another rasteriser sees: depth and objects by pyrender over EGL, and the difference.

pyrender (OpenGL) shares no code with this project. It knows no alpha test, so pixels where either
side sees an alpha-tested object are left out. Depth is metres along the view axis, inf on a miss.

Traps: PYOPENGL_PLATFORM has to be set before the import; 0.1.45 reads `np.infty`, which numpy 2
removed; it renders 4x multisampled and reads sample 0, which lies beside the pixel's centre.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import AdapterError, UserError
from engine.scene.scene import Scene
from treeline.pictures import U8, palette

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

# Relative depth error that still counts as equal: both sides interpolate in float32, and OpenGL's
# depth buffer has 24 bits between its planes.
DEPTH_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class OracleView:
    """`depth` [h, w], inf on a miss; `objects` [h, w] index of the scene's instance, -1 on a
    miss."""

    depth: F32
    objects: I64


@dataclass(frozen=True, slots=True)
class Difference:
    """Counts of pixels. `silhouette`: only one side hits; `depth`: both hit, too far apart;
    `object`: equal depth, another object (coplanar ones may go either way)."""

    pixels: int
    compared: int
    silhouette: int
    depth: int
    object: int
    picture: U8

    def __str__(self) -> str:
        return (
            f"{self.compared:,} of {self.pixels:,} pixels compared: {self.silhouette:,} hit on one "
            f"side only, {self.depth:,} differ in depth, {self.object:,} in object"
        )

    def summary(self) -> dict[str, int]:
        return {
            name: getattr(self, name)
            for name in ("pixels", "compared", "silhouette", "depth", "object")
        }


def render_oracle(scene: Scene, width: int, height: int) -> OracleView:
    """Renders with pyrender. UserError where it is not installed, AdapterError without EGL."""
    pyrender = _import_pyrender()
    aspect = width / height
    near, far = _planes(scene)
    camera = pyrender.PerspectiveCamera(
        yfov=scene.camera.y_fov, znear=near, zfar=far, aspectRatio=aspect
    )
    there = pyrender.Scene()
    there.add(camera, pose=scene.camera.transform)
    colours: dict[Any, tuple[int, int, int]] = {}
    made: dict[int, Any] = {}
    for index, instance in enumerate(scene.instances):
        mesh = scene.meshes[instance.mesh]
        if not len(mesh.triangles):
            continue
        if instance.mesh not in made:
            primitive = pyrender.Primitive(
                positions=mesh.positions, indices=mesh.triangles.astype(np.uint32), mode=4
            )
            made[instance.mesh] = pyrender.Mesh([primitive])
        node = there.add(made[instance.mesh], pose=instance.transform)
        number = index + 1  # 0 is the background
        colours[node] = (number & 255, number >> 8 & 255, number >> 16 & 255)
    try:
        renderer = pyrender.OffscreenRenderer(width, height)
    except Exception as error:
        raise AdapterError(f"pyrender has no EGL context here: {error}") from error
    try:
        flags = pyrender.RenderFlags.SEG | pyrender.RenderFlags.SKIP_CULL_FACES
        seen, depth = renderer.render(there, flags=flags, seg_node_map=colours)
    finally:
        renderer.delete()
    wide = seen.astype(np.int64)
    objects = (wide[..., 0] | wide[..., 1] << 8 | wide[..., 2] << 16) - 1
    return OracleView(np.where(depth > 0, depth, np.float32(np.inf)), objects)


def compare(scene: Scene, oracle: OracleView, depth: F32, objects: I64) -> Difference:
    """The oracle's view against a frame's `depth` and `object` outputs, both [h, w]."""
    opaque = np.array(
        [scene.materials[scene.meshes[i.mesh].material].opaque for i in scene.instances] + [True]
    )  # the last entry is what index -1, a miss, picks
    compared = opaque[objects] & opaque[oracle.objects]
    hit, oracle_hit = np.isfinite(depth), np.isfinite(oracle.depth)
    silhouette = compared & (hit != oracle_hit)
    both = compared & hit & oracle_hit
    error = np.zeros(depth.shape)
    error[both] = np.abs(depth[both].astype(np.float64) / oracle.depth[both] - 1.0)
    wrong_depth = both & (error > DEPTH_TOLERANCE)
    wrong_object = both & ~wrong_depth & (objects != oracle.objects)

    shade = palette("viridis")[np.clip(error / DEPTH_TOLERANCE * 255, 0, 255).astype(np.uint8)]
    picture = np.where(both[..., None], shade // 2, 0).astype(np.uint8)
    picture[~compared] = (40, 40, 90)
    picture[wrong_object] = (255, 160, 0)
    picture[wrong_depth] = (255, 255, 255)
    picture[silhouette] = (255, 0, 0)
    return Difference(
        pixels=depth.size,
        compared=int(compared.sum()),
        silhouette=int(silhouette.sum()),
        depth=int(wrong_depth.sum()),
        object=int(wrong_object.sum()),
        picture=picture,
    )


def _planes(scene: Scene) -> tuple[float, float]:
    """Near and far plane, as tight as the scene's box allows: depth precision hangs on them."""
    low, high = scene.bounds()
    corners = np.array(
        [[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
    )
    along = (corners - scene.camera.position) @ scene.camera.forward
    diagonal = float(np.linalg.norm(high - low)) or 1.0
    far = max(float(along.max()) * 1.01, 1e-3 * diagonal)
    return max(float(along.min()) * 0.99, 1e-3 * min(far, diagonal)), far


def _import_pyrender() -> Any:
    os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
    if not hasattr(np, "infty"):
        np.infty = np.inf  # type: ignore[attr-defined]  # noqa: NPY201
    try:
        import pyrender
        from pyrender import renderer
    except ImportError as error:
        raise UserError(f"the oracle needs pyrender, a test extra ({error})") from error
    if not getattr(renderer, "single_sample", False):
        multisample = renderer.glRenderbufferStorageMultisample

        def single(target: Any, samples: Any, kind: Any, width: Any, height: Any) -> None:
            multisample(target, 0, kind, width, height)

        renderer.glRenderbufferStorageMultisample = single
        renderer.single_sample = True
    return pyrender
