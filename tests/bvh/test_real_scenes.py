"""Real scenes: the kitchen's structure is sound and within its limits, and rays through them meet
what they meet through Embree (embreex): primary, reflection and shadow rays.

Hit or miss must be equal, t within 1e-4 relative, and the triangle the same unless t ties. For
hits so near that 1e-4 of t is less than float32 can place a point, the distance between the two
points counts instead. At least 99.99% of the rays agree; every other one is explained in float64:
it passes an edge, lies in a triangle's plane, starts or ends on a surface, or both t are right
within float32's resolution. The oracle agrees on every ray, without the second tolerance.
"""

import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import trimesh

from bvh import oracle, raysets
from bvh.build import Blas, BuildOptions, build_blas
from bvh.rays import RayFlags
from bvh.scene_bvh import SceneBvh, assemble
from bvh.surface import surface_at
from bvh.tlas import BvhInstance
from bvh.validate import validate

pytestmark = pytest.mark.timeout(600)  # the kitchen's build, on a busy machine

T_TOLERANCE = 1e-4
AGREEMENT = 0.9999
POINT_TOLERANCE = 1e-6  # of the origin's largest coordinate: 16 float32 roundings
# What counts as "on" an edge, a plane or an end: this share of the largest coordinate involved.
RESOLUTION = 4e-6
GRAZING = 1e-3  # sine of the angle between ray and plane

# name -> eye, target, vertical angle, light (center, half_u, half_v), width, height
VIEWS = {
    "kitchen.glb": (
        (1.211, 1.80475, 3.85239), (0.773, 1.763, 2.954), 0.95,
        ((0, 2.6, 0.5), (0.25, 0, 0), (0, 0, 0.25)), 200, 150,
    ),
    "spaceship.glb": (
        (3, 1.7, 3.5), (0, 0.5, 0), 0.7, ((2, 8, 3), (1, 0, 0), (0, 0, 1)), 176, 120,
    ),
    "stanford-bunny.obj": (
        (0.1, 0.2, 0.25), (-0.017, 0.11, 0), 0.6, ((0.2, 0.5, 0.2), (0.05, 0, 0), (0, 0, 0.05)),
        176, 120,
    ),
    "spot.obj": (
        (1.5, 1.5, 2.5), (0, 0.1, 0.2), 0.7, ((2, 4, 2), (0.5, 0, 0), (0, 0, 0.5)), 176, 120,
    ),
}  # fmt: skip


def look_at(eye, target):
    matrix = np.eye(4)
    z = np.subtract(eye, target)
    z /= np.linalg.norm(z)
    x = np.cross((0, 1, 0), z)
    x /= np.linalg.norm(x)
    matrix[:3, :3] = np.stack([x, np.cross(z, x), z], 1)
    matrix[:3, 3] = eye
    return matrix


def load_soup(path):
    """World-space triangles, rounded to float32 once, and the first row of each mesh."""
    scene = trimesh.load(path, process=False, force="scene")
    parts = []
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        mesh = scene.geometry[name]
        world = trimesh.transform_points(mesh.vertices, transform).astype(np.float32)
        parts.append(world[mesh.faces])
    return np.concatenate(parts), np.cumsum([0] + [len(p) for p in parts[:-1]])


@dataclass(frozen=True)
class Kitchen:
    """The kitchen as one world-space triangle soup, its scene buffer and what the build took."""

    triangles: np.ndarray  # [m, 3, 3] float32
    geometry: np.ndarray  # [m]
    primitive: np.ndarray  # [m]
    blas: Blas
    bvh: SceneBvh
    seconds: float
    peak_bytes: int


