"""Reflections from the screen against reflection rays, where the screen shows what these hit."""

from typing import Any

import numpy as np
import pytest

from bvh.rays import MISS_ID
from engine.gpu.errors import UserError
from engine.scene.scene import Instance
from passes.frame_options import FrameOptions
from treeline.report_found import found_sentence

SMALL = dict(shadow_map_size=128, probe_size=64)
FALLBACK = dict(reflections="screen", shadows="map", **SMALL)
DARK = (0.0, 0.0, 0.0)
SIZE = (120, 80)


def make_mirror(kit: Any, kind: str) -> Any:
    """A wall of glowing cells behind a mirror: a floor with a glowing box on it, or a wall at the
    left, whose rays pass behind a thin pillar near the camera on their way."""
    floor = kind == "floor"
    cells = [
        kit.quad((x, y, -4), (1, 0, 0), (0, 1, 0), 1 + (x + y) % 2)
        for x in range(-4, 4)
        for y in range(4)
    ]
    side = kit.quad((-2, 0, 4), (0, 0, -8), (0, 4, 0), 0)
    glass = kit.quad((-9, 0, 9), (18, 0, 0), (0, 0, -18), 0) if floor else side
    meshes = [glass, *cells, kit.box(3)]
    place = kit.place((-0.6, 0.7, -1.5), (0.5, 0.5, 0.5))
    if not floor:
        place = kit.place((0.35, 1.0, 1.5), (0.04, 2.0, 0.04))
    placed = [Instance(f"i{k}", k, np.eye(4)) for k in range(len(meshes) - 1)]
    placed.append(Instance("box", len(meshes) - 1, place))
    return kit.scene(
        meshes,
        [
            kit.mirror(),
            kit.grey(0.0, emissive=(1.0, 0.6, 0.2)),
            kit.grey(0.0, emissive=(0.1, 0.2, 0.5)),
            kit.grey(0.0, emissive=(0.2, 1.0, 0.3)),
        ],
        instances=placed,
        eye=(0.4, 1.3, 5.0) if floor else (0.9, 1.3, 5.0),
        target=(0.0, 0.5, -1.0) if floor else (-0.2, 1.2, -1.0),
        light=kit.lamp((0, 9, 0), radiance=DARK),
    )


def seen_on_screen(rays: Any, hits: Any, drawn: Any) -> tuple[Any, Any]:
    """Of reflection rays: whether the pixel where their hit would be on the picture shows just that
    hit, and how far from the border it is, pixels."""
    camera = drawn.prepared.scene.camera
    depth = drawn.aov("depth")
    height, width = depth.shape
    point = rays["origin"] + hits["t"][:, None] * rays["direction"]
    local = (point - camera.position) @ camera.transform[:3, :3]
    z = -local[:, 2]
    tangent = np.tan(camera.y_fov / 2)
    with np.errstate(all="ignore"):
        x = (local[:, 0] / z / tangent / (width / height) * 0.5 + 0.5) * width
        y = (0.5 - local[:, 1] / z / tangent * 0.5) * height
    border = np.minimum(np.minimum(x, width - x), np.minimum(y, height - y))
    inside = (z > 0) & (border > 0) & (hits["object"] != MISS_ID)
    column, row = (np.where(inside, v, 0).astype(int) for v in (x, y))
    same = drawn.aov("object")[row, column] == hits["object"]
    return inside & same & (np.abs(depth[row, column] - z) < 0.05 * np.abs(z)), border


@pytest.mark.parametrize("kind", ["floor", "wall"])
def test_a_mirror_shows_what_rays_find(kit: Any, draw: Any, kind: str) -> None:
    scene = make_mirror(kit, kind)
    by_rays = draw(scene, *SIZE)
    by_screen = draw(scene, *SIZE, **FALLBACK)
    rays, hits = by_rays.reflections
    shown, border = seen_on_screen(rays, hits, by_rays)
    inner = shown & (border > 0.05 * min(SIZE))
    assert inner.sum() > 1000
    wanted, found = (d.radiance.reshape(-1, 3)[rays["pixel"]] for d in (by_rays, by_screen))
    close = np.isclose(found, wanted, rtol=0.02, atol=0.02).all(1)
    # The rest lies where a cell or the box ends within a pixel of the hit.
    assert close[inner].mean() > 0.96, close[inner].mean()


def test_rays_that_are_cut_off_are_counted(kit: Any, draw: Any) -> None:
    """A ray that has taken its last step shows the probe; the others are as they were."""
    scene = make_mirror(kit, "wall")
    whole, short = (
        draw(scene, *SIZE, **FALLBACK, count=True, screen_steps=steps) for steps in (512, 20)
    )
    before, after = whole.stats.found, short.stats.found
    assert before["cut"] == 0 and after["cut"] > 500
    other = (whole.radiance != short.radiance).any(-1).sum()
    assert 500 < other <= after["cut"] and after["screen"] < before["screen"] - 500
    ways = ("screen", "probe", "environment")
    assert sum(before[way] for way in ways) == sum(after[way] for way in ways)


