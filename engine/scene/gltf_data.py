"""The bytes of a glTF asset: GLB chunks, buffers, accessors as arrays, image bytes.

JSON is read with pygltflib; this module checks what that library takes on trust (chunk sizes,
buffer lengths, accessor ranges) and decodes accessors (glTF 2.0 specification, sections 3.6 and
4.4). Everything wrong with a file is a UserError that names the file.
"""

import base64
import json
import struct
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pygltflib
from numpy.typing import NDArray

from engine.gpu.errors import UserError
from engine.scene.asset_folders import Folders, lies_inside, outside
from engine.scene.mesh import F32, F64

# componentType -> dtype (glTF 2.0, table in section 3.6.2.2)
_COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
# required extensions that change no byte we read, or that the importer honours
_UNDERSTOOD = {
    "KHR_mesh_quantization",
    "KHR_texture_transform",
    "KHR_materials_emissive_strength",
    "KHR_materials_unlit",
    "KHR_lights_punctual",
    "EXT_texture_webp",
}


@dataclass(slots=True)
class GltfData:
    """An opened asset. `referred` collects the bytes of other files in order of first use; they
    have to lie in the folders `inside`. `node_weights` are the morph weights of nodes that have
    some of their own, which the library drops."""

    path: Path
    document: Any  # pygltflib.GLTF2
    blob: bytes | None
    node_weights: dict[int, Any] = field(default_factory=dict)
    inside: Folders = None
    referred: list[bytes] = field(default_factory=list)
    _buffers: dict[int, memoryview] = field(default_factory=dict)

    def fail(self, problem: str) -> UserError:
        """The error to raise for a damaged asset."""
        return UserError(f"{self.path}: {problem}")

    def item(self, kind: str, index: Any) -> Any:
        """`document.<kind>[index]`; UserError when the file has no such item."""
        items = getattr(self.document, kind) or []
        if not isinstance(index, int) or not 0 <= index < len(items):
            raise self.fail(f"refers to {kind}[{index}], but has {len(items)} {kind}")
        return items[index]

    def uri_bytes(self, uri: str) -> bytes:
        """What a data URI or a file relative to the asset holds."""
        if uri.startswith("data:"):
            head, _, payload = uri.partition(",")
            if not head.endswith(";base64"):
                raise self.fail("has a data URI that is not base64")
            try:
                return base64.b64decode(payload, validate=True)
            except ValueError as error:
                raise self.fail(f"has a damaged data URI ({error})") from error
        if "://" in uri:
            raise self.fail(f"refers to {uri}, and only files next to it are read")
        file = self.path.parent / unquote(uri)
        if not lies_inside(file, self.inside):
            raise self.fail(outside(uri, self.inside))
        try:
            data = file.read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise self.fail(f"refers to {uri}, which cannot be read ({reason})") from error
        self.referred.append(data)
        return data

    def buffer(self, index: int) -> memoryview:
        """A buffer's bytes, at least as long as it declares."""
        if index not in self._buffers:
            declared = self.item("buffers", index)
            data = self.blob if declared.uri is None else self.uri_bytes(declared.uri)
            if data is None or (declared.uri is None and index != 0):
                raise self.fail(f"buffer {index} has neither a uri nor a binary chunk")
            if len(data) < declared.byteLength:
                raise self.fail(
                    f"truncated: buffer {index} declares {declared.byteLength} bytes, "
                    f"{len(data)} are there"
                )
            self._buffers[index] = memoryview(data)
        return self._buffers[index]

    def view(self, index: int) -> memoryview:
        """A buffer view's bytes."""
        view = self.item("bufferViews", index)
        start, length = view.byteOffset or 0, view.byteLength
        whole = self.buffer(view.buffer)
        if start < 0 or length < 0 or start + length > len(whole):
            raise self.fail(
                f"bufferView {index} covers bytes {start} to {start + length} "
                f"of a buffer of {len(whole)}"
            )
        return whole[start : start + length]

    def accessor(self, index: int) -> NDArray[Any]:
        """[count, width] as stored (integers stay integers), sparse values applied."""
        accessor = self.item("accessors", index)
        if accessor.componentType not in _COMPONENTS or accessor.type not in _WIDTHS:
            raise self.fail(
                f"accessor {index} has type {accessor.type} of component {accessor.componentType}"
            )
        dtype, width = np.dtype(_COMPONENTS[accessor.componentType]), _WIDTHS[accessor.type]
        count = accessor.count
        if not isinstance(count, int) or count < 0:
            raise self.fail(f"accessor {index} has count {count}")
        if accessor.bufferView is None:
            values: NDArray[Any] = np.zeros((count, width), dtype)
        else:
            stride = self.item("bufferViews", accessor.bufferView).byteStride
            values = self._strided(
                f"accessor {index}",
                accessor.bufferView,
                accessor.byteOffset or 0,
                (count, width),
                dtype,
                stride,
            )
        if accessor.sparse is None:
            return values
        sparse = accessor.sparse
        where = self._strided(
            f"accessor {index} (sparse indices)",
            sparse.indices.bufferView,
            sparse.indices.byteOffset or 0,
            (sparse.count, 1),
            np.dtype(_COMPONENTS[sparse.indices.componentType]),
        )[:, 0]
        if sparse.count and int(where.max()) >= count:
            raise self.fail(f"accessor {index} replaces value {int(where.max())} of {count}")
        values = values.copy()
        values[where] = self._strided(
            f"accessor {index} (sparse values)",
            sparse.values.bufferView,
            sparse.values.byteOffset or 0,
            (sparse.count, width),
            dtype,
        )
        return values

    def _strided(
        self,
        name: str,
        view_index: int,
        offset: int,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        stride: int | None = None,
    ) -> NDArray[Any]:
        data = self.view(view_index)
        row = shape[1] * dtype.itemsize
        step = stride or row
        end = offset + step * (shape[0] - 1) + row if shape[0] else offset
        if offset < 0 or step < row or end > len(data):
            raise self.fail(
                f"{name} reads bytes {offset} to {end} of bufferView {view_index} "
                f"({len(data)} bytes)"
            )
        return np.ndarray(shape, dtype, data, offset, (step, dtype.itemsize))

    def floats(self, index: int, width: int) -> F32:
        """[count, width] float32; normalized integers become -1..1 or 0..1."""
        values = self.accessor(index)
        if values.shape[1] != width:
            raise self.fail(f"accessor {index} has {values.shape[1]} components, not {width}")
        if values.dtype.kind == "f" or not self.item("accessors", index).normalized:
            return np.ascontiguousarray(values, np.float32)
        limit = np.float32(np.iinfo(values.dtype).max)
        return np.maximum(values.astype(np.float32) / limit, np.float32(-1))

    def matrices(self, index: int) -> F64:
        """[count, 4, 4] of a MAT4 accessor (stored column by column)."""
        return self.floats(index, 16).reshape(-1, 4, 4).transpose(0, 2, 1).astype(np.float64)

    def image_bytes(self, index: int) -> bytes:
        """The encoded bytes of an image."""
        image = self.item("images", index)
        if image.bufferView is not None:
            return bytes(self.view(image.bufferView))
        if image.uri is None:
            raise self.fail(f"image {index} has neither a uri nor a bufferView")
        return self.uri_bytes(image.uri)


