"""The shadow map against rays, which know: where the light's centre is seen, how wide penumbras
are, what leaves let through."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.oracle import trace
from bvh.rays import make_rays
from engine.scene.material import Material, Texture
from engine.scene.mesh import make_spheres
from engine.scene.scene import Instance, Scene
from passes.frame_uniforms import pack_uniforms
from passes.twins.shadow_map import map_visibility
from passes.view_culling import Frusta

SIZE = 512  # of maps here
ALL_LIT = 65535


def read_visibility(drawn: Any) -> Any:
    """[h, w] part of the light that each pixel sees, NaN where none could arrive."""
    data = drawn.frame.data
    shape = data.height, data.width
    found = data.device.read(data.resources["shadow_results"]).reshape(-1, 2)[:, 0].reshape(shape)
    direct = data.device.read(data.resources["direct"], np.float16).reshape(*shape, 4)
    parts = ALL_LIT if drawn.frame.options.shadows == "map" else 1
    return np.where(direct[..., :3].max(-1) > 0, found / parts, np.nan)


def near_edges(lit: Any, reach: int = 1) -> Any:
    """Pixels that have one of another kind so near."""
    padded = np.pad(lit, reach, mode="edge")
    height, width = lit.shape
    steps = range(2 * reach + 1)
    shifted = [padded[y : y + height, x : x + width] for y in steps for x in steps]
    return (np.array(shifted) != lit).any(0)


def room_of_posts(kit: Any, half: float) -> Scene:
    """A closed room with a lamp under its ceiling and a post or a ball before each wall and below:
    something throws a shadow in every direction."""
    walls = [
        kit.quad((-4, 0, 4), (8, 0, 0), (0, 0, -8)),
        kit.quad((-4, 0, -4), (8, 0, 0), (0, 5, 0)),
        kit.quad((-4, 0, 4), (0, 5, 0), (8, 0, 0)),
        kit.quad((-4, 0, -4), (0, 5, 0), (0, 0, 8)),
        kit.quad((4, 0, -4), (0, 0, 8), (0, 5, 0)),
    ]
    exact = make_spheres("exact", np.zeros((1, 3)), np.array([0.6]))
    meshes = [*walls, kit.box(), kit.sphere(rings=10), exact]
    placed = [Instance(f"wall{i}", i, np.eye(4)) for i in range(5)]
    spots = [(-1.9, 3.3, 0.4), (2.4, 3.1, 0.9), (0.4, 3.4, -2.0), (0.9, 3.2, 3.2), (0.3, 1.2, 1.4)]
    for index, spot in enumerate(spots):
        matrix = kit.place(spot, (0.2, 0.3, 0.25), 0.4 + index)
        placed.append(Instance(f"post{index}", 5, matrix))
    placed.append(Instance("ball", 6, kit.place((-1.4, 1.1, -0.9), (0.6, 0.6, 0.6))))
    placed.append(Instance("exact", 7, kit.place((1.8, 1.0, -1.2))))
    return kit.scene(
        meshes,
        instances=placed,
        eye=(0.5, 2.6, 3.9),
        target=(0.0, 1.2, -1.0),
        y_fov=1.3,
        light=kit.lamp((0.3, 4.0, 0.6), half, (0.05, -1, -0.1), (20, 20, 20)),
    )


@pytest.fixture(scope="module")
def posts(kit: SimpleNamespace, draw: Any) -> dict[str, Any]:
    """A frame with a map and one with rays, of a lamp that is a point."""
    scene = room_of_posts(kit, 1e-3)
    return {
        kind: draw(scene, 96, 72, shadows=kind, shadow_map_size=SIZE) for kind in ("map", "rays")
    }


def test_a_point_light_is_seen_where_rays_see_it(posts: dict[str, Any]) -> None:
    by_map, by_rays = (read_visibility(posts[kind]) for kind in ("map", "rays"))
    could = ~np.isnan(by_rays)
    np.testing.assert_array_equal(could, ~np.isnan(by_map))
    lit = by_rays == 1
    edge = near_edges(lit | ~could, 2)
    # Few, all of them at shadows' edges; nothing speckled elsewhere.
    other = could & ((by_map >= 0.5) != lit)
    assert could.sum() > 4000 and (could & ~lit).sum() > 250
    assert other.sum() <= 0.002 * could.sum(), other.sum()
    assert not (other & ~edge).any()
    between = (by_map > 0) & (by_map < 1)
    assert (between & could & ~edge).sum() <= 3  # shadows thinner than a pixel


def test_the_map_knows_every_direction(posts: dict[str, Any], rng: np.random.Generator) -> None:
    """Points all over the room, far from what the camera sees, by the lookup's twin."""
    frame, prepared = posts["map"].frame, posts["map"].prepared
    uniforms = pack_uniforms(frame.inputs, 1, 1, frame.scene.bases)
    light = prepared.scene.light
    direction = rng.normal(size=(4000, 3))
    direction[:, 1] = -np.abs(direction[:, 1])  # the lamp shines down, nearly
    bvh = prepared.bvh.words
    out = trace(bvh, make_rays(light.center - 0.01 * np.array([0, 1, 0]), direction, 0.0, 1e9))
    seen = (out.object < 5) & (direction @ light.normal > 0.02)  # walls
    point = light.center - 0.01 * np.array([0, 1, 0]) + out.t[:, None] * direction
    point, way = point[seen], -direction[seen]
    # From a shadow's inside and outside alike: other points of the walls, slid along them.
    normals = np.array([[0, 1, 0], [0, 0, 1], [0, 0, -1], [1, 0, 0], [-1, 0, 0]], float)
    normal = normals[out.object[seen]]
    slide = rng.uniform(-1.2, 1.2, point.shape)
    point = np.clip(point + slide - (slide * normal).sum(1, keepdims=True) * normal, -3.99, 4.9)
    point[:, 1] = np.maximum(point[:, 1], 0.0)
    to_light = light.center - point
    way = to_light / np.linalg.norm(to_light, axis=1, keepdims=True)
    facing = (-way @ light.normal > 0.05) & ((way * normal).sum(1) > 0.05)
    point, normal, to_light = point[facing], normal[facing], to_light[facing]
    start = point + 1e-3 * normal
    truth = trace(bvh, make_rays(start, light.center - start, 0.0, 0.9995)).object == 0xFFFFFFFF
    centre = np.full((len(point), 2), 0.5, np.float32)
    found = map_visibility(
        uniforms,
        frame.data.targets.read("shadow_map"),
        np.zeros(len(point), np.uint32),
        point.astype(np.float32),
        normal.astype(np.float32),
        centre,
    )
    axes = np.stack([light.half_u, light.half_v, 1e-3 * light.normal]) * 1e3
    local = -to_light @ axes.T
    longest = np.abs(local).argmax(1)
    layer = longest + 3 * (local[np.arange(len(local)), longest] < 0)
    for face in (0, 1, 2, 3, 4):
        here = layer == face
        assert here.sum() > 100 and (~truth[here]).sum() >= 5, (face, here.sum(), truth[here].sum())
        assert ((found[here] >= 0.5) != truth[here]).mean() < 0.02, face


