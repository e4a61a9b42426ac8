"""OBJ, PLY and STL to scene parts through trimesh (`process=False`: nothing merged or reordered).

Polygons arrive triangulated. Their uvs have the origin at the bottom left: v is turned over.
Materials are an OBJ's .mtl (Kd as linear colour, Ns as a Blinn-Phong exponent, d as alpha); a
missing .mtl is fine. PLY vertex colours are taken as sRGB, as scanners write them.
"""

import io
import logging
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from engine.gpu.errors import UserError
from engine.scene.asset_folders import Folders, lies_inside, outside
from engine.scene.material import Material, Texture, plain_material
from engine.scene.mesh import U8, Mesh, make_mesh
from engine.scene.mips import SRGB_TO_LINEAR
from engine.scene.scene import Instance, Parts

# without a handler of its own, the library's warnings (with tracebacks) reach the user's terminal
logging.getLogger("trimesh").addHandler(logging.NullHandler())

_STL_HEADER_BYTES, _STL_TRIANGLE_BYTES = 84, 50  # binary STL


@dataclass(slots=True)
class FolderResolver:
    """Hands trimesh the files next to a scene file and remembers what they held. They have to
    lie in the folders `inside`; the library forgives a file that is missing, so `refused` keeps the
    name of one outside."""

    folder: Path
    file_name: str
    inside: Folders = None
    referred: list[bytes] = field(default_factory=list)
    refused: str | None = None

    def get(self, name: str) -> bytes:
        """Bytes of a file that the scene file names; OSError when it is not there."""
        file = self.folder / name.replace("\\", "/")
        if not lies_inside(file, self.inside):
            self.refused = name
            raise FileNotFoundError(name)
        data = file.read_bytes()
        self.referred.append(data)
        return as_utf8(data) if name.lower().endswith(".mtl") else data

    __getitem__ = get


def import_polygons(path: Path, data: bytes, inside: Folders = None) -> tuple[Parts, list[bytes]]:
    """The parts of a .obj, .ply or .stl file, and the bytes of the files that it refers to, which
    have to lie in the folders `inside`."""
    kind = path.suffix.lower()[1:]
    if kind == "obj" or (kind == "stl" and _is_text_stl(path, data)):
        data = as_utf8(data)
    resolver = FolderResolver(path.parent, path.name, inside)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            # how NumPy reports text that stops being numbers halfway
            warnings.filterwarnings("error", message=".*could not be read to its end.*")
            loaded = trimesh.load_scene(
                io.BytesIO(data), file_type=kind, resolver=resolver, process=False
            )
            if resolver.refused is not None:
                raise UserError(f"{path}: {outside(resolver.refused, inside)}")
            geometry = {
                name: mesh
                for name, mesh in loaded.geometry.items()
                if isinstance(mesh, trimesh.Trimesh)
            }
            return _parts(geometry, path), resolver.referred
    except UserError:
        raise
    except Exception as error:  # a damaged file may break the library anywhere
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: not a readable {kind.upper()} mesh ({reason})") from error


