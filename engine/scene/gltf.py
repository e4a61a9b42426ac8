"""glTF 2.0 (.glb, .gltf) to scene parts: nodes, primitives, cameras, skins and our extras.

Read with pygltflib and our own accessor decoding, not through trimesh, because trimesh loses
what the frame needs: base colour factors are rounded to 8 bits, and sampler wrap modes, texture
transforms, skins and area-light extras are dropped (its uvs are flipped and its arrays widened to
64 bits besides). Tests hold the counts and world boxes equal to trimesh's.

Extras: a node's `extras.treeline` may hold `area_light` {"size": [w, h] metres along its X and Y,
"radiance": [r, g, b]} (it emits along -Z), `lifetime` and `mask` (both also for the nodes below
it); a scene's `extras.treeline` may hold `environment` {"zenith", "horizon", "ground"}.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError
from engine.scene.camera import Camera
from engine.scene.gltf_data import GltfData, open_gltf
from engine.scene.gltf_materials import MaterialReader
from engine.scene.light import Environment, RectLight
from engine.scene.mesh import F32, F64, U8, U32, Mesh, make_mesh
from engine.scene.scene import LIFETIMES, Instance, Parts
from engine.scene.skin import blend_matrices, joint_matrices, skin_normals, skin_positions

_TRIANGLES, _STRIP, _FAN = 4, 5, 6  # primitive.mode (glTF 2.0, section 5.24)
_MODE_NAMES = {0: "points", 1: "lines", 2: "line loops", 3: "line strips"}


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node of the shown scene with what it inherits: world transform, mask, lifetime."""

    index: int
    node: Any
    name: str
    world: F64
    mask: int
    lifetime: str


def import_gltf(path: Path, data: bytes) -> tuple[Parts, list[bytes]]:
    """The parts of a .glb or .gltf file, and the bytes of the files that it refers to."""
    asset = open_gltf(path, data)
    try:
        return _Importer(asset).run(), asset.referred
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        # JSON of the wrong shape (a string for a number) breaks wherever it is first used
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: damaged glTF ({reason})") from error