@pytest.fixture(scope="module")
def kitchen(shared_scenes: Path) -> Kitchen:
    """Built once with default options; CPU time, which includes what tracemalloc costs."""
    parts = []
    scene = trimesh.load(shared_scenes / "kitchen.glb", process=False)
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        mesh = scene.geometry[name]
        world = mesh.vertices @ transform[:3, :3].T + transform[:3, 3]
        parts.append(world.astype(np.float32)[mesh.faces])
    triangles = np.concatenate(parts)
    counts = [len(part) for part in parts]
    geometry = np.repeat(np.arange(len(parts), dtype=np.uint32), counts)
    primitive = np.concatenate([np.arange(n, dtype=np.uint32) for n in counts])
    tracemalloc.start()
    started = time.process_time()
    blas = build_blas(triangles, geometry, primitive, np.ones(len(parts), np.bool_), BuildOptions())
    seconds = time.process_time() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    bvh = assemble([blas], ["kitchen"], [BvhInstance(0, name="kitchen")])
    return Kitchen(triangles, geometry, primitive, blas, bvh, seconds, peak)


def test_kitchen_within_its_limits(kitchen: Kitchen) -> None:
    stats = kitchen.blas.stats
    assert len(kitchen.triangles) == 1_021_813
    assert stats.dropped_degenerate == 219
    assert stats.triangles == 1_021_813 - 219
    assert kitchen.seconds < 150.0, "about 20 s on an idle core"
    assert kitchen.peak_bytes < 1 << 30
    assert stats.triangles_per_block > 1.85
    assert stats.fill > 3.0
    assert stats.sah < 14.0
    assert stats.depth <= 28
    assert stats.stack_bound <= 56
    assert stats.bytes < 70 * stats.triangles


def test_kitchen_is_sound(kitchen: Kitchen) -> None:
    assert validate(kitchen.bvh) == []


@pytest.fixture(scope="module", params=VIEWS)
def case(request, shared_scenes, built):
    """(name, SceneBvh, triangles, first row of each geometry, Embree scene)."""
    scene_module = pytest.importorskip("embreex.rtcore_scene", reason="embreex is x86-64 only")
    from embreex.mesh_construction import TriangleMesh

    name = request.param
    if name == "kitchen.glb":
        made = request.getfixturevalue("kitchen")
        triangles, bvh = made.triangles, made.bvh
        first = np.searchsorted(made.geometry, np.arange(made.geometry.max() + 1))
    else:
        triangles, _ = load_soup(shared_scenes / name)
        bvh, first = built.scene(triangles, reinsertion=4), np.zeros(1, np.int64)
    embree = scene_module.EmbreeScene()
    # The mesh is kept alive beside the scene that refers to it.
    return name, bvh, triangles, first, embree, TriangleMesh(embree, triangles)


@pytest.fixture(scope="module")
def rays_of(case):
    """`rays_of(kind)`, made once for all tracers."""
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = make_rays_of(kind, *case[:2])
        return made[kind]

    return get


def make_rays_of(kind, name, bvh):
    eye, target, angle, light, width, height = VIEWS[name]
    camera = look_at(eye, target)
    rays, _ = raysets.primary_rays(camera, angle, width, height)
    if kind == "primary":
        return rays
    surface = surface_at(bvh, rays, oracle.trace(bvh.words, rays))
    if kind == "shadow":
        shadow = raysets.shadow_rays(surface, light, np.random.default_rng(5))
        # A surface that faces away meets itself at once: no question for two tracers.
        facing = (surface.normal * shadow["direction"]).sum(1) > 0
        return shadow[facing]
    return raysets.mirror_rays(surface, rays["direction"][surface.lanes].astype(np.float64))


def explain(ray, triangle, answers):
    """Why two float32 tracers may differ about this pair: "edge", "coplanar", "end", "rounding"
    (both t are the plane's, as far as float32 can place a point on this triangle) or ""."""
    a, b, c = triangle.astype(np.float64)
    o, d = ray["origin"].astype(np.float64), ray["direction"].astype(np.float64)
    length = np.linalg.norm(d)
    scale = max(np.abs(triangle).max(), np.abs(o).max()) * RESOLUTION
    normal = np.cross(b - a, c - a)
    size = np.linalg.norm(normal)
    if size == 0 or abs(normal @ d) <= GRAZING * size * length:
        return "coplanar"
    t = normal @ (a - o) / (normal @ d)
    if abs(t - ray["t_min"]) * length <= scale or abs(t - ray["t_max"]) * length <= scale:
        return "end"
    if np.abs(np.subtract(answers, t)).max() * length <= scale:
        return "rounding"
    point = o + t * d
    # The tolerance grows with the slant: a step along the ray moves that much in the plane.
    reach = scale * size * length / abs(normal @ d)
    for start, end in ((a, b), (b, c), (c, a)):
        edge = end - start
        if np.linalg.norm(np.cross(point - start, edge)) <= reach * np.linalg.norm(edge):
            return "edge"
    return ""