def as_utf8(text: bytes) -> bytes:
    """`text` itself, or transcoded from Latin-1: trimesh guesses encodings with a package that
    is not installed, and outside ASCII these formats hold only names and comments."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1").encode("utf-8")
    return text


def _is_text_stl(path: Path, data: bytes) -> bool:
    """By size first: binary files may begin with "solid" too. A cut-off binary file is refused
    here, because trimesh would go on to read it as text."""
    if len(data) >= _STL_HEADER_BYTES:
        count = int.from_bytes(data[80:84], "little")
        expected = _STL_HEADER_BYTES + _STL_TRIANGLE_BYTES * count
        if len(data) == expected:
            return False
        problem = f"{count} triangles need {expected} bytes, {len(data)} exist"
    else:
        problem = f"{len(data)} bytes are less than a header"
    if data.lstrip()[:5].lower() == b"solid":
        return True
    raise UserError(f"{path}: not an STL mesh, or cut off: {problem}")


def _parts(geometry: dict[str, Any], path: Path) -> Parts:
    meshes: list[Mesh] = []
    materials: list[Material] = []
    textures: list[Texture] = []
    material_of: dict[int, int] = {}
    for name, source in geometry.items():
        visual = source.visual
        has_texture = visual.kind == "texture"
        look = visual.material if has_texture else None
        key = id(look) if _has_properties(look) else 0
        if key not in material_of:
            material_of[key] = len(materials)
            materials.append(_material(look, textures) if key else plain_material())
        vertices, faces = np.asarray(source.vertices), np.asarray(source.faces)
        if faces.size and (int(faces.min()) < 0 or int(faces.max()) >= len(vertices)):
            bad = int(faces.min()) if int(faces.min()) < 0 else int(faces.max())
            raise UserError(f"{path}: {name} has index {bad}, but {len(vertices)} vertices")
        uvs = None
        if has_texture and visual.uv is not None:
            uvs = np.asarray(visual.uv, np.float64)[:, :2] * (1, -1) + (0, 1)
        colors = _colors(visual.vertex_colors) if visual.kind == "vertex" else None
        if visual.kind == "face":  # one colour a face needs corners of its own
            colors = np.repeat(_colors(visual.face_colors), 3, axis=0)
            vertices, faces = vertices[faces.reshape(-1)], np.arange(faces.size).reshape(-1, 3)
        # the property computes smooth normals when the file has none; the cache tells them apart
        stored = visual.kind != "face" and "vertex_normals" in source._cache.cache
        meshes.append(
            make_mesh(
                name,
                vertices,
                faces,
                material_of[key],
                normals=np.asarray(source.vertex_normals) if stored else None,
                uvs=uvs,
                colors=colors,
            )
        )
    instances = tuple(Instance(mesh.name, i, np.eye(4)) for i, mesh in enumerate(meshes))
    return Parts(tuple(meshes), tuple(materials), tuple(textures), instances)


def _has_properties(look: Any) -> bool:
    """False for the empty material (a 2 x 2 image) that trimesh makes up for uvs without one."""
    if look is None:
        return False
    made_up = look.image is not None and look.image.size == (2, 2)
    return bool(look.kwargs) or (
        look.image is not None and not (made_up and "file_path" not in look.image.info)
    )


def _material(look: Any, textures: list[Texture]) -> Material:
    properties = look.kwargs
    diffuse = _triple(properties.get("kd"), 0.7)
    exponent = _scalar(properties.get("ns"), 30.0)
    if "d" in properties:
        alpha = _scalar(properties["d"], 1.0)
    else:
        alpha = 1.0 - _scalar(properties.get("tr"), 0.0)
    texture = -1
    if look.image is not None:
        texture = len(textures)
        pixels = np.ascontiguousarray(look.image.convert("RGBA"), np.uint8)
        textures.append(Texture(str(look.name), pixels, srgb=True))
    cut_out = "map_d" in properties
    return Material(
        name=str(look.name or "material"),
        base_color=(*diffuse, alpha),
        metallic=0.0,
        # alpha of a microfacet lobe from a Blinn-Phong exponent (Walter et al. 2007), and the
        # perceptual roughness whose square that is
        roughness=float(np.sqrt(np.sqrt(2.0 / (max(exponent, 0.0) + 2.0)))),
        emissive=_triple(properties.get("ke"), 0.0),
        alpha_mode="MASK" if cut_out else ("BLEND" if alpha < 1 else "OPAQUE"),
        base_color_texture=texture,
    )


def _triple(value: Any, fallback: float) -> tuple[float, float, float]:
    try:
        r, g, b = (float(v) for v in value)
    except (TypeError, ValueError):
        return (fallback, fallback, fallback)
    return (r, g, b)


def _scalar(value: Any, fallback: float) -> float:
    try:
        return float(value[0] if isinstance(value, list) else value)
    except (TypeError, ValueError, IndexError):
        return fallback


def _colors(stored: Any) -> U8:
    colors = np.array(stored, np.uint8).reshape(-1, 4)
    colors[:, :3] = np.rint(SRGB_TO_LINEAR[colors[:, :3]] * 255).astype(np.uint8)
    return colors
