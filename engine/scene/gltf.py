"""glTF 2.0 (.glb, .gltf) to scene parts: nodes, primitives, cameras, skins and our extras.

Read with pygltflib and our own accessor decoding, not through trimesh, because trimesh loses
what the frame needs: base colour factors are rounded to 8 bits, and sampler wrap modes, texture
transforms, skins and area-light extras are dropped (its uvs are flipped and its arrays widened to
64 bits besides). Tests hold the counts and world boxes equal to trimesh's.
"""

from dataclasses import replace
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
from engine.scene.gltf_nodes import (
    PlacedNode,
    placed_nodes,
    read_area_light,
    read_camera,
    read_environment,
    treeline_extras,
)
from engine.scene.mesh import F32, F64, U8, U32, Mesh, make_mesh, unit_rows
from engine.scene.scene import Instance, Parts
from engine.scene.skin import (
    blend_matrices,
    joint_matrices,
    skin_normals,
    skin_positions,
    unit_weights,
)

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


class _Importer:
    def __init__(self, data: GltfData) -> None:
        self.data = data
        self.materials = MaterialReader(data)
        self.meshes: list[Mesh] = []
        self.instances: list[Instance] = []
        self.instance_nodes: list[int] = []
        self.skinned: list[SkinnedMesh] = []
        self.notes: dict[str, int] = {}
        self._shared: dict[tuple[int, int], int] = {}
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
        if len(lights) > 1:
            self._note("more area lights than the one that is used")
        if "KHR_lights_punctual" in (self.data.document.extensionsUsed or []):
            self._note("point, spot and directional lights are not used")
        for extension in unsupported_extensions(self.data.document.extensionsUsed):
            if not extension.startswith("KHR_materials_"):  # those are counted by material
                self._note(f"{extension} is not supported")
        animation = read_animation(self.data, self.skinned, self.instance_nodes)
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
            light=lights[0] if lights else None,
            environment=read_environment(self.data),
            notes=(*notes, *self.materials.notes()),
            animation=animation,
        )

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
                posed = self._primitive(
                    mesh_name + part, primitive, mode, matrices, placed.node.skin
                )
                index = self._add(posed)
            else:
                if key not in self._shared:
                    self._shared[key] = self._add(
                        self._primitive(mesh_name + part, primitive, mode, None)
                    )
                index = self._shared[key]
            self.instance_nodes.append(placed.index)
            self.instances.append(
                Instance(
                    name=self._unique((placed.node.name or mesh_name) + part),
                    mesh=index,
                    transform=np.eye(4) if skinned else placed.world,
                    mask=placed.mask,
                    lifetime="deforming" if skinned else placed.lifetime,
                )
            )

    def _primitive(
        self, name: str, primitive: Any, mode: int, matrices: F64 | None, skin: int = -1
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
        if matrices is not None:
            joints, weights = self._influences(name, attributes, len(matrices), count)
            still = np.ascontiguousarray(positions), unit_rows(normals, count)
            self.skinned.append(SkinnedMesh(len(self.meshes), skin, *still, joints, weights))
            blended = blend_matrices(matrices, joints, weights)
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

    def _influences(
        self, name: str, attributes: Any, joint_count: int, count: int
    ) -> tuple[NDArray[np.int64], F64]:
        """([v, k] joints, [v, k] weights of sum 1) from every JOINTS_n / WEIGHTS_n pair."""
        joints: list[NDArray[np.int64]] = []
        weights: list[F64] = []
        while (at := getattr(attributes, f"JOINTS_{len(joints)}", None)) is not None:
            weight = getattr(attributes, f"WEIGHTS_{len(joints)}", None)
            if weight is None:
                break
            joints.append(self.data.accessor(at).astype(np.int64))
            weights.append(self.data.floats(weight, 4).astype(np.float64))
        if not joints or any(len(a) != count or a.shape[1] != 4 for a in (*joints, *weights)):
            raise self.data.fail(f"skinned mesh {name} lacks a joint and weight for each vertex")
        joint = np.concatenate(joints, axis=1)
        if joint.size and int(joint.max()) >= joint_count:
            raise self.data.fail(
                f"mesh {name} uses joint {int(joint.max())} of a skin with {joint_count}"
            )
        return joint, unit_weights(np.concatenate(weights, axis=1))

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