@pytest.mark.parametrize("kind", ["primary", "mirror", "shadow"])
def test_equals_embree(case, rays_of, kind, tracers):
    name, bvh, triangles, first, embree, _ = case
    rays = rays_of(kind)
    assert len(rays) > 3500
    origin = np.ascontiguousarray(rays["origin"])
    direction = np.ascontiguousarray(rays["direction"])
    limit = np.where(np.isinf(rays["t_max"]), np.float32(1e37), rays["t_max"])
    theirs = embree.run(origin, direction, dists=limit, output=1)
    their_hit = theirs["primID"] >= 0
    mine = tracers(bvh, rays)
    assert not mine.overflows.any()
    row = np.full(len(rays), -1)
    row[mine.hit] = first[mine.object[mine.hit]] + mine.primitive[mine.hit]
    assert mine.hit.sum() > (4000 if kind == "primary" else 100)

    both = mine.hit & their_hit
    my_t = np.where(both, mine.t, 1)
    apart = np.abs(my_t - theirs["tfar"])
    strict = apart <= T_TOLERANCE * my_t
    length = np.linalg.norm(direction, axis=1)
    close = strict | (apart * length <= POINT_TOLERANCE * np.abs(origin).max(1))
    agree = (~mine.hit & ~their_hit) | (both & close)
    if isinstance(mine, oracle.Trace):
        assert (strict | ~both).all()
    if kind == "shadow":
        # What is asked of shadow rays is whether anything is hit; their own any-hit query too.
        occluded = embree.run(origin, direction, dists=limit, query="OCCLUDED") >= 0
        mine_any = tracers(bvh, rays, any_hit=True).hit
        assert (mine_any == mine.hit).all()
        agree &= occluded == mine_any

    unexplained = []
    for i in np.flatnonzero(~agree):
        involved = {int(row[i]), int(theirs["primID"][i])} - {-1}
        answers = (mine.t[i], theirs["tfar"][i])
        reasons = {explain(rays[i], triangles[k], answers) for k in involved} - {""}
        if not reasons:
            unexplained.append((int(i), float(mine.t[i]), float(theirs["tfar"][i]), involved))
    assert not unexplained, f"{name} {kind}: {unexplained[:5]}"
    assert agree.mean() >= AGREEMENT, f"{name} {kind}: {(~agree).sum()} of {len(rays)}"
    # Where t agrees the triangle is the same one, or another at the same t (tie by definition);
    # ties are the exception, or the ids would prove nothing.
    same = row[both] == theirs["primID"][both]
    assert same.mean() > 0.98, f"{name} {kind}: {same.mean()}"


def test_back_face_culling_agrees_with_embrees_normal(case, rays_of, tracers):
    name, bvh, triangles, first, embree, _ = case
    rays = rays_of("primary")
    theirs = embree.run(
        np.ascontiguousarray(rays["origin"]), np.ascontiguousarray(rays["direction"]), output=1
    )
    facing = np.einsum("ij,ij->i", triangles_normal(triangles, theirs["primID"]), rays["direction"])
    front = (facing < 0) & (theirs["primID"] >= 0)
    culled = tracers(bvh, rays, flags=RayFlags.CULL_BACK_FACING)
    same = culled.t == theirs["tfar"]
    near = np.abs(culled.t - theirs["tfar"]) <= T_TOLERANCE * theirs["tfar"]
    assert front.sum() > 1000
    assert (same | near)[front].mean() > 0.999  # what was in front and faced the ray is still there


def triangles_normal(triangles, rows):
    chosen = triangles[np.maximum(rows, 0)].astype(np.float64)
    return np.cross(chosen[:, 1] - chosen[:, 0], chosen[:, 2] - chosen[:, 0])
