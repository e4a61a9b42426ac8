"""Structures for the commands that look at one: read from a file, or built from the scene."""

from pathlib import Path

from bvh.build import BuildOptions
from bvh.container import load as load_container
from bvh.scene_bvh import SceneBvh
from engine.gpu.errors import UserError
from engine.scene.scene import Scene
from passes.prepare import prepare


def read(path: Path) -> SceneBvh:
    """The structure saved in an .npz. Raises UserError for a missing, damaged or foreign one."""
    if not path.exists():
        raise UserError(f"{path}: no such file")
    return load_container(path)


def build(scene: Scene, options: BuildOptions, group: str) -> SceneBvh:
    """The scene's structure, as a frame would trace it."""
    return prepare(scene, options, group).bvh
