"""Morph targets on the GPU: weights in, displaced vertices into those that skinning poses.

One dispatch for every morphed vertex of a scene, in float32, targets in their order: equal to the
twin bit for bit where no number is denormal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.stage import Stage
from engine.scene.mesh import F32, F64, U32
from engine.scene.morph import MorphTargets
from engine.scene.morph_records import DISPLACEMENT, MORPH_MESH, MORPH_PARAMETERS, MORPH_VERTEX

GROUP_SIZE = 256


@dataclass(frozen=True, slots=True)
class MorphTable:
    """What the stage reads of some morphed meshes, concatenated; `nodes[m]` has the weights of
    mesh m."""

    vertices: NDArray[Any]  # MORPH_VERTEX [n]
    meshes: NDArray[Any]  # MORPH_MESH [m]
    displacements: NDArray[Any]  # DISPLACEMENT [sum of targets x vertices]
    nodes: tuple[int, ...]

    def weights(self, values: Mapping[int, F64]) -> F32:
        """[targets of all meshes] of one pose, from `Animation.morph_weights`."""
        return np.concatenate([values[node] for node in self.nodes]).astype(np.float32)

    def alike(self) -> U32:
        """[n] from 1 on, one number for vertices that all weights displace alike; 0 for those that
        none displaces."""
        numbers = np.zeros(len(self.vertices), np.uint32)
        known: dict[tuple[int, bytes], int] = {}
        for mesh, node in zip(self.meshes, self.nodes, strict=True):
            count, first = int(mesh["vertices"]), int(mesh["first_displacement"])
            size = count * int(mesh["targets"])
            words = self.displacements[first : first + size].view(np.uint32)
            moves = words.reshape(-1, count, 6)[..., :3].transpose(1, 0, 2).reshape(count, -1)
            for i in np.flatnonzero((moves << 1).any(axis=1)).tolist():  # but for zeros' signs
                key = (node, moves[i].tobytes())
                numbers[int(mesh["first_vertex"]) + i] = known.setdefault(key, len(known) + 1)
        return numbers


@dataclass(frozen=True, slots=True)
class MorphedVertices:
    """A mesh as the table takes it: `first` is its first bind vertex."""

    first: int
    positions: F32  # [v, 3]
    normals: F32  # [v, 3]
    targets: MorphTargets


def make_morph_table(meshes: Sequence[MorphedVertices]) -> MorphTable:
    """The table of meshes in their order."""
    vertices = np.zeros(sum(len(mesh.positions) for mesh in meshes), MORPH_VERTEX.dtype)
    records = np.zeros(len(meshes), MORPH_MESH.dtype)
    displacements = []
    vertex, displacement, weight = 0, 0, 0
    for number, mesh in enumerate(meshes):
        targets, count = mesh.targets.positions.shape[:2]
        part = vertices[vertex : vertex + count]
        part["position"], part["normal"] = mesh.positions, mesh.normals
        part["bind_vertex"] = mesh.first + np.arange(count)
        part["mesh"] = number
        records[number] = (vertex, count, displacement, weight, targets)
        rows = np.zeros(targets * count, DISPLACEMENT.dtype)
        rows["position"] = mesh.targets.positions.reshape(-1, 3)
        rows["normal"] = mesh.targets.normals.reshape(-1, 3)
        displacements.append(rows)
        vertex, displacement, weight = vertex + count, displacement + len(rows), weight + targets
    nodes = tuple(mesh.targets.node for mesh in meshes)
    return MorphTable(vertices, records, np.concatenate(displacements), nodes)


def morph(
    parameters: NDArray[Any],
    base_vertices: NDArray[Any],
    meshes: NDArray[Any],
    displacements: NDArray[Any],
    weights: F32,
    bind_vertices: NDArray[Any],
) -> None:
    """Twin of morph.wgsl."""
    vertices = base_vertices[: int(parameters[0]["count"])]
    mesh = meshes[vertices["mesh"]]
    moved = {key: vertices[key].copy() for key in ("position", "normal")}
    first = mesh["first_displacement"] + np.arange(len(vertices)) - mesh["first_vertex"]
    for k in range(int(meshes["targets"].max(initial=0))):
        rows = np.flatnonzero(k < mesh["targets"])
        weight = weights[mesh["first_weight"][rows] + k]
        rows, weight = rows[weight != 0], weight[weight != 0]
        by = displacements[first[rows] + k * mesh["vertices"][rows]]
        for key, values in moved.items():
            values[rows] += weight[:, None] * by[key]
    for key, values in moved.items():
        bind_vertices[key][vertices["bind_vertex"]] = values


class GpuMorphing:
    """Displaces the vertices of a table into `bind_vertices`, a buffer of BIND_VERTEX records.
    LimitError where the targets are too large for the adapter."""

    def __init__(self, device: Device, table: MorphTable, bind_vertices: Any) -> None:
        self.device, self.table = device, table
        self.stage = Stage(device, "morph", "engine/scene/shaders/morph.wgsl", twin=morph)
        parameters = np.zeros(1, MORPH_PARAMETERS.dtype)
        parameters["count"] = len(table.vertices)
        targets = int(table.meshes["targets"].sum())
        self.resources = {
            "parameters": device.upload("morph/parameters", parameters, "UNIFORM|COPY_DST"),
            "base_vertices": device.upload("morph/vertices", table.vertices),
            "meshes": device.upload("morph/meshes", table.meshes),
            "displacements": device.upload("morph/targets", table.displacements),
            "weights": device.buffer("morph/weights", 4 * targets),
            "bind_vertices": bind_vertices,
        }

    def pose(self, values: Mapping[int, F64]) -> None:
        """The weights from now on, by node: `Animation.morph_weights`."""
        self.device.write(self.resources["weights"], self.table.weights(values))

    def encode(self, scope: Any) -> None:
        """Within the compute pass `scope`."""
        self.stage.dispatch(scope, self.resources, -(-len(self.table.vertices) // GROUP_SIZE))