def test_penumbras_widen_with_distance(kit: Any, draw: Any) -> None:
    """A straight edge at two heights over a floor 4 m below a lamp 0.6 m wide: the half-lit band is
    as wide as the lamp seen through a pinhole there."""
    for height, tolerance in ((0.8, 0.3), (2.0, 0.2)):
        floor = kit.quad((-9, 0, 9), (18, 0, 0), (0, 0, -18))
        edge = kit.quad((-3, height, 3), (3, 0, 0), (0, 0, -6))
        scene = kit.scene(
            [floor, edge],
            eye=(0.0, 0.6 * height, 0.001),
            target=(0, 0, 0),
            up=(0, 0, -1),
            y_fov=2 * np.arctan(0.25 / (0.6 * height)),
            light=kit.lamp((0, 4, 0), 0.3),
        )
        drawn = draw(scene, 128, 16, samples=1, shadows="map", shadow_map_size=1024)
        # Metres across: 0.5 from the upper to the lower border, 4 from left to right.
        lit = read_visibility(drawn).mean(0)
        steps = np.abs(np.diff(lit, prepend=lit[:1]))
        metres = 4 / 128
        # The width of a band in which visibility falls evenly is sqrt(12) standard deviations.
        place = np.arange(128) * metres
        mean = (place * steps).sum() / steps.sum()
        spread = np.sqrt(((place - mean) ** 2 * steps).sum() / steps.sum())
        width = 0.6 * height / (4 - height)
        assert np.sqrt(12) * spread == pytest.approx(width, rel=tolerance, abs=metres), height
        assert lit.min() == 0 and lit.max() == 1
        # Nor do its outer parts, of which little is hidden, let light through.
        part = 0.5 + (place + metres / 2 - 2) / width
        outer = (part > 0.75) & (part < 1)
        assert lit[outer].mean() == pytest.approx(part[outer].mean(), abs=0.05), height


