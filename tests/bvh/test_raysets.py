"""Ray sets: what the rays of each kind are, safe origins, and the file."""

import numpy as np
import pytest
import trimesh

from bvh import oracle, raysets
from bvh.brute_force import closest
from bvh.rays import MISS_ID, RAY, make_rays
from bvh.scene_bvh import assemble
from bvh.surface import offset_origin, surface_at
from bvh.tlas import BvhInstance
from engine.gpu.errors import UserError

LIGHT = ((0, 6, 0), (0.5, 0, 0), (0, 0, 0.5))
FLOOR = np.array(
    [[(-9, 0, -9), (-9, 0, 9), (9, 0, 9)], [(-9, 0, -9), (9, 0, 9), (9, 0, -9)]], np.float32
)


def view(height=3.0, distance=8.0, pitch=0.35):
    """A camera looking down its -Z towards the origin from +Z, tilted down."""
    matrix = np.eye(4)
    c, s = np.cos(pitch), np.sin(pitch)
    matrix[:3, :3] = [[1, 0, 0], [0, c, s], [0, -s, c]]
    matrix[:3, 3] = (0, height, distance)
    return matrix


def ball_on_floor(built):
    ball = trimesh.creation.icosphere(subdivisions=2)
    soup = ball.vertices.astype(np.float32)[ball.faces]
    lifted = np.eye(4)
    lifted[:3, :3] *= 1.5
    lifted[1, 3] = 1.5
    return assemble(
        [built.blas(FLOOR), built.blas(soup)],
        ["floor", "ball"],
        [BvhInstance(0), BvhInstance(1, lifted, first_object=1)],
    )


def make(kind, built, **options):
    return raysets.make_rayset(kind, ball_on_floor(built), view(), 0.9, 61, 45, LIGHT, **options)


def test_tiles_of_8_by_4_cover_every_pixel_once():
    order = raysets.tile_order(19, 9)
    assert sorted(order) == list(range(171))
    y, x = np.divmod(order, 19)
    first = [(int(a), int(b)) for a, b in zip(x[:33], y[:33], strict=True)]
    assert first[:9] == [(i, 0) for i in range(8)] + [(0, 1)]
    assert first[31:33] == [(7, 3), (8, 0)]
    # The third tile of the row is 3 pixels wide.
    assert [int(v) for v in x[64:67]] == [16, 17, 18] and (x[67], y[67]) == (16, 1)


def test_primary_rays_go_through_pixel_centres():
    rays, pixels = raysets.primary_rays(np.eye(4), np.pi / 2, 4, 2)
    by_pixel = rays["direction"][np.argsort(pixels)]
    flat = by_pixel[:, :2] / -by_pixel[:, 2:]
    # 90 degrees high: y = +-1 at the border, so centres at +-0.5; x goes twice as far.
    assert flat[:4] == pytest.approx(np.array([(-1.5, 0.5), (-0.5, 0.5), (0.5, 0.5), (1.5, 0.5)]))
    assert flat[4:, 1] == pytest.approx([-0.5] * 4)
    assert np.linalg.norm(by_pixel, axis=1) == pytest.approx(np.ones(8))


def test_expected_hits_are_those_of_brute_force(built):
    scene = ball_on_floor(built)
    ball = trimesh.creation.icosphere(subdivisions=2)
    soup = ball.vertices.astype(np.float32)[ball.faces] * 1.5 + [0, 1.5, 0]
    for kind in raysets.KINDS:
        made = raysets.make_rayset(kind, scene, view(), 0.9, 61, 45, LIGHT, seed=3)
        want = closest(np.concatenate([FLOOR, soup]), made.rays)
        hit = np.isfinite(want.t)
        assert 0.01 < hit.mean() < 0.99, kind
        got = made.expected_t < np.inf
        # A bounce that grazes the seam between ball and floor may fall either way.
        assert (got != hit).sum() <= 2, kind
        both = got & hit
        # Shadow rays of surfaces that face away meet their own surface at once, where the
        # instance's rounded transform is all that t consists of.
        both &= want.t > 1e-2
        np.testing.assert_allclose(made.expected_t[both], want.t[both], rtol=1e-4)
        assert (made.expected_instance[both] == (want.triangle[both] > 1)).mean() > 0.999
        assert (made.expected_object == made.expected_instance).all()
        assert (made.expected_primitive[~got] == MISS_ID).all()
        assert made.any_hit == (kind == "shadow")


