"""A model file to its parts: GLB, glTF, OBJ, PLY and STL, and one clear line for every bad one.

Owns what all formats share: reading the bytes, dropping triangles that are not finite, refusing
empty files, the checksum. What a format holds is read in gltf.py and polygon_files.py. Exactly
degenerate triangles stay: the BVH builder drops and counts them.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.gpu.errors import UserError
from engine.scene.animation import Animation
from engine.scene.asset_folders import Folders
from engine.scene.gltf import import_gltf
from engine.scene.mesh import Mesh
from engine.scene.scene import Parts


def _polygons(path: Path, data: bytes, inside: Folders) -> tuple[Parts, list[bytes]]:
    # trimesh takes half a second to import, which a glTF scene need not wait for
    from engine.scene.polygon_files import import_polygons

    return import_polygons(path, data, inside)


IMPORTERS = {
    ".glb": import_gltf,
    ".gltf": import_gltf,
    ".obj": _polygons,
    ".ply": _polygons,
    ".stl": _polygons,
}


def read_model(path: Path, inside: Folders = None) -> tuple[Parts, str]:
    """The parts of a file and the sha256 of it and all that it refers to, which has to lie in the
    folders `inside`. UserError, with one line, for anything that gives no triangle.
    """
    importer = IMPORTERS.get(path.suffix.lower())
    data = read_bytes(path)
    if importer is None:
        known = " ".join(IMPORTERS)
        raise UserError(f"{path}: not a scene file that is known here ({known})")
    if not data:
        raise UserError(f"{path}: the file is empty")
    parts, referred = importer(path, data, inside)
    parts = _drop_nonfinite(parts, path)
    digest = hashlib.sha256(data)
    for other in referred:
        digest.update(other)
    return parts, digest.hexdigest()


def read_bytes(path: Path) -> bytes:
    """The bytes of a file; UserError where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise UserError(f"{path}: is a directory, not a scene file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be read ({reason})") from error


def _drop_nonfinite(parts: Parts, path: Path) -> Parts:
    """Without the triangles that use a NaN or infinite vertex; meshes keep their place."""
    if not any(len(parts.meshes[instance.mesh].triangles) for instance in parts.instances):
        raise UserError(f"{path}: has no triangles")
    meshes: list[Mesh] = []
    dropped = 0
    kept_vertices: dict[int, NDArray[np.integer]] = {}
    for mesh in parts.meshes:
        if np.isfinite(mesh.positions).all():
            meshes.append(mesh)
            continue
        finite = np.asarray(np.isfinite(mesh.positions).all(axis=1))
        kept = mesh.triangles[np.take(finite, mesh.triangles).all(axis=1)]
        dropped += len(mesh.triangles) - len(kept)
        # compacted, so that no buffer ever holds the bad vertices
        used, flat = np.unique(kept, return_inverse=True)
        kept_vertices[len(meshes)] = used
        meshes.append(
            replace(
                mesh,
                positions=mesh.positions[used],
                normals=mesh.normals[used],
                uvs=mesh.uvs[used],
                colors=mesh.colors[used],
                triangles=flat.astype(np.uint32).reshape(-1, 3),
            )
        )
    if not any(len(meshes[instance.mesh].triangles) for instance in parts.instances):
        raise UserError(f"{path}: all {dropped} triangles have NaN or infinite vertices")
    parts = replace(parts, meshes=tuple(meshes))
    if parts.animation is not None and kept_vertices:
        parts = replace(parts, animation=_only_vertices(parts.animation, kept_vertices))
    if not dropped:
        return parts
    note = f"skipped {dropped} triangles with NaN or infinite vertices"
    return replace(parts, notes=(*parts.notes, note))


def _only_vertices(animation: Animation, kept: dict[int, NDArray[np.integer]]) -> Animation:
    """The skinned meshes without the vertices that were taken out of the posed ones."""
    skinned = [
        item.of_vertices(kept[item.mesh]) if item.mesh in kept else item
        for item in animation.skinned
    ]
    return replace(animation, skinned=tuple(skinned))
