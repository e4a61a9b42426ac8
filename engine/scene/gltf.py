"""glTF 2.0 (.glb, .gltf) to scene parts: nodes, primitives, skins, morph targets, our extras.

Read with pygltflib and our own accessor decoding, not through trimesh, because trimesh loses
what the frame needs: base colour factors are rounded to 8 bits, and sampler wrap modes, texture
transforms, skins and area-light extras are dropped (its uvs are flipped and its arrays widened to
64 bits besides). Tests hold the counts and world boxes equal to trimesh's.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError
from engine.scene.animation import SkinnedMesh
from engine.scene.asset_folders import Folders
from engine.scene.gltf_animation import read_animation
from engine.scene.gltf_data import GltfData, open_gltf, unsupported_extensions
from engine.scene.gltf_materials import MaterialReader
from engine.scene.gltf_morph import read_targets, read_weights, weighted_nodes
from engine.scene.gltf_nodes import (
    PlacedNode,
    placed_nodes,
    read_area_light,
    read_camera,
    read_environment,
    treeline_extras,
)
from engine.scene.gltf_skin import read_influences, read_joints
from engine.scene.mesh import F32, F64, U8, U32, Mesh, make_mesh, unit_rows
from engine.scene.morph import MorphTargets, morphed
from engine.scene.scene import Instance, Parts

_TRIANGLES, _STRIP, _FAN = 4, 5, 6  # primitive.mode (glTF 2.0, section 5.24)
_MODE_NAMES = {0: "points", 1: "lines", 2: "line loops", 3: "line strips"}


def import_gltf(path: Path, data: bytes, inside: Folders = None) -> tuple[Parts, list[bytes]]:
    """The parts of a .glb or .gltf file, and the bytes of the files that it refers to, which have
    to lie in the folders `inside`."""
    asset = open_gltf(path, data)
    asset.inside = inside
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # values are checked where they matter
            return _Importer(asset).run(), asset.referred
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # JSON of the wrong shape (a string for a number) breaks wherever it is first used
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: damaged glTF ({reason})") from error


@dataclass(frozen=True, slots=True)
class _Bound:
    """What deforms the mesh of `node`: a skin whose joints stand at `matrices` [j, 4, 4] in the
    file, by the mesh's influences or as its only joint, and clips that change its weights."""

    node: int
    skin: int
    matrices: F64
    by_skin: bool
    morphs: bool