def test_secondary_rays_start_at_primary_hits_and_leave_them(built):
    primary = make("primary", built)
    hit = primary.expected_t < np.inf
    assert 0.3 < hit.mean() < 0.95
    t = np.where(hit, primary.expected_t, 0)[:, None]
    point = primary.rays["origin"] + t * primary.rays["direction"]
    for kind in ("mirror", "diffuse", "shadow"):
        made = make(kind, built)
        assert (made.pixels == primary.pixels[hit]).all()
        assert np.abs(made.rays["origin"] - point[hit]).max() < 1e-4
    floor = primary.expected_instance[hit] == 0
    mirror, diffuse, shadow = (make(k, built).rays for k in ("mirror", "diffuse", "shadow"))
    incoming = primary.rays["direction"][hit][floor]
    assert mirror["direction"][floor] == pytest.approx(incoming * (1, -1, 1), abs=1e-6)
    # Cosine-weighted: mean cosine 2/3, mean of its square 1/2, no preferred side.
    up = diffuse["direction"][floor]
    assert up[:, 1].min() > 0 and up[:, 1].mean() == pytest.approx(2 / 3, abs=0.03)
    assert (up[:, 1] ** 2).mean() == pytest.approx(0.5, abs=0.03)
    assert np.abs(up[:, [0, 2]].mean(0)).max() < 0.05
    end = shadow["origin"] + shadow["direction"]
    assert end[:, 1] == pytest.approx(np.full(len(end), 6.0))
    assert np.abs(end[:, [0, 2]]).max() < 0.5 + 1e-5 and np.ptp(end[:, 0]) > 0.9
    assert (shadow["t_max"] < 1).all() and (shadow["t_max"] > 0.999).all()


def test_secondary_rays_stay_on_the_side_that_was_seen(built):
    # The floor's winding normal is +y; from below the rays leave downwards.
    below = view(-3.0, 8.0, -0.35)
    scene = built.scene(FLOOR)
    for kind in ("mirror", "diffuse"):
        made = raysets.make_rayset(kind, scene, below, 0.9, 24, 16)
        assert len(made.rays) > 50
        assert (made.rays["direction"][:, 1] < 0).all() and (made.rays["origin"][:, 1] < 0).all()
        assert not (made.expected_t < np.inf).any()


def test_the_seed_decides_the_random_kinds(built):
    for kind, depends in (("mirror", False), ("diffuse", True), ("shadow", True)):
        a, b, c = (make(kind, built, seed=s).rays for s in (1, 1, 2))
        assert (a == b).all()
        assert (a != c).any() == depends


