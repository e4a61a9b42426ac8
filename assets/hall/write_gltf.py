"""HallScene to GLB bytes through pygltflib: one buffer, PNG pictures inside, extras as stated.

Extras that Treeline reads: a node's `{"treeline": {"area_light": {"size", "radiance"}}}` (emits
along the node's -Z), `{"treeline": {"lifetime": "deforming"}}`, and the scene's
`{"treeline": {"environment": {"zenith", "horizon", "ground"}}}`.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pygltflib as gl
from numpy.typing import NDArray
from PIL import Image

from assets.hall.geometry import MeshData
from assets.hall.materials import PICTURES, SURFACES
from assets.hall.scene_data import Clip, Figure, HallScene

GENERATOR = "treeline assets.generate_hall"
COPYRIGHT = "Apache-2.0, the Treeline authors"
COMPONENTS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
TYPES = {
    "float32": gl.FLOAT,
    "uint16": gl.UNSIGNED_SHORT,
    "uint32": gl.UNSIGNED_INT,
    "uint8": gl.UNSIGNED_BYTE,
}
ASPECT = 16.0 / 9.0


def glb_bytes(scene: HallScene) -> bytes:
    """The whole file. The same scene gives the same bytes."""
    writer = _Writer()
    surfaces = sorted(
        {surface for parts in scene.meshes.values() for surface, _ in parts}
        | {part.surface for part in scene.figure.parts}
    )
    writer.add_materials(surfaces)
    mesh_index = {}
    for name, parts in scene.meshes.items():
        primitives = [writer.primitive(mesh, surface) for surface, mesh in parts]
        mesh_index[name] = len(writer.file.meshes)
        writer.file.meshes.append(gl.Mesh(name=name, primitives=primitives))
    roots = []
    for placement in scene.placements:
        node = gl.Node(name=placement.name, extras=placement.extras)
        if not np.array_equal(placement.transform, np.eye(4)):
            node.matrix = [float(np.float32(x)) for x in placement.transform.T.ravel()]
        if placement.mesh:
            node.mesh = mesh_index[placement.mesh]
        if placement.y_fov > 0.0:
            node.camera = len(writer.file.cameras)
            lens = gl.Perspective(yfov=placement.y_fov, aspectRatio=ASPECT, znear=0.05, zfar=200.0)
            writer.file.cameras.append(gl.Camera(type="perspective", perspective=lens))
        roots.append(writer.add_node(node))
    roots.append(writer.add_figure(scene))
    writer.file.scenes = [gl.Scene(name="hall", nodes=roots, extras=scene.extras)]
    writer.file.scene = 0
    return writer.finish()


class _Writer:
    """Collects accessors and their bytes in the order of the calls."""

    def __init__(self) -> None:
        asset = gl.Asset(version="2.0", generator=GENERATOR, copyright=COPYRIGHT)
        self.file = gl.GLTF2(asset=asset)
        self.blob = bytearray()
        self.material_index: dict[str, int] = {}

    def add_node(self, node: gl.Node) -> int:
        self.file.nodes.append(node)
        return len(self.file.nodes) - 1

    def add_materials(self, names: list[str]) -> None:
        used = {SURFACES[name].texture for name in names} | {SURFACES[name].wear for name in names}
        texture: dict[str, int] = {}
        self.file.samplers = [
            gl.Sampler(
                magFilter=gl.LINEAR, minFilter=gl.LINEAR_MIPMAP_LINEAR, wrapS=wrap, wrapT=wrap
            )
            for wrap in (gl.REPEAT, gl.CLAMP_TO_EDGE)
        ]
        for name, paint in PICTURES.items():
            if name in used:
                packed = io.BytesIO()
                Image.fromarray(paint()).save(packed, "PNG", compress_level=6)
                texture[name] = len(self.file.textures)
                self.file.images.append(
                    gl.Image(
                        name=name, mimeType="image/png", bufferView=self._view(packed.getvalue())
                    )
                )
                clamped = int(name == "leaf_atlas")
                self.file.textures.append(gl.Texture(source=texture[name], sampler=clamped))
        for name in names:
            surface = SURFACES[name]
            rough = gl.PbrMetallicRoughness(
                baseColorFactor=[*surface.color, 1.0],
                metallicFactor=surface.metallic,
                roughnessFactor=surface.roughness,
            )
            if surface.texture:
                rough.baseColorTexture = gl.TextureInfo(index=texture[surface.texture])
            if surface.wear:
                rough.metallicRoughnessTexture = gl.TextureInfo(index=texture[surface.wear])
            self.material_index[name] = len(self.file.materials)
            self.file.materials.append(
                gl.Material(
                    name=name,
                    pbrMetallicRoughness=rough,
                    emissiveFactor=list(surface.emissive),
                    alphaMode="MASK" if surface.masked else "OPAQUE",
                    alphaCutoff=0.5 if surface.masked else None,
                    doubleSided=surface.double_sided,
                )
            )

    def primitive(self, mesh: MeshData, surface: str) -> gl.Primitive:
        small = len(mesh.positions) <= 65535
        attributes = gl.Attributes(
            POSITION=self._accessor(mesh.positions.astype(np.float32), "VEC3", bounds=True),
            NORMAL=self._accessor(mesh.normals.astype(np.float32), "VEC3"),
            TEXCOORD_0=self._accessor(mesh.uvs.astype(np.float32), "VEC2"),
        )
        if bool((mesh.colors < 1.0).any()):
            colors = np.round(np.clip(mesh.colors, 0.0, 1.0) * 255.0).astype(np.uint8)
            attributes.COLOR_0 = self._accessor(colors, "VEC4", normalized=True)
        indices = mesh.triangles.astype(np.uint16 if small else np.uint32).reshape(-1)
        return gl.Primitive(
            attributes=attributes,
            indices=self._accessor(indices, "SCALAR", target=gl.ELEMENT_ARRAY_BUFFER),
            material=self.material_index[surface],
        )

    def add_figure(self, scene: HallScene) -> int:
        """The figure's root node with the joints and the skinned mesh under it."""
        figure = scene.figure
        primitives = []
        for part in figure.parts:
            primitive = self.primitive(part.mesh, part.surface)
            primitive.attributes.JOINTS_0 = self._accessor(part.joints, "VEC4")
            primitive.attributes.WEIGHTS_0 = self._accessor(part.weights, "VEC4")
            primitives.append(primitive)
        self.file.meshes.append(gl.Mesh(name="figure", primitives=primitives))
        first = len(self.file.nodes)
        for index, joint in enumerate(figure.joints):
            node = gl.Node(name=joint.name, children=[])
            offset = np.array(joint.position)
            if joint.parent >= 0:
                offset = offset - figure.joints[joint.parent].position
                self.file.nodes[first + joint.parent].children.append(first + index)
            else:
                offset = figure.rest_root
            node.translation = [float(np.float32(x)) for x in offset]
            rest = figure.rest_rotations.get(index, np.array([0.0, 0.0, 0.0, 1.0]))
            node.rotation = [float(np.float32(x)) for x in rest]
            self.add_node(node)
        inverse = np.tile(np.eye(4), (len(figure.joints), 1, 1))
        inverse[:, :3, 3] = [-np.array(joint.position) for joint in figure.joints]
        bind = self._accessor(
            np.ascontiguousarray(inverse.transpose(0, 2, 1)).astype(np.float32).reshape(-1, 16),
            "MAT4",
        )
        self.file.skins = [
            gl.Skin(
                name="figure",
                joints=list(range(first, len(self.file.nodes))),
                skeleton=first,
                inverseBindMatrices=bind,
            )
        ]
        body = self.add_node(
            gl.Node(
                name="figure_mesh",
                mesh=len(self.file.meshes) - 1,
                skin=0,
                extras={"treeline": {"lifetime": "deforming"}},
            )
        )
        self._animations(figure, first)
        root = gl.Node(name="figure", children=[first, body])
        root.matrix = [float(np.float32(x)) for x in scene.figure_transform.T.ravel()]
        return self.add_node(root)

    def _animations(self, figure: Figure, first: int) -> None:
        for clip in figure.clips:
            stamps = clip.times.astype(np.float32)
            times = self._accessor(stamps, "SCALAR", bounds=True, target=None)
            animation = gl.Animation(name=clip.name, channels=[], samplers=[])
            for target, path, values, kind in _tracks(clip):
                animation.channels.append(
                    gl.AnimationChannel(
                        sampler=len(animation.samplers),
                        target=gl.AnimationChannelTarget(node=first + target, path=path),
                    )
                )
                output = self._accessor(values.astype(np.float32), kind, target=None)
                animation.samplers.append(
                    gl.AnimationSampler(input=times, output=output, interpolation="LINEAR")
                )
            self.file.animations.append(animation)

    def finish(self) -> bytes:
        self._align()
        self.file.buffers = [gl.Buffer(byteLength=len(self.blob))]
        self.file.set_binary_blob(bytes(self.blob))
        return b"".join(self.file.save_to_bytes())

    def _accessor(
        self,
        values: NDArray[Any],
        kind: str,
        *,
        bounds: bool = False,
        normalized: bool = False,
        target: int | None = gl.ARRAY_BUFFER,
    ) -> int:
        flat = np.ascontiguousarray(values).reshape(-1, COMPONENTS[kind])
        accessor = gl.Accessor(
            bufferView=self._view(flat.tobytes(), target if kind != "MAT4" else None),
            componentType=TYPES[flat.dtype.name],
            count=len(flat),
            type=kind,
            normalized=normalized,
        )
        if bounds:
            accessor.min = [float(x) for x in flat.min(axis=0)]
            accessor.max = [float(x) for x in flat.max(axis=0)]
        self.file.accessors.append(accessor)
        return len(self.file.accessors) - 1

    def _view(self, data: bytes, target: int | None = None) -> int:
        self._align()
        self.file.bufferViews.append(
            gl.BufferView(buffer=0, byteOffset=len(self.blob), byteLength=len(data), target=target)
        )
        self.blob += data
        return len(self.file.bufferViews) - 1

    def _align(self) -> None:
        self.blob += b"\0" * (-len(self.blob) % 4)


def _tracks(clip: Clip) -> list[tuple[int, str, NDArray[np.float64], str]]:
    tracks = [
        (joint, "rotation", values, "VEC4") for joint, values in sorted(clip.rotations.items())
    ]
    return [(0, "translation", clip.root_translation, "VEC3"), *tracks]
