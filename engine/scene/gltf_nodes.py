"""The node tree of a glTF scene: world transforms, and what a node or scene carries besides meshes.

Extras: a node's `extras.treeline` may hold `area_light` {"size": [w, h] metres along its X and Y,
"radiance": [r, g, b]} (it emits along -Z), `lifetime` and `mask` (both also for the nodes below
it); a scene's `extras.treeline` may hold `environment` {"zenith", "horizon", "ground"}.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.scene.camera import Camera
from engine.scene.gltf_data import GltfData
from engine.scene.light import Environment, RectLight
from engine.scene.mesh import F64
from engine.scene.scene import LIFETIMES


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node of the shown scene with what it inherits: world transform, mask, lifetime."""

    index: int
    node: Any
    name: str
    world: F64
    mask: int
    lifetime: str


def shown_scene(data: GltfData) -> Any:
    """The scene that a viewer shows first; None when the file has none."""
    document = data.document
    if not document.scenes:
        return None
    return data.item("scenes", document.scene if document.scene is not None else 0)


def placed_nodes(data: GltfData) -> Iterator[PlacedNode]:
    """Depth first, in file order. Nodes must form a tree (glTF 2.0, section 3.5.2)."""
    scene, nodes = shown_scene(data), data.document.nodes or []
    if scene is not None:
        roots = scene.nodes or []
    else:
        children = {child for node in nodes for child in node.children or []}
        roots = [i for i in range(len(nodes)) if i not in children]
    seen: set[int] = set()
    stack = [(index, np.eye(4), 0xFF, "static") for index in reversed(roots)]
    while stack:
        index, parent, mask, lifetime = stack.pop()
        node = data.item("nodes", index)
        name = node.name or f"node {index}"
        if index in seen:
            raise data.fail(f"node {name} is reached twice: nodes must form a tree")
        seen.add(index)
        world = parent @ _local_transform(node)
        if not np.isfinite(world).all():
            raise data.fail(f"node {name} has a transform that is not finite")
        extras = treeline_extras(node)
        mask, lifetime = extras.get("mask", mask), extras.get("lifetime", lifetime)
        if not isinstance(mask, int) or not 0 <= mask <= 0xFF:
            raise data.fail(f"node {name} has mask {mask}, not a number from 0 to 255")
        if lifetime not in LIFETIMES:
            raise data.fail(f"node {name} has lifetime {lifetime}, not one of {LIFETIMES}")
        yield PlacedNode(index, node, name, world, mask, lifetime)
        stack += [(c, world, mask, lifetime) for c in reversed(node.children or [])]


def read_camera(data: GltfData, placed: PlacedNode) -> Camera | None:
    """The node's perspective camera; None for an orthographic one."""
    camera = data.item("cameras", placed.node.camera)
    if camera.perspective is None:
        return None
    y_fov = float(camera.perspective.yfov)
    axes = placed.world[:3, :3]
    length = np.linalg.norm(axes, axis=0)
    if not 0 < y_fov < np.pi or not (length > 0).all():
        raise data.fail(f"camera {placed.name} sees nothing (yfov {y_fov})")
    transform = placed.world.copy()
    transform[:3, :3] = axes / length  # a camera has no size
    return Camera(transform, y_fov)


def read_area_light(data: GltfData, placed: PlacedNode) -> RectLight:
    """The rectangle that a node's extras describe, in world space."""
    light = treeline_extras(placed.node)["area_light"]
    name = f"area light {placed.name}"
    width, height = _numbers(data, light.get("size"), 2, f"size of {name}")
    radiance = _numbers(data, light.get("radiance"), 3, f"radiance of {name}")
    axes = placed.world[:3, :3]
    half_u, half_v = axes[:, 0] * width / 2, axes[:, 1] * height / 2
    normal = np.cross(half_u, half_v)
    if not np.linalg.norm(normal) > 0:
        raise data.fail(f"{name} has no area")
    if normal @ axes[:, 2] > 0:  # unless the node mirrors, X x Y is +Z and light leaves along -Z
        half_v = -half_v
    return RectLight(
        placed.world[:3, 3].copy(),
        half_u,
        half_v,
        radiance,  # type: ignore[arg-type]
    )


def read_environment(data: GltfData) -> Environment | None:
    """The environment of the scene's extras."""
    scene = shown_scene(data)
    colors = treeline_extras(scene).get("environment") if scene is not None else None
    if colors is None:
        return None
    zenith, horizon, ground = (
        _numbers(data, colors.get(key), 3, f"{key} of the environment")
        for key in ("zenith", "horizon", "ground")
    )
    return Environment(zenith, horizon, ground)  # type: ignore[arg-type]


def _numbers(data: GltfData, values: Any, count: int, name: str) -> tuple[float, ...]:
    """`count` finite, non-negative numbers of an extra."""
    try:
        numbers = tuple(float(v) for v in values)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != count or not all(0 <= n < np.inf for n in numbers):
        raise data.fail(f"{name} is {values}, not {count} finite numbers from 0 up")
    return numbers


def treeline_extras(item: Any) -> dict[str, Any]:
    """`extras.treeline` of a node or scene, empty when there is none."""
    extras = item.extras if isinstance(item.extras, dict) else {}
    ours = extras.get("treeline", {})
    return ours if isinstance(ours, dict) else {}


def _local_transform(node: Any) -> F64:
    """[4, 4] of a node: its matrix, else translation x rotation x scale (3.5.3)."""
    if node.matrix is not None:
        return np.array(node.matrix, np.float64).reshape(4, 4).T
    local = np.eye(4)
    if node.rotation is not None:
        x, y, z, w = np.array(node.rotation, np.float64)
        norm = x * x + y * y + z * z + w * w
        s = 2.0 / norm if norm > 0 else 0.0
        local[:3, :3] = [
            [1 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)],
            [s * (x * y + z * w), 1 - s * (x * x + z * z), s * (y * z - x * w)],
            [s * (x * z - y * w), s * (y * z + x * w), 1 - s * (x * x + y * y)],
        ]
    if node.scale is not None:
        local[:3, :3] *= np.array(node.scale, np.float64)
    if node.translation is not None:
        local[:3, 3] = node.translation
    return local