# ---- origins ----------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [1e-3, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("where", ["vertices", "instance"])
def test_no_acne_on_a_sphere_at_any_distance_from_the_origin(built, rng, distance, where):
    # Outward rays from a convex mesh hit nothing, however flat; inward rays all hit.
    ball = trimesh.creation.icosphere(subdivisions=3, radius=distance / 10)
    shift = rng.normal(size=3)
    shift *= distance / np.linalg.norm(shift)
    soup = ball.vertices[ball.faces]
    if where == "vertices":
        scene = built.scene(soup + shift)
    else:
        matrix = np.eye(4)
        matrix[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0] * (0.7, 2.0, 1.3)
        matrix[:3, 3] = shift
        scene = built.scene(soup, matrix)
    away = rng.normal(size=(4000, 3))
    origin = shift + away / np.linalg.norm(away, axis=1, keepdims=True) * distance * 0.5
    rays = make_rays(origin, shift + rng.normal(size=(4000, 3)) * distance / 30 - origin)
    found = oracle.trace(scene.words, rays)
    surface = surface_at(scene, rays, found)
    assert len(surface.lanes) > 2000
    # All around the upper half space, most of them within a degree of the horizon.
    tangent = np.cross(surface.normal, rng.normal(size=surface.normal.shape))
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    lift = 10.0 ** rng.uniform(-4, 0, (len(tangent), 1))
    direction = tangent + lift * surface.normal
    start = offset_origin(surface.point, surface.normal, surface.error)
    outward = oracle.trace(scene.words, make_rays(start, direction))
    assert outward.hit.sum() == 0
    inward = oracle.trace(scene.words, make_rays(start, -surface.normal), count_all=True)
    assert (inward.crossings == 2).all()
    # The offset is small: a leak at a wall's foot would need more than this.
    moved = np.linalg.norm(start - surface.point, axis=1)
    assert moved.max() < 1e-5 * distance
    # And it is needed: from the bare point some of these rays hit their own surface.
    bare = oracle.trace(scene.words, make_rays(surface.point, direction))
    assert bare.hit.sum() > 0


def test_no_acne_on_a_large_floor_through_the_origin(built, rng):
    # All of the floor's y are zero, so an error bound taken axis by axis would be zero too; the
    # test measures t along x or z for flat rays, and errs by their extent.
    scene = built.scene(FLOOR)
    origin = np.column_stack([rng.uniform(-8, 8, 4000), np.ones(4000), rng.uniform(-8, 8, 4000)])
    rays = make_rays(origin, (0, -1, 0))
    surface = surface_at(scene, rays, oracle.trace(scene.words, rays))
    start = offset_origin(surface.point, surface.normal, surface.error)
    flat = rng.normal(size=(4000, 3))
    flat[:, 1] = 10.0 ** rng.uniform(-4, 0, 4000)
    assert not oracle.trace(scene.words, make_rays(start, flat)).hit.any()
    assert oracle.trace(scene.words, make_rays(surface.point, flat)).hit.any()
    assert start[:, 1].max() < 1e-4


def test_no_leak_at_a_walls_foot(built, rng):
    # Floor and wall meet at a right angle; the light is behind the wall. Shadow rays from the
    # floor, down to 1e-6 from the wall, are all occluded.
    wall = np.array([[(0, 0, -9), (0, 9, -9), (0, 9, 9)], [(0, 0, -9), (0, 9, 9), (0, 0, 9)]])
    scene = built.scene(np.concatenate([FLOOR, wall]))
    foot = np.column_stack(
        [10.0 ** rng.uniform(-6, 0, 3000), np.zeros(3000), rng.uniform(-5, 5, 3000)]
    )
    rays = make_rays(foot + (0, 1, 0), (0, -1, 0))
    found = oracle.trace(scene.words, rays)
    surface = surface_at(scene, rays, found)
    floor = found.primitive[surface.lanes] < 2
    assert floor.mean() > 0.99
    light = ((-4, 3, 0), (0, 0, 0.3), (0.3, 0, 0))
    shadow = raysets.shadow_rays(surface, light, rng)[floor]
    assert oracle.trace(scene.words, shadow, any_hit=True).hit.all()


# ---- file -------------------------------------------------------------------------------------