class _Importer:
    def __init__(self, data: GltfData) -> None:
        self.data = data
        self.materials = MaterialReader(data)
        self.meshes: list[Mesh] = []
        self.instances: list[Instance] = []
        self.instance_nodes: list[int] = []
        self.skinned: list[SkinnedMesh] = []
        self.notes: dict[str, int] = {}
        self.joint_nodes: list[int] = []  # of meshes that clips morph and no skin moves
        self.weights: dict[int, F64] = {}  # of nodes whose meshes clips morph
        self._weighted = weighted_nodes(data)
        self._shared: dict[tuple[int, int, bytes], int] = {}
        self._names: dict[str, int] = {}

    def run(self) -> Parts:
        nodes = list(placed_nodes(self.data))
        worlds = {placed.index: placed.world for placed in nodes}
        camera, lights = None, []
        for placed in nodes:
            if placed.node.mesh is not None:
                self._place_mesh(placed, worlds)
            if placed.node.camera is not None and camera is None:
                camera = read_camera(self.data, placed)
                if camera is None:
                    self._note("an orthographic camera is not used")
            if "area_light" in treeline_extras(placed.node):
                lights.append(read_area_light(self.data, placed))
        if "KHR_lights_punctual" in (self.data.document.extensionsUsed or []):
            self._note("point, spot and directional lights are not used")
        for extension in unsupported_extensions(self.data.document.extensionsUsed):
            if not extension.startswith("KHR_materials_"):  # those are counted by material
                self._note(f"{extension} is not supported")
        animation = read_animation(
            self.data, self.skinned, self.instance_nodes, self.joint_nodes, self.weights
        )
        for i in animation.ever_moving() if animation else ():
            if self.instances[i].lifetime == "static":
                self.instances[i] = replace(self.instances[i], lifetime="rigid")
        notes = [k if n == 1 else f"{k} ({n} times)" for k, n in self.notes.items()]
        return Parts(
            meshes=tuple(self.meshes),
            materials=tuple(self.materials.materials),
            textures=tuple(self.materials.textures),
            instances=tuple(self.instances),
            camera=camera,
            lights=tuple(lights),
            environment=read_environment(self.data),
            notes=(*notes, *self.materials.notes()),
            animation=animation,
        )

    # meshes

    def _place_mesh(self, placed: PlacedNode, worlds: dict[int, F64]) -> None:
        mesh = self.data.item("meshes", placed.node.mesh)
        mesh_name = mesh.name or f"mesh {placed.node.mesh}"
        weights = read_weights(self.data, mesh_name, placed.index, mesh)
        bound = self._bound(placed, worlds, weights)
        if bound is None and np.linalg.det(placed.world[:3, :3]) == 0.0:
            # Files hide things so; without an inverse nothing can be traced there.
            self._note("a mesh that its node's transform flattens is not drawn")
            return
        for k, primitive in enumerate(mesh.primitives):
            part = f"/{k}" if len(mesh.primitives) > 1 else ""
            mode = _TRIANGLES if primitive.mode is None else primitive.mode
            if mode not in (_TRIANGLES, _STRIP, _FAN):
                self._note(f"{_MODE_NAMES.get(mode, f'mode {mode}')} are not drawn")
                continue
            key = (placed.node.mesh, k, weights.tobytes())
            index = self._shared.get(key) if bound is None else None
            if index is None:
                index = self._add(
                    self._primitive(mesh_name + part, primitive, mode, weights, bound)
                )
                if bound is None:
                    self._shared[key] = index
            self.instance_nodes.append(placed.index)
            self.instances.append(
                Instance(
                    name=self._unique((placed.node.name or mesh_name) + part),
                    mesh=index,
                    transform=placed.world if bound is None else np.eye(4),
                    mask=placed.mask,
                    lifetime=placed.lifetime if bound is None else "deforming",
                )
            )

    def _primitive(
        self, name: str, primitive: Any, mode: int, weights: F64, bound: _Bound | None
    ) -> Mesh:
        attributes, data = primitive.attributes, self.data
        if getattr(attributes, "POSITION", None) is None:
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
        if bound is not None or weights.any():
            posed = self._deformed(name, primitive, positions, normals, weights, bound)
            positions, normals = posed[0], None if normals is None else posed[1]
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

    # skins and morph weights

    def _bound(self, placed: PlacedNode, worlds: dict[int, F64], weights: F64) -> _Bound | None:
        """What deforms the mesh of a node; None for one that keeps its shape. What is morphed
        without a skin hangs on its node as on a joint, so that all that deforms is in the world."""
        morphs = len(weights) > 0 and placed.index in self._weighted
        if morphs:
            self.weights[placed.index] = weights
        if placed.node.skin is not None:
            matrices = read_joints(self.data, placed, worlds)
            return _Bound(placed.index, placed.node.skin, matrices, True, morphs)
        if not morphs:
            return None
        self.joint_nodes.append(placed.index)
        skin = len(self.data.document.skins or []) + len(self.joint_nodes) - 1
        return _Bound(placed.index, skin, placed.world[None], False, morphs)

    def _deformed(
        self,
        name: str,
        primitive: Any,
        positions: NDArray[np.floating],
        normals: NDArray[np.floating] | None,
        weights: F64,
        bound: _Bound | None,
    ) -> tuple[F64, F64]:
        """[v, 3] positions and normals as the file has them posed. What moves is kept unposed."""
        count = len(positions)
        stored = np.zeros((count, 3)) if normals is None else normals
        base: tuple[NDArray[np.floating], ...] = positions, stored
        morph: MorphTargets | None = None
        if weights.any() or (bound is not None and bound.morphs):
            node = -1 if bound is None else bound.node
            morph = read_targets(self.data, name, primitive, node, unit_rows(normals, count))
        if morph is not None and (bound is None or not bound.morphs):  # weights that stay
            displacements = morph.positions, morph.normals
            base = tuple(morphed(b, d, weights) for b, d in zip(base, displacements, strict=True))
            morph = None
        if bound is None:
            return base[0].astype(np.float64), base[1].astype(np.float64)
        influences = np.zeros((count, 1), np.int64), np.ones((count, 1))
        if bound.by_skin:
            joint_count = len(bound.matrices)
            influences = read_influences(self.data, name, primitive, joint_count, count)
        single = np.ascontiguousarray(base[0], np.float32), unit_rows(base[1], count)
        mesh = SkinnedMesh(len(self.meshes), bound.skin, *single, *influences, morph)
        self.skinned.append(mesh)
        if morph is None:
            mesh = replace(mesh, normals=base[1])  # as given, so that they are rounded once
        return mesh.posed(bound.matrices, self.weights)

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