def passes_behind(rays: Any, hits: Any, drawn: Any, name: int) -> Any:
    """Of reflection rays: whether their way over the picture leads over that object's pixels well
    behind it."""
    camera, shown, depth = drawn.prepared.scene.camera, drawn.aov("object"), drawn.aov("depth")
    height, width = shown.shape
    tangent = np.tan(camera.y_fov / 2)
    found = np.zeros(len(rays), bool)
    reach = np.where(hits["object"] == MISS_ID, 0.0, hits["t"])
    for part in np.linspace(0.02, 0.98, 60):
        point = rays["origin"] + part * reach[:, None] * rays["direction"]
        local = (point - camera.position) @ camera.transform[:3, :3]
        z = np.maximum(-local[:, 2], 1e-6)
        x = (local[:, 0] / z / tangent / (width / height) * 0.5 + 0.5) * width
        y = (0.5 - local[:, 1] / z / tangent * 0.5) * height
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        column, row = (np.where(inside, v, 0).astype(int) for v in (x, y))
        found |= inside & (shown[row, column] == name) & (z > 1.05 * depth[row, column])
    return found


GLOWING = ((1.0, 0.6, 0.2), (0.1, 0.2, 0.5), (0.2, 1.0, 0.3))


def test_rays_pass_behind_what_stands_in_front(kit: Any, draw: Any) -> None:
    """A mirror at the left and a pillar near the camera: what the mirror shows of the wall at the
    back comes from behind the pillar, on the picture by way of its pixels."""
    cells = [
        kit.quad((x, y, -4), (1, 0, 0), (0, 1, 0), 1 + (x + y) % 2)
        for x in range(-4, 4)
        for y in range(4)
    ]
    meshes = [kit.quad((-2, 0, 4), (0, 0, -8), (0, 4, 0), 0), *cells, kit.box(3)]
    placed = [Instance(f"i{k}", k, np.eye(4)) for k in range(len(meshes) - 1)]
    pillar = len(placed)
    placed.append(Instance("box", pillar, kit.place((0.35, 1.0, 1.5), (0.12, 2.0, 0.12))))
    scene = kit.scene(
        meshes,
        [kit.mirror(), *(kit.grey(0.0, emissive=color) for color in GLOWING)],
        instances=placed,
        eye=(0.9, 1.3, 5.0),
        target=(-0.2, 1.2, -1.0),
        light=kit.lamp((0, 9, 0), radiance=DARK),
    )
    by_rays = draw(scene, *SIZE)
    rays, hits = by_rays.reflections
    shown, border = seen_on_screen(rays, hits, by_rays)
    behind = passes_behind(rays, hits, by_rays, pillar) & shown & (border > 4)
    assert behind.sum() > 500
    by_screen = draw(scene, *SIZE, **FALLBACK)
    wanted, found = (d.radiance.reshape(-1, 3)[rays["pixel"]] for d in (by_rays, by_screen))
    close = np.isclose(found, wanted, rtol=0.02, atol=0.02).all(1)
    assert close[behind].mean() > 0.97, close[behind].mean()


def test_rays_meet_floors_and_round_things(kit: Any, draw: Any) -> None:
    """A mirror at the left of a floor that a low camera sees along, and of a ball: a floor's pixel
    is much deeper than wide, so that a ray may come into it above the floor and far behind the
    pixel's depth; beside a ball's edge it may come into the next pixel a little behind the ball."""
    cells = [
        kit.quad((x, 0, z), (0, 0, 1), (1, 0, 0), 1 + (x + z) % 2)
        for x in range(-2, 4)
        for z in range(-16, 4)
    ]
    meshes = [
        kit.quad((-2, 0, 4), (0, 0, -20), (0, 4, 0), 0),
        *cells,
        kit.sphere(material=3, rings=16),
    ]
    placed = [Instance(f"i{k}", k, np.eye(4)) for k in range(len(meshes) - 1)]
    ball = len(placed)
    placed.append(Instance("ball", ball, kit.place((-0.2, 0.9, -1.5), (0.8, 0.8, 0.8))))
    scene = kit.scene(
        meshes,
        [kit.mirror(), *(kit.grey(0.0, emissive=color) for color in GLOWING)],
        instances=placed,
        eye=(1.5, 1.0, 5.0),
        target=(-0.6, 0.7, -2.0),
        light=kit.lamp((0, 9, 0), radiance=DARK),
    )
    by_rays, by_screen = (draw(scene, *SIZE, **options) for options in ({}, FALLBACK))
    rays, hits = by_rays.reflections
    shown, border = seen_on_screen(rays, hits, by_rays)
    inner, round_ones = shown & (border > 4), hits["object"] == ball
    wanted, found = (d.radiance.reshape(-1, 3)[rays["pixel"]] for d in (by_rays, by_screen))
    close = np.isclose(found, wanted, rtol=0.02, atol=0.02).all(1)
    assert (inner & ~round_ones).sum() > 300 and (inner & round_ones).sum() > 300
    assert close[inner & ~round_ones].mean() > 0.95
    assert close[inner & round_ones].mean() > 0.92