def test_file_round_trip_and_documented_keys(built, tmp_path):
    made = make("shadow", built, seed=7, scene_sha256="ab" * 32)
    path = tmp_path / "strahlen ü.npz"
    raysets.save(path, made)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    read = raysets.load(path)
    for name in raysets.RaySet.__dataclass_fields__:
        a, b = getattr(made, name), getattr(read, name)
        assert (a == b).all() if isinstance(a, np.ndarray) else a == b, name
    assert read.rays.dtype == RAY
    with np.load(path, allow_pickle=False) as file:
        assert str(file["format"]) == "treeline rays" and file["version"] == 1
        assert file["rays"].shape == (len(made.rays), 8) and file["rays"].dtype == np.float32
        assert (file["rays"][:, 3] == made.rays["t_min"]).all()
        assert file["expected_t"].dtype == np.float32 and file["pixels"].dtype == np.uint32
        assert (int(file["width"]), int(file["height"]), int(file["seed"])) == (61, 45, 7)
        assert str(file["kind"]) == "shadow" and str(file["scene_sha256"]) == "ab" * 32


def test_damaged_and_foreign_files_are_refused_in_one_line(built, tmp_path):
    good = tmp_path / "good.npz"
    raysets.save(good, make("primary", built))
    data = good.read_bytes()
    with np.load(good) as file:
        keys = {name: file[name] for name in file.files}

    def bad(name, **changes):
        path = tmp_path / name
        np.savez(path, **{k: v for k, v in (keys | changes).items() if v is not None})
        return path

    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0xFF
    for name, content in {
        "cut.npz": data[: len(data) // 2],
        "flipped.npz": bytes(flipped),
        "empty.npz": b"",
        "text.npz": b"not a zip",
    }.items():
        (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "pickle.npz", **(keys | {"rays": np.array([{}], object)}))
    paths = [tmp_path / n for n in ("cut.npz", "flipped.npz", "empty.npz", "text.npz", "array.npy")]
    paths += [tmp_path / "pickle.npz", tmp_path / "missing.npz", tmp_path]
    paths += [
        bad("version.npz", version=np.int64(2)),
        bad("format.npz", format=np.array("something else")),
        bad("noformat.npz", format=None),
        bad("nokey.npz", expected_t=None),
        bad("short.npz", expected_t=keys["expected_t"][:-1]),
        bad("type.npz", rays=keys["rays"].astype(np.float64)),
        bad("shape.npz", rays=keys["rays"][:, :7]),
        bad("kind.npz", kind=np.array("sideways")),
        bad("width.npz", width=np.float64(3)),
        bad("sha.npz", scene_sha256=np.int64(3)),
        bad("texts.npz", kind=np.array(["a", "b"])),
    ]
    for path in paths:
        with pytest.raises(UserError) as caught:
            raysets.load(path)
        assert path.name in str(caught.value) and "\n" not in str(caught.value), path


def test_a_failed_save_leaves_nothing_and_keeps_the_old_file(built, tmp_path, monkeypatch):
    made = make("primary", built)
    path = tmp_path / "rays.npz"
    with pytest.raises(UserError, match="cannot write"):
        raysets.save(tmp_path / "no such folder" / "rays.npz", made)
    raysets.save(path, made)
    before = path.read_bytes()

    def interrupted(file, **_):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        raysets.save(path, made)
    assert [p.name for p in tmp_path.iterdir()] == ["rays.npz"] and path.read_bytes() == before


def test_requests_that_cannot_be_met(built):
    scene = ball_on_floor(built)
    with pytest.raises(UserError, match="sideways"):
        raysets.make_rayset("sideways", scene, view(), 0.9, 8, 8)
    with pytest.raises(UserError, match="light"):
        raysets.make_rayset("shadow", scene, view(), 0.9, 8, 8)
    with pytest.raises(UserError, match="0x8"):
        raysets.make_rayset("primary", scene, view(), 0.9, 0, 8)
    # A view of nothing: no hits, so no secondary rays, and that is a valid file's content.
    empty = assemble([], [], [])
    assert len(raysets.make_rayset("mirror", empty, view(), 0.9, 8, 8).rays) == 0
    assert not (raysets.make_rayset("primary", empty, view(), 0.9, 8, 8).expected_t < np.inf).any()
