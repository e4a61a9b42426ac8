"""A file to a Scene: one model, or a scene file (.toml) that places several.

Owns the way from what a file holds to a whole Scene with its default view. A model is read in
model_file.py; what a scene file holds is said in describe.py, and placed in place.py.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path

from engine.gpu.errors import UserError
from engine.scene.asset_folders import AssetFolders
from engine.scene.default_view import with_default_view
from engine.scene.describe import describe
from engine.scene.model_file import IMPORTERS, read_bytes, read_model
from engine.scene.place import place
from engine.scene.placed_view import Model
from engine.scene.scene import Scene

SCENE_FILE = ".toml"


def load_scene(
    path: str | Path,
    folders: AssetFolders | None = None,
    ray_bits: Mapping[str, int] | None = None,
) -> Scene:
    """Load a file. `folders` are where a scene file's paths may lead beside its own folder, and
    `ray_bits` the bits of a mask by the names of the ray types. UserError, with one line, for
    anything that gives no triangle."""
    path = Path(path)
    if path.suffix.lower() == SCENE_FILE:
        return _load_scene_file(path, folders or AssetFolders(), ray_bits or {})
    parts, sha256 = read_model(path)
    return with_default_view(parts, path.stem, sha256)


def _load_scene_file(path: Path, folders: AssetFolders, ray_bits: Mapping[str, int]) -> Scene:
    data = read_bytes(path)
    try:
        values = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not a TOML file ({error})") from error
    description = describe(path, values, ray_bits)
    digest = hashlib.sha256(data)
    models: dict[str, Model] = {}
    for name, text in description.files.items():
        file, inside = folders.find(path, f"files.{name}", text)
        if file.suffix.lower() not in IMPORTERS:
            known = " ".join(IMPORTERS)
            raise UserError(f"{path}: files.{name} is '{text}', not a model file ({known})")
        parts, sha256 = read_model(file, inside)
        digest.update(f"{name} {sha256}\n".encode())
        models[name] = Model(name, parts)
    return with_default_view(place(path, description, models), path.stem, digest.hexdigest())
