"""A figure that these tests write as glTF and pose themselves, in double precision.

A tube of three joints that bends, bulges and leans, over a mirror; a box on a carrier that turns,
three times: as it is, squeezed, and mirrored; and once more standing still. Nothing here comes from
the code under test: files are written with struct and json, and posed by SciPy's rotations.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

CLIP = "dance"
TIMES = np.array([0.5, 1.0, 2.0])
END = 2.0


@dataclass(frozen=True)
class Node:
    """Where a node stands in the file; `turn` is a rotation vector, radians."""

    name: str
    parent: str | None = None
    move: Any = (0, 0, 0)
    turn: Any = (0, 0, 0)
    scale: Any = (1, 1, 1)
    mesh: int | None = None


TUBE, BOX, FLOOR = range(3)
NODES = (
    # A skinned mesh's own node moves nothing: neither this place nor this size may be seen.
    Node("figure", None, (30, -20, 10), (0.3, 1.0, 0.2), (3, 2, 4), TUBE),
    Node("root", None, (0.2, 0.1, 0.0), (0, 0.4, 0), (1, 1.1, 1)),
    Node("spine", "root", (0, 1, 0), (0.1, 0, -0.2)),
    Node("head", "spine", (0, 0.9, 0.1)),
    Node("carrier", None, (-1.3, 0.9, 0.3)),
    Node("box", "carrier", (0, 0, 0.8), (0.2, 0.5, 0), (0.3, 0.3, 0.3), BOX),
    Node("squeezed", "carrier", (0, 0, -0.8), (0, 0, 0.7), (0.4, 0.15, 0.3), BOX),
    Node("mirrored", "carrier", (0.1, 0.8, 0), (0.9, 0, 0), (-0.25, 0.3, 0.2), BOX),
    Node("still", None, (1.5, 0.4, -0.6), (0, 0.3, 0), (0.3, 0.4, 0.3), BOX),
    Node("floor", None, mesh=FLOOR),
)
JOINTS = ("root", "spine", "head")
BIND = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]])  # where the joints stood when it was bound
TRACKS: dict[tuple[str, str], Any] = {
    ("root", "translation"): [[0.3, 0.1, -0.2], [0, 0.3, 0.1], [-0.3, 0.1, 0.4]],
    ("spine", "rotation"): [[0.1, 0, 0.9], [0.4, 0.2, -0.7], [-0.3, 0.5, 0.8]],
    ("head", "rotation"): [[0, 0.6, 0.4], [0.5, 0, -0.5], [0, -0.7, 0.6]],
    ("head", "scale"): [[1, 1, 1], [1.5, 0.9, 1.5], [0.7, 1.2, 0.7]],
    ("carrier", "rotation"): [[0, 0.3, 0], [0, 1.9, 0.2], [0.4, 3.4, 0]],
    ("figure", "weights"): [[0, 0], [1, 0], [0.4, 0.8]],
}


def tube(rings: int = 9, sides: int = 10) -> dict[str, Any]:
    """Positions, normals, indices, joints and weights [v, 4] and displacements [2, v, 3]."""
    y, around = np.meshgrid(np.linspace(0, 2.6, rings), np.arange(sides) * 2 * np.pi / sides)
    y, around = y.T.reshape(-1), around.T.reshape(-1)
    out = np.stack([np.sin(around), 0 * y, np.cos(around)], 1)
    i, j = (g.reshape(-1) for g in np.meshgrid(np.arange(rings - 1), np.arange(sides)))
    a, b = i * sides + j, i * sides + (j + 1) % sides
    faces = np.concatenate([np.stack([a, b, b + sides], 1), np.stack([a, b + sides, a + sides], 1)])
    low = np.clip(np.floor(y), 0, 1).astype(int)
    upper = np.clip(y - low, 0, 1)
    still = 0 * low
    return dict(
        positions=(0.3 * out + y[:, None] * [0, 1, 0]).astype(np.float32),
        normals=out.astype(np.float32),
        faces=faces,
        joints=np.stack([low, low + 1, still, still], 1),
        weights=np.stack([1 - upper, upper, 0 * y, 0 * y], 1).astype(np.float32),
        targets=np.stack(
            [
                0.35 * np.exp(-4 * (y - 1.3) ** 2)[:, None] * out,
                np.stack([0.12 * y * y, 0 * y, 0.2 * np.sin(2 * y)], 1),
            ]
        ).astype(np.float32),
    )


def box() -> dict[str, Any]:
    """[-1, 1]^3 of triangles that share no vertex."""
    corners, normals = [], []
    for axis in range(3):
        for side in (-1.0, 1.0):
            n, u = side * np.eye(3)[axis], np.eye(3)[(axis + 1) % 3]
            v = np.cross(n, u)
            corners += [n - u - v, n + u - v, n + u + v, n - u - v, n + u + v, n - u + v]
            normals += 6 * [n]
    return dict(positions=np.array(corners), normals=np.array(normals), faces=None)


def floor() -> dict[str, Any]:
    points = np.array([[-5, 0, 5], [5, 0, 5], [5, 0, -5], [-5, 0, -5]], float)
    up = np.broadcast_to([0.0, 1.0, 0.0], (4, 3))
    return dict(positions=points, normals=up, faces=np.array([[0, 1, 2], [0, 2, 3]]))


MESHES = (tube(), box(), floor())


# -- where everything is -------------------------------------------------------------------------


def matrix(move: Any, turn: Rotation, scale: Any) -> Any:
    found = np.eye(4)
    found[:3, :3] = turn.as_matrix() * np.asarray(scale, float)
    found[:3, 3] = move
    return found


def track(name: str, path: str, time: float) -> Any:
    """A track at `time` of the clip, or None; before its first key and after its last it stays."""
    values = TRACKS.get((name, path))
    if values is None:
        return None
    at = float(np.clip(time, TIMES[0], TIMES[-1]))
    if path == "rotation":
        return Slerp(TIMES, Rotation.from_rotvec(values))(at)
    return np.array([np.interp(at, TIMES, column) for column in np.transpose(values)])


def world(name: str, time: float | None) -> Any:
    """[4, 4] of a node at `time` of the clip; None: as the file has it."""
    node = next(n for n in NODES if n.name == name)
    parts = dict(
        translation=np.asarray(node.move, float),
        rotation=Rotation.from_rotvec(node.turn),
        scale=np.asarray(node.scale, float),
    )
    if time is not None:
        for path in parts:
            found = track(name, path, time)
            parts[path] = parts[path] if found is None else found
    local = matrix(*parts.values())
    return local if node.parent is None else world(node.parent, time) @ local


@dataclass(frozen=True)
class Body:
    """What a node shows, in the world: positions and unit normals [v, 3], triangles [m, 3]."""

    name: str
    mesh: int
    positions: Any
    normals: Any
    faces: Any

    @property
    def corners(self) -> Any:
        """[m, 3, 3]"""
        return self.positions[self.faces]


def place(node: Node, time: float | None) -> Body:
    mesh = MESHES[node.mesh]
    points = mesh["positions"].astype(np.float64)
    matrices = world(node.name, time)[None]
    if node.mesh == TUBE:
        mix = np.zeros(2) if time is None else track(node.name, "weights", time)
        points = points + np.einsum("t,tvj->vj", mix, mesh["targets"].astype(np.float64))
        joints = np.stack([world(name, time) for name in JOINTS])
        joints[:, :3, 3] -= np.einsum("jab,jb->ja", joints[:, :3, :3], BIND)
        matrices = np.einsum("vk,vkab->vab", mesh["weights"], joints[mesh["joints"]])
    matrices = np.broadcast_to(matrices, (len(points), 4, 4))
    moved = np.einsum("vab,vb->va", matrices[:, :3, :3], points) + matrices[:, :3, 3]
    # A normal is a row vector: it goes through the inverse.
    normals = np.einsum("vb,vba->va", mesh["normals"], np.linalg.inv(matrices[:, :3, :3]))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    faces = mesh["faces"]
    if faces is None:
        faces = np.arange(len(points)).reshape(-1, 3)
    return Body(node.name, node.mesh, moved, normals, faces)


def bodies(time: float | None) -> list[Body]:
    """All that is shown, posed."""
    return [place(node, time) for node in NODES if node.mesh is not None]


# -- as files ------------------------------------------------------------------------------------


def add_materials(glb: Any) -> None:
    """By mesh: the tube and the boxes are rough and grey, the floor is both: it has
    shadows and reflects."""
    for metal, rough, color in ((0, 1, 0.6), (0, 1, 0.4), (0.5, 0.2, 0.8)):
        pbr = {"metallicFactor": metal, "roughnessFactor": rough}
        glb.add("materials", {"pbrMetallicRoughness": pbr | {"baseColorFactor": 3 * [color] + [1]}})


def write_moving(glb: Any, path: Path) -> Path:
    """The figure as a file with a skin, morph targets and a clip."""
    add_materials(glb)
    for number, mesh in enumerate(MESHES):
        attributes = {"NORMAL": glb.accessor(mesh["normals"])}
        if number == TUBE:
            attributes["JOINTS_0"] = glb.accessor(mesh["joints"], "u1")
            attributes["WEIGHTS_0"] = glb.accessor(mesh["weights"])
        primitive = glb.primitive(mesh["positions"], mesh["faces"], **attributes)
        if number == TUBE:
            primitive["targets"] = [{"POSITION": glb.accessor(part)} for part in mesh["targets"]]
        glb.mesh({**primitive, "material": number})
    for node in NODES:
        item: dict[str, Any] = {"name": node.name, "translation": list(node.move)}
        item["rotation"] = Rotation.from_rotvec(node.turn).as_quat().tolist()
        item["scale"] = list(node.scale)
        if node.mesh is not None:
            item["mesh"] = node.mesh
        if node.mesh == TUBE:
            item["skin"] = 0
        children = [i for i, other in enumerate(NODES) if other.parent == node.name]
        glb.node(node.parent is None, **item, **({"children": children} if children else {}))
    number = {node.name: i for i, node in enumerate(NODES)}
    bind = np.broadcast_to(np.eye(4), (3, 4, 4)).copy()
    bind[:, 3, :3] = -BIND  # files hold matrices by columns
    inverse = glb.accessor(bind.reshape(3, 16))
    skin = {"joints": [number[name] for name in JOINTS], "inverseBindMatrices": inverse}
    glb.add("skins", skin)
    samplers, channels = [], []
    for (name, way), values in TRACKS.items():
        rows = Rotation.from_rotvec(values).as_quat() if way == "rotation" else np.array(values)
        rows = rows.reshape(-1, 1) if way == "weights" else rows
        samplers.append({"input": glb.accessor(TIMES), "output": glb.accessor(rows)})
        target = {"node": number[name], "path": way}
        channels.append({"sampler": len(samplers) - 1, "target": target})
    glb.add("animations", {"name": CLIP, "samplers": samplers, "channels": channels})
    path.write_bytes(glb.data())
    return path


def write_still(glb: Any, path: Path, time: float | None) -> Path:
    """The same names and triangles where they are at `time`, as a file in which nothing moves."""
    add_materials(glb)
    for body in bodies(time):
        normals = glb.accessor(body.normals)
        primitive = glb.primitive(body.positions, body.faces, NORMAL=normals)
        glb.node(mesh=glb.mesh({**primitive, "material": body.mesh}), name=body.name)
    path.write_bytes(glb.data())
    return path