class _Importer:
    def __init__(self, data: GltfData) -> None:
        self.data = data
        self.materials = MaterialReader(data)
        self.meshes: list[Mesh] = []
        self.instances: list[Instance] = []
        self.notes: dict[str, int] = {}
        self._shared: dict[tuple[int, int], int] = {}
        self._names: dict[str, int] = {}

    def run(self) -> Parts:
        nodes = list(self._placed_nodes())
        worlds = {placed.index: placed.world for placed in nodes}
        camera, lights = None, []
        for placed in nodes:
            if placed.node.mesh is not None:
                self._place_mesh(placed, worlds)
            if placed.node.camera is not None and camera is None:
                camera = self._camera(placed)
            if "area_light" in _treeline(placed.node):
                lights.append(self._area_light(placed))
        if len(lights) > 1:
            self._note("more area lights than the one that is used")
        if "KHR_lights_punctual" in (self.data.document.extensionsUsed or []):
            self._note("point, spot and directional lights are not used")
        notes = [k if n == 1 else f"{k} ({n} times)" for k, n in self.notes.items()]
        return Parts(
            meshes=tuple(self.meshes),
            materials=tuple(self.materials.materials),
            textures=tuple(self.materials.textures),
            instances=tuple(self.instances),
            camera=camera,
            light=lights[0] if lights else None,
            environment=self._environment(),
            notes=(*notes, *self.materials.notes()),
        )

    # nodes

    def _scene(self) -> Any:
        document = self.data.document
        if not document.scenes:
            return None
        return self.data.item("scenes", document.scene if document.scene is not None else 0)

    def _placed_nodes(self) -> Iterator[PlacedNode]:
        """Depth first, in file order. Nodes must form a tree (glTF 2.0, section 3.5.2)."""
        scene, nodes = self._scene(), self.data.document.nodes or []
        if scene is not None:
            roots = scene.nodes or []
        else:
            children = {child for node in nodes for child in node.children or []}
            roots = [i for i in range(len(nodes)) if i not in children]
        seen: set[int] = set()
        stack = [(index, np.eye(4), 0xFF, "static") for index in reversed(roots)]
        while stack:
            index, parent, mask, lifetime = stack.pop()
            node = self.data.item("nodes", index)
            name = node.name or f"node {index}"
            if index in seen:
                raise self.data.fail(f"node {name} is reached twice: nodes must form a tree")
            seen.add(index)
            world = parent @ _local_transform(node)
            if not np.isfinite(world).all():
                raise self.data.fail(f"node {name} has a transform that is not finite")
            extras = _treeline(node)
            mask, lifetime = extras.get("mask", mask), extras.get("lifetime", lifetime)
            if not isinstance(mask, int) or not 0 <= mask <= 0xFF:
                raise self.data.fail(f"node {name} has mask {mask}, not a number from 0 to 255")
            if lifetime not in LIFETIMES:
                raise self.data.fail(f"node {name} has lifetime {lifetime}, not one of {LIFETIMES}")
            yield PlacedNode(index, node, name, world, mask, lifetime)
            stack += [(c, world, mask, lifetime) for c in reversed(node.children or [])]

    def _camera(self, placed: PlacedNode) -> Camera | None:
        camera = self.data.item("cameras", placed.node.camera)
        if camera.perspective is None:
            self._note("an orthographic camera is not used")
            return None
        y_fov = float(camera.perspective.yfov)
        axes = placed.world[:3, :3]
        length = np.linalg.norm(axes, axis=0)
        if not 0 < y_fov < np.pi or not (length > 0).all():
            raise self.data.fail(f"camera {placed.name} sees nothing (yfov {y_fov})")
        transform = placed.world.copy()
        transform[:3, :3] = axes / length  # a camera has no size
        return Camera(transform, y_fov)

    def _area_light(self, placed: PlacedNode) -> RectLight:
        light = _treeline(placed.node)["area_light"]
        name = f"area light {placed.name}"
        width, height = self._numbers(light["size"], 2, name)
        axes = placed.world[:3, :3]
        half_u, half_v = axes[:, 0] * width / 2, -axes[:, 1] * height / 2
        normal = np.cross(half_u, half_v)
        if not np.linalg.norm(normal) > 0:
            raise self.data.fail(f"{name} has no area")
        if normal @ axes[:, 2] > 0:  # a mirrored node: keep it shining along -Z
            half_v = -half_v
        return RectLight(
            placed.world[:3, 3].copy(),
            half_u,
            half_v,
            self._numbers(light["radiance"], 3, name),  # type: ignore[arg-type]
        )

    def _environment(self) -> Environment | None:
        scene = self._scene()
        colors = _treeline(scene).get("environment") if scene is not None else None
        if colors is None:
            return None
        zenith, horizon, ground = (
            self._numbers(colors[key], 3, "environment") for key in ("zenith", "horizon", "ground")
        )
        return Environment(zenith, horizon, ground)  # type: ignore[arg-type]

    # meshes

    def _place_mesh(self, placed: PlacedNode, worlds: dict[int, F64]) -> None:
        mesh = self.data.item("meshes", placed.node.mesh)
        mesh_name = mesh.name or f"mesh {placed.node.mesh}"
        if any(mesh.weights or []):
            self._note("morph targets are not applied")
        skinned = placed.node.skin is not None
        matrices = self._joints(placed, worlds) if skinned else None
        for k, primitive in enumerate(mesh.primitives):
            part = f"/{k}" if len(mesh.primitives) > 1 else ""
            mode = _TRIANGLES if primitive.mode is None else primitive.mode
            if mode not in (_TRIANGLES, _STRIP, _FAN):
                self._note(f"{_MODE_NAMES.get(mode, f'mode {mode}')} are not drawn")
                continue
            key = (placed.node.mesh, k)
            if skinned:
                posed = self._primitive(mesh_name + part, primitive, mode, matrices)
                index = self._add(posed)
            else:
                if key not in self._shared:
                    self._shared[key] = self._add(
                        self._primitive(mesh_name + part, primitive, mode, None)
                    )
                index = self._shared[key]
            self.instances.append(
                Instance(
                    name=self._unique((placed.node.name or mesh_name) + part),
                    mesh=index,
                    transform=np.eye(4) if skinned else placed.world,
                    mask=placed.mask,
                    lifetime="deforming" if skinned else placed.lifetime,
                )
            )

    def _primitive(self, name: str, primitive: Any, mode: int, matrices: F64 | None) -> Mesh:
        attributes, data = primitive.attributes, self.data
        if attributes is None or attributes.POSITION is None:
            raise data.fail(f"mesh {name} has no positions")
        positions: NDArray[np.floating] = data.floats(attributes.POSITION, 3)
        count = len(positions)
        triangles = self._triangles(name, primitive, mode, count)
        material = self.materials.material(primitive.material)
        uv = self.materials.uv_sources[material]
        normals: NDArray[np.floating] | None = None
        if attributes.NORMAL is not None:
            normals = data.floats(attributes.NORMAL, 3)
        uvs: F32 | None = None
        texcoord = getattr(attributes, f"TEXCOORD_{uv.texcoord}", None)
        if texcoord is not None:
            uvs = uv.apply(data.floats(texcoord, 2))
        colors: U8 | None = None
        if attributes.COLOR_0 is not None:
            colors = self._colors(attributes.COLOR_0)
        for values, label in ((normals, "normals"), (uvs, "uvs"), (colors, "colours")):
            if values is not None and len(values) != count:
                raise data.fail(f"mesh {name} has {count} positions and {len(values)} {label}")
        if matrices is not None:
            blended = self._blend(name, attributes, matrices, count)
            positions = skin_positions(positions, blended)
            normals = None if normals is None else skin_normals(normals, blended)
        return make_mesh(name, positions, triangles, material, normals, uvs, colors)

    def _triangles(self, name: str, primitive: Any, mode: int, vertex_count: int) -> U32:
        if primitive.indices is None:
            flat = np.arange(vertex_count, dtype=np.uint32)
        else:
            stored = self.data.accessor(primitive.indices)
            if stored.dtype.kind != "u" or stored.shape[1] != 1:
                raise self.data.fail(f"mesh {name} has indices of a wrong type")
            flat = stored[:, 0].astype(np.uint32)
        if len(flat) and int(flat.max()) >= vertex_count:
            raise self.data.fail(
                f"mesh {name} has index {int(flat.max())}, but {vertex_count} vertices"
            )
        if mode == _TRIANGLES:
            if len(flat) % 3:
                raise self.data.fail(f"mesh {name} has {len(flat)} indices, no multiple of 3")
            return flat.reshape(-1, 3)
        corner = np.arange(max(len(flat) - 2, 0))
        if mode == _FAN:
            first = np.zeros_like(corner)
            return flat[np.stack([corner + 1, corner + 2, first], axis=1)]
        odd = corner % 2  # every second triangle of a strip is wound the other way
        return flat[np.stack([corner, corner + 1 + odd, corner + 2 - odd], axis=1)]

    def _colors(self, accessor: int) -> U8:
        values = self.data.floats(accessor, self.data.accessor(accessor).shape[1])
        stored = np.nan_to_num(values, nan=1.0, posinf=1.0, neginf=0.0)
        if stored.shape[1] not in (3, 4):
            raise self.data.fail(f"accessor {accessor} is no colour: {stored.shape[1]} components")
        colors = np.full((len(stored), 4), 255, np.uint8)
        colors[:, : stored.shape[1]] = np.rint(stored.clip(0, 1) * 255).astype(np.uint8)
        return colors

    # skins

    def _joints(self, placed: PlacedNode, worlds: dict[int, F64]) -> F64:
        """[j, 4, 4] bind pose to world for the pose that the file's nodes stand in."""
        skin = self.data.item("skins", placed.node.skin)
        missing = [j for j in skin.joints or [] if j not in worlds]
        if missing or not skin.joints:
            raise self.data.fail(f"skin of {placed.name} has joints outside the scene: {missing}")
        world = np.stack([worlds[joint] for joint in skin.joints])
        if skin.inverseBindMatrices is None:
            return world
        inverse_bind = self.data.matrices(skin.inverseBindMatrices)
        if len(inverse_bind) < len(world):
            raise self.data.fail(f"skin of {placed.name} has {len(inverse_bind)} bind matrices")
        return joint_matrices(world, inverse_bind[: len(world)])

    def _blend(self, name: str, attributes: Any, matrices: F64, count: int) -> F64:
        """[v, 4, 4] from every JOINTS_n / WEIGHTS_n pair."""
        joints, weights = [], []
        while (at := getattr(attributes, f"JOINTS_{len(joints)}", None)) is not None:
            weight = getattr(attributes, f"WEIGHTS_{len(joints)}", None)
            if weight is None:
                break
            joints.append(self.data.accessor(at).astype(np.int64))
            weights.append(self.data.floats(weight, 4).astype(np.float64))
        if not joints or any(len(a) != count or a.shape[1] != 4 for a in (*joints, *weights)):
            raise self.data.fail(f"skinned mesh {name} lacks a joint and weight for each vertex")
        joint = np.concatenate(joints, axis=1)
        if joint.size and int(joint.max()) >= len(matrices):
            raise self.data.fail(
                f"mesh {name} uses joint {int(joint.max())} of a skin with {len(matrices)}"
            )
        return blend_matrices(matrices, joint, np.concatenate(weights, axis=1))

    # small things

    def _add(self, mesh: Mesh) -> int:
        self.meshes.append(mesh)
        return len(self.meshes) - 1

    def _note(self, what: str) -> None:
        self.notes[what] = self.notes.get(what, 0) + 1

    def _unique(self, name: str) -> str:
        """`name`, with #2, #3... for repeated ones: reports are keyed by instance name."""
        self._names[name] = self._names.get(name, 0) + 1
        return name if self._names[name] == 1 else f"{name}#{self._names[name]}"

    def _numbers(self, values: Any, count: int, name: str) -> tuple[float, ...]:
        numbers = tuple(float(v) for v in values)
        if len(numbers) != count or not np.isfinite(numbers).all():
            raise self.data.fail(f"{name} has {values}, not {count} finite numbers")
        return numbers


def _treeline(item: Any) -> dict[str, Any]:
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