def test_what_is_not_on_the_screen_comes_from_the_probe(kit: Any, draw: Any) -> None:
    """A mirror faces the camera: it shows the wall behind it, which no pixel sees."""
    wall = kit.quad((-9, -9, 6), (0, 18, 0), (18, 0, 0), 1)
    glass = kit.quad((-3, -3, 0), (6, 0, 0), (0, 6, 0), 0)
    scene = kit.scene(
        [glass, wall],
        [kit.mirror(), kit.grey(0.0, emissive=(0.3, 0.9, 0.5))],
        light=kit.lamp((0, 9, 0), radiance=DARK),
    )
    drawn = draw(scene, 32, 24, **FALLBACK, count=True)
    np.testing.assert_allclose(
        drawn.radiance[8:16, 8:24], np.tile([0.3, 0.9, 0.5], (8, 16, 1)), atol=0.02
    )
    found = drawn.stats.found
    assert found["screen"] == 0 and found["probe"] == (drawn.aov("object") == 0).sum()


def test_every_pixel_that_reflects_is_counted_once(room: Any, draw: Any) -> None:
    drawn = draw(room, *SIZE, **FALLBACK, count=True)
    found = drawn.stats.found
    smooth = (drawn.aov("object") >= 0) & (drawn.aov("roughness") <= 0.6)
    counted = found["screen"] + found["probe"] + found["environment"]
    # What a rough lobe sends below its surface is lost.
    assert 0.97 * smooth.sum() < counted <= smooth.sum()
    assert min(found["screen"], found["probe"], found["environment"]) > 50
    assert draw(room, 16, 8, **FALLBACK).stats.found is None
    assert draw(room, 16, 8, count=True).stats.found is None


def test_a_pyramid_too_large_for_the_adapter_is_named(
    room: Any, draw: Any, device: Any, monkeypatch: Any
) -> None:
    monkeypatch.setitem(device.limits, "max-texture-dimension-2d", 128)
    with pytest.raises(UserError, match="size 60x90: the depth pyramid of 64x144 texels is beyond"):
        draw(room, 60, 90, **FALLBACK)


def test_a_report_says_how_many_were_cut_off() -> None:
    row = {"screen_pixels": 5, "probe_pixels": 4, "environment_pixels": 1}
    assert found_sentence(row) == found_sentence({**row, "cut_pixels": 0})
    said = found_sentence({**row, "cut_pixels": 1234})
    assert said.startswith(found_sentence(row)) and "1,234 were cut off" in said


def test_a_frame_without_rays_has_none(room: Any, draw: Any) -> None:
    drawn = draw(room, 32, 24, **FALLBACK)
    assert drawn.stats.valid and drawn.stats.rays == {}
    names = [item.name for item in drawn.frame.passes]
    assert not [n for n in names if n.startswith(("traverse", "rays", "shade", "arguments"))]
    assert {n.partition("/")[0] for n in names} == {
        *("gbuffer", "shadow_map", "probe", "screen", "composite"),
    }
    assert set(drawn.stats.passes) == set(names)
    held = set(drawn.frame.data.resources)
    assert not [n for n in held if n.endswith("_queue")]
    plain = draw(room, 32, 24)
    names = [item.name for item in plain.frame.passes]
    assert not [n for n in names if n.startswith(("shadow_map", "probe", "screen"))]
    more = set(plain.frame.data.resources)
    assert not [n for n in more if n.startswith(("shadow_map", "probe", "screen"))]


def test_lights_are_shown_by_themselves(room: Any, draw: Any, device: Any) -> None:
    from passes.display import DisplayPass

    drawn = draw(room, 64, 48, **FALLBACK)
    display = DisplayPass(device, 64, 48)
    assert {"reflection", "shadow"} <= {o.name for o in drawn.frame.outputs()}
    for name in ("reflection", "shadow"):
        display.show(drawn.frame, name)
        assert display.read_picture().max() > 100


def test_the_picture_is_near_that_of_rays(room: Any, draw: Any) -> None:
    by_rays, fallback = (draw(room, *SIZE, samples=8, **o) for o in ({}, FALLBACK))
    error = np.abs(fallback.radiance - by_rays.radiance).mean() / by_rays.radiance.mean()
    assert error < 0.04, error


@pytest.mark.parametrize(
    "name,value,text",
    [
        ("reflections", "probe", "unknown reflections 'probe', there are rays, screen"),
        ("shadows", "soft", "unknown shadows 'soft', there are rays, map"),
        ("shadow_map_size", 100, "unknown shadow map size '100', there are 0, 128, 256"),
        ("probe_size", 5, "unknown probe size '5', there are 0, 32"),
        ("probe_position", "here", "unknown probe position 'here', there are camera, scene"),
        ("screen_steps", 0, "screen steps are 1 to 4096, not 0"),
    ],
)
def test_what_there_is_not_is_refused(name: str, value: Any, text: str) -> None:
    with pytest.raises(UserError, match=text):
        FrameOptions(8, 8, **{name: value})