def open_gltf(path: Path, data: bytes) -> GltfData:
    """Parse the bytes of a .glb or .gltf file."""
    binary = path.suffix.lower() == ".glb"
    if binary:
        _check_glb(path, data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library's notes to its own developers
            if binary:
                document = pygltflib.GLTF2.load_from_bytes(data)
            else:
                document = pygltflib.GLTF2.from_json(data.decode("utf-8-sig"), infer_missing=True)
        version = str(document.asset.version)
    except Exception as error:  # a damaged file may break the library anywhere
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: not a glTF file ({reason})") from error
    if not version.startswith("2"):
        raise UserError(f"{path}: glTF version {version}, and only 2.x is read")
    unknown = unsupported_extensions(document.extensionsRequired)
    if unknown:
        raise UserError(f"{path}: requires {', '.join(unknown)}, which is not supported")
    return GltfData(
        path, document, document.binary_blob() if binary else None, _node_weights(data, binary)
    )


def _node_weights(data: bytes, binary: bool) -> dict[int, Any]:
    """From the JSON of a file that the library has read."""
    text = data[20 : 20 + struct.unpack_from("<I", data, 12)[0]] if binary else data
    if b'"weights"' not in text:
        return {}
    nodes = json.loads(text.decode("utf-8-sig")).get("nodes") or []
    return {i: node["weights"] for i, node in enumerate(nodes) if node.get("weights")}


def unsupported_extensions(names: Any) -> list[str]:
    """Those of a file's extensions that would change what is read here."""
    return sorted(set(names or []) - _UNDERSTOOD)


def _check_glb(path: Path, data: bytes) -> None:
    """Header and chunk sizes (glTF 2.0 specification, section 4.4)."""
    if data[:4] != b"glTF":
        raise UserError(f"{path}: not a GLB file (it does not begin with the bytes 'glTF')")
    if len(data) < 20:
        raise UserError(f"{path}: truncated GLB: {len(data)} bytes, the header alone needs 20")
    version, length = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise UserError(f"{path}: GLB version {version}, and only 2 is read")
    if length > len(data):
        raise UserError(f"{path}: truncated GLB: its header says {length} bytes, {len(data)} exist")
    offset = 12
    while offset < length:
        if offset + 8 > length:
            raise UserError(f"{path}: truncated GLB: chunk header at byte {offset} is cut off")
        chunk_length, kind = struct.unpack_from("<I4s", data, offset)
        if offset == 12 and kind != b"JSON":
            raise UserError(f"{path}: damaged GLB: its first chunk is {kind!r}, not JSON")
        offset += 8 + chunk_length
        if offset > length:
            raise UserError(f"{path}: truncated GLB: a chunk ends at byte {offset} of {length}")
