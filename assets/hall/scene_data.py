"""What the generator hands to the glTF writer: meshes by name, nodes, a skin, animations.

Plain data without any glTF in it. Transforms are 4x4, column vectors, metres.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assets.hall.geometry import Floats, MeshData

Part = tuple[str, MeshData]  # (surface name, mesh)


@dataclass(frozen=True, slots=True)
class Joint:
    """One bone. Bind frames are axis-aligned: only the position differs from joint to joint."""

    name: str
    parent: int  # -1: the root
    position: tuple[float, float, float]  # in the figure's frame, bind pose


@dataclass(frozen=True, slots=True)
class SkinnedPart:
    """A surface with four joints and weights a vertex (weights sum to 1)."""

    surface: str
    mesh: MeshData
    joints: NDArray[np.uint8]  # [v, 4]
    weights: NDArray[np.float32]  # [v, 4]


@dataclass(frozen=True, slots=True)
class Clip:
    """An animation: rotations [k, 4] (x, y, z, w) a joint, and the root's translations [k, 3]."""

    name: str
    times: Floats  # [k] seconds
    rotations: dict[int, Floats]
    root_translation: Floats


@dataclass(frozen=True, slots=True)
class Figure:
    """The skinned figure in its bind pose, its default pose, and its clip."""

    joints: tuple[Joint, ...]
    parts: tuple[SkinnedPart, ...]
    rest_rotations: dict[int, Floats]  # joint -> quaternion, the default pose
    rest_root: Floats  # [3] the root's translation in the default pose
    clips: tuple[Clip, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """One node: a mesh by name, or a camera or light through `extras` and `camera`."""

    name: str
    transform: Floats
    mesh: str = ""
    y_fov: float = 0.0  # radians; above zero the node is a camera
    extras: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HallScene:
    """Everything in the file."""

    meshes: dict[str, list[Part]]
    placements: list[Placement]
    figure: Figure
    figure_transform: Floats
    extras: dict[str, Any]
