"""A figure that these tests write as glTF and pose themselves, in double precision.

A tube of three joints that bends, bulges and leans, over a mirror; a box on a carrier that turns,
three times: as it is, squeezed, and mirrored; and once more standing still. Nothing here comes from
the code under test: files are written with struct and json, posed by SciPy's rotations, and rays
are met with triangles one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from bvh.build import BuildOptions
from bvh.rays import MISS_ID
from engine.scene.camera import look_at
from engine.scene.load import load_scene
from engine.scene.records import VERTEX
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.rays import REFLECTION, SHADOW

SIZE = (56, 42)
FAST = BuildOptions(builder="lbvh", reinsertion=0)
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


# -- rays, one by one ----------------------------------------------------------------------------


def first_hits(origin: Any, direction: Any, corners: Any, reach: Any = np.inf) -> tuple[Any, ...]:
    """Of rays [n, 3] and triangles [m, 3, 3], by Cramer's rule: the nearest triangle of each (-1:
    none), its t, and whether a rounding could not change that."""
    a, b, c = (corners[None, :, i] for i in range(3))
    e1, e2, s = b - a, c - a, origin[:, None] - a
    p, q = np.cross(direction[:, None], e2), np.cross(s, e1)
    det = np.einsum("nmk,nmk->nm", p, np.broadcast_to(e1, p.shape))
    det = np.where(np.abs(det) < 1e-30, np.nan, det)
    u = np.einsum("nmk,nmk->nm", p, s) / det
    v = np.einsum("nmk,nk->nm", q, direction) / det
    t = np.einsum("nmk,nmk->nm", q, np.broadcast_to(e2, q.shape)) / det
    inside = np.minimum(np.minimum(u, v), 1 - u - v)
    length = np.linalg.norm(direction, axis=1)[:, None]
    # Rays start a rounding off the surface that they come from: that one is behind them.
    ahead = (t * length > 1e-4) & (t < reach)
    hit = ahead & (inside > 0)
    far = np.where(hit, t, np.inf)
    nearest = far.argmin(axis=1)
    t_hit = far.min(axis=1)
    edge = ahead & (np.abs(inside) < 1e-3) & (t <= t_hit[:, None] * (1 + 1e-6))
    certain = ~edge.any(axis=1)
    return np.where(np.isfinite(t_hit), nearest, -1), t_hit, certain


def light_points(scene: Scene, rays: Any) -> Any:
    """[n, 3] where on the light shadow rays end."""
    code = rays["light_uv"]
    s = 2 * np.stack([code & 0xFFFF, code >> 16], 1) / 65535.0 - 1
    return scene.light.center + s[:, :1] * scene.light.half_u + s[:, 1:] * scene.light.half_v


# -- frames --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """A frame by names: what each pixel shows [h, w], its depth, what each reflection ray met (by
    pixel) and at which t, and whether each shadow ray arrived (by slot)."""

    objects: Any
    depth: Any
    mirrored: dict[int, tuple[str, float]]
    lit: dict[int, bool]
    picture: Any


def see(frame: HybridFrame) -> Seen:
    names = np.array([i.name for i in frame.scene.prepared.scene.instances] + [""])
    data = frame.data
    rays = data.read_records(REFLECTION)
    hits = data.read_results(REFLECTION, rays)
    met = names[np.where(hits["object"] == MISS_ID, -1, hits["object"].astype(np.int64))]
    shadows = data.read_records(SHADOW)
    lit = data.read_results(SHADOW, shadows) == 1
    return Seen(
        names[frame.aov("object")],
        frame.aov("depth"),
        {int(p): (str(n), float(t)) for p, n, t in zip(rays["pixel"], met, hits["t"], strict=True)},
        dict(zip(shadows["slot"].tolist(), lit.tolist(), strict=True)),
        frame.image().astype(int),
    )


def vertices(frame: HybridFrame) -> dict[str, Any]:
    """[v, 3] of every object, in the world: vertex records through transforms, both as they lie on
    the GPU."""
    device, prepared = frame.scene.device, frame.scene.prepared
    words = device.read(frame.scene.buffers["geometry"])[frame.scene.bases[2] :]
    count = len(prepared.pack.vertices)
    stored = words[: VERTEX.size // 4 * count].view(VERTEX.dtype)["position"].astype(np.float64)
    objects = device.read(
        frame.scene.buffers["tables"], prepared.pack.objects.dtype, count=len(prepared.pack.objects)
    )
    firsts = np.cumsum([0, *(len(mesh.positions) for mesh in prepared.scene.meshes)])
    found = {}
    for item, place in zip(prepared.scene.instances, objects, strict=True):
        points = stored[firsts[item.mesh] : firsts[item.mesh + 1]]
        matrix = np.asarray(place["object_to_world"], np.float64).reshape(3, 4)
        found[item.name] = points @ matrix[:, :3].T + matrix[:, 3]
    return found


def stage(scene: Scene, kit: Any) -> Scene:
    """Seen from the front, lit from above and the right: shadows fall on the floor and boxes."""
    return replace(
        scene,
        camera=look_at(np.array([1.2, 3.0, 4.6]), np.array([-0.2, 0.8, 0.2]), 0.85),
        light=kit.lamp((2.5, 5.0, 2.5), 0.2, (-0.5, -1.0, -0.5), (60, 60, 60)),
    )


@pytest.fixture(scope="session")
def figure(
    device: Any, kit: Any, new_glb: Any, tmp_path_factory: pytest.TempPathFactory
) -> SimpleNamespace:
    """`scene` moves; `still(time)` is the scene posed here; `frame(scene, **options)` is cached;
    `show(frame, time)` draws a moment; `see`, `bodies` and `first_hits` as above."""
    folder = tmp_path_factory.mktemp("figure")
    frames: dict[Any, HybridFrame] = {}
    scenes: dict[Any, Scene] = {}

    def still(time: float | None) -> Scene:
        if time not in scenes:
            path = write_still(new_glb(), folder / f"still {time}.glb", time)
            scenes[time] = stage(load_scene(path), kit)
        return scenes[time]

    def frame(scene: Scene, group: str = "object", **options: Any) -> HybridFrame:
        key = (id(scene), group, *sorted(options.items()))
        if key not in frames:
            prepared = prepare(scene, FAST, group)
            frames[key] = HybridFrame(device, prepared, FrameOptions(*SIZE, **options))
        return frames[key]

    def show(frame: HybridFrame, time: float | None, **inputs: Any) -> HybridFrame:
        clip = None if time is None else CLIP
        moment = replace(frame.inputs, clip=clip, time=time or 0.0, **inputs)
        assert frame.run(0, inputs=moment).valid
        return frame

    return SimpleNamespace(
        scene=stage(load_scene(write_moving(new_glb(), folder / "moving.glb")), kit),
        still=still,
        frame=frame,
        show=show,
        see=see,
        stage=lambda scene: stage(scene, kit),
        bodies=bodies,
        vertices=vertices,
        first_hits=first_hits,
        light_points=light_points,
        clip=CLIP,
        end=END,
        size=SIZE,
    )


@pytest.fixture(scope="session")
def same_frames() -> Callable[..., None]:
    """same_frames(a, b, apart=): two `Seen` are one but for that part of the rays."""

    def compare(a: Seen, b: Seen, apart: float = 0.003) -> None:
        same = a.objects == b.objects
        assert (~same).mean() <= apart
        np.testing.assert_allclose(a.depth[same], b.depth[same], rtol=1e-4)
        for ours, theirs in ((a.mirrored, b.mirrored), (a.lit, b.lit)):
            both = ours.keys() & theirs.keys()
            assert len(both) >= (1 - apart) * max(len(ours), len(theirs)) > 100
            found = [ours[k] if ours is a.lit else ours[k][0] for k in both]
            wanted = [theirs[k] if theirs is b.lit else theirs[k][0] for k in both]
            assert np.mean([f != w for f, w in zip(found, wanted, strict=True)]) <= apart
        apart_pixels = (np.abs(a.picture - b.picture) > 3).any(axis=-1)
        assert apart_pixels.mean() <= 2 * apart

    return compare