def test_what_is_close_to_a_surface_shades_it(kit: Any, draw: Any) -> None:
    """Fins far below a wide lamp: 6 cm high it hides the lamp from a strip as wide, a fiftieth of
    the lamp's own shadow on the map, 30 cm high from one five times as wide; nothing else is near
    that could be found instead. Where a part of the lamp is seen the blockers lie to one side of
    the point, all the closer the narrower the shadow's edge."""
    # Measured: dark 0.078 and 0.0002 apart, edge 0.189 and 0.054; without the edge it is 0.32.
    for height, dark_apart, edge_apart in ((0.06, 0.12, 0.22), (0.3, 0.03, 0.08)):
        fin = kit.quad((0, 0, 1), (0, height, 0), (0, 0, -2))
        scene = kit.scene(
            [kit.quad((-2, 0, 2), (4, 0, 0), (0, 0, -4)), fin],
            eye=(0.0, 0.5, 0.001),
            up=(0, 0, -1),
            y_fov=0.5,
            light=kit.lamp((3.0, 3.0, 0.5), 0.6, (-1, -1, 0)),
        )
        lit = {}
        for kind, frames in (("map", 8), ("rays", 32)):
            drawn = draw(scene, 64, 24, shadows=kind, shadow_map_size=2048)
            seen = [read_visibility(drawn)]
            for index in range(1, frames):
                drawn.frame.run(index)
                seen.append(read_visibility(drawn))
            lit[kind] = np.where(drawn.aov("object") == 0, np.nanmean(seen, 0), np.nan)
        dark = {kind: 1 - np.nanmean(values) for kind, values in lit.items()}
        # The bias takes half a texel, 2 mm, off it.
        assert dark["rays"] > 0.05
        assert dark["map"] == pytest.approx(dark["rays"], rel=dark_apart), height
        edge = (lit["rays"] > 0.5) & (lit["rays"] < 0.9)
        assert edge.sum() > 15
        apart = lit["map"][edge].mean() - lit["rays"][edge].mean()
        assert abs(apart) < edge_apart, (height, apart)


def test_leaves_let_light_through(kit: Any, draw: Any) -> None:
    pixels = np.full((8, 8, 4), 255, np.uint8)
    pixels[..., 3] = np.where(np.indices((8, 8)).sum(0) % 2, 255, 0)
    leaf = Material("leaf", roughness=1.0, alpha_mode="MASK", base_color_texture=0)
    scene = kit.scene(
        [
            kit.quad((-4, 0, 4), (8, 0, 0), (0, 0, -8)),
            kit.quad((-1, 1, 1), (2, 0, 0), (0, 0, -2), 1),
        ],
        [kit.grey(), leaf],
        textures=[Texture("holes", pixels, True)],
        eye=(0, 0.9, 2.5),
        light=kit.lamp((0, 4, 0), 1e-3),
    )
    by_map, by_rays = (
        read_visibility(draw(scene, 96, 64, shadows=kind, shadow_map_size=1024))
        for kind in ("map", "rays")
    )
    could = ~np.isnan(by_rays)
    dark = could & (by_rays == 0)
    assert dark.sum() > 300
    other = could & ((by_map >= 0.5) != (by_rays == 1))
    assert other.sum() < 0.02 * could.sum()
    assert not (other & ~near_edges(by_rays == 1)).any()


def test_hits_of_reflection_rays_are_shadowed(kit: Any, draw: Any, room: Any) -> None:
    drawn = {
        kind: draw(room, 96, 64, shadows=kind, shadow_map_size=SIZE, samples=8)
        for kind in ("map", "rays")
    }
    by_map, by_rays = (drawn[kind].frame.radiance() for kind in ("map", "rays"))
    assert "shadow" not in drawn["map"].stats.rays and "reflection" in drawn["map"].stats.rays
    mirror = drawn["rays"].aov("roughness") < 0.02
    assert np.abs(by_map - by_rays)[mirror].mean() < 0.02 * by_rays[mirror].mean()
    assert np.abs(by_map - by_rays).mean() < 0.02 * by_rays.mean()


def test_views_leave_out_what_they_cannot_see(
    draw: Any, room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer objects are drawn, and the same is seen."""
    fallback: dict[str, Any] = dict(reflections="screen", shadows="map", shadow_map_size=256)
    targets = draw(room, 8, 8, **fallback).frame.data.targets
    masks = [v.mask for name, v in targets.resources.items() if name.endswith("/seen")]
    assert len(masks) == 11
    assert 0.1 < np.mean([mask.mean() for mask in masks]) < 0.8
    assert all(mask[7] for mask in masks)  # it deforms
    monkeypatch.setattr(
        Frusta, "see", lambda self, center, _: np.ones((len(self.origins), len(center)), bool)
    )
    others = draw(room, 8, 8, **fallback).frame.data.targets
    assert all(v.mask.all() for name, v in others.resources.items() if name.endswith("/seen"))
    for name in ("shadow_map", "probe_ids"):
        np.testing.assert_array_equal(targets.read(name), others.read(name))
