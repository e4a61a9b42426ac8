"""Pictures are right before they are pretty: tile by tile, the frame's mean is that of an
independent reference (model.py), as far as the noise of both lets one tell."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.scene.light import Environment
from engine.scene.material import Material, Texture
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from tests.passes.light.model import Reference

TILE = 32
SIZE = 96, 64
SAMPLES = 48
CUTOFF = 0.6
LIMIT = 4.0  # standard errors
MOST_BIAS = 0.005


def level(value: int) -> float:
    """A number that eight bits hold exactly, as the G-buffer does roughness."""
    return value / 255


def color(*levels: int) -> tuple[float, float, float, float]:
    """And a colour: the G-buffer holds square roots in eight bits."""
    red, green, blue = ((value / 255) ** 2 for value in levels)
    return red, green, blue, 1.0


def box_room(kit: Any) -> Scene:
    """A glossy floor, a rough wall, a mirror, two glossy metals, a leaf with holes, a lamp that is
    surface, bent normals; light from a rectangle and from the sky."""
    holes = np.full((8, 8, 4), 255, np.uint8)
    holes[2:6, 2:6, 3] = 0
    materials = [
        Material("floor", color(200, 180, 150), 0.0, level(64)),
        Material("wall", color(170, 200, 210), 0.0, level(230)),
        Material("mirror", color(240, 240, 240), 1.0, 0.0),
        Material("brass", color(245, 215, 140), 1.0, level(102)),
        Material("steel", color(190, 200, 220), 1.0, level(153)),
        Material("leaf", color(90, 190, 80), 0.0, level(204), alpha_mode="MASK"),
        Material("lamp", color(128, 128, 128), 0.0, level(179), emissive=(1.5, 1.1, 0.6)),
        Material("rough metal", color(230, 150, 120), 1.0, level(178)),
    ]
    materials[5] = replace(materials[5], base_color_texture=0)
    leaf = kit.quad((-1.1, 0.1, 1.2), (0.9, 0, 0.2), (0, 1.1, 0.1), 5)
    tilted = np.array([[-0.3, 0.2, 1], [0.3, 0.2, 1], [-0.3, -0.2, 1], [0.3, -0.2, 1]], float)
    tilted /= np.linalg.norm(tilted, axis=1, keepdims=True)
    meshes = [
        kit.quad((-3, 0, 3), (6, 0, 0), (0, 0, -6), 0),
        kit.quad((-3, 0, -2), (6, 0, 0), (0, 2.6, 0), 1),
        kit.quad((-2.6, 0.1, -1.0), (0.9, 0, -0.8), (0, 1.7, 0), 2),
        kit.quad((-0.9, 0.1, -1.4), (1.0, 0, 0.1), (0, 1.4, -0.3), 3),
        kit.quad((1.1, 0.1, -1.2), (1.0, 0, 0.7), (0, 1.5, -0.2), 4),
        replace(leaf, uvs=2 * leaf.uvs),
        kit.quad((0.3, 0.1, 0.4), (0.5, 0, 0), (0, 0.4, 0), 6),
        kit.quad((0.9, 0.0, 0.9), (0.8, 0, -0.3), (0, 0.6, -0.2), 7, normals=tilted),
    ]
    scene = kit.scene(
        meshes,
        materials,
        textures=[Texture("holes", holes, True)],
        eye=(0.2, 1.3, 4.6),
        target=(0.0, 0.8, 0.0),
        light=kit.lamp((2.4, 1.9, 1.0), 0.5, (-1.0, -0.55, -0.35), (14, 12, 9)),
    )
    sky = Environment((0.1, 0.15, 0.3), (0.3, 0.25, 0.2), (0.06, 0.05, 0.03))
    return replace(scene, environment=sky)


def three_lamps(kit: Any) -> Scene:
    """The same with two lamps more: one behind the mirror's edge, one small and far."""
    more = (
        kit.lamp((-2.7, 1.6, 1.5), 0.3, (1.0, -0.4, -0.6), (6, 9, 14)),
        kit.lamp((5.0, 4.0, 3.0), 0.25, (-1.0, -0.6, -0.8), (90, 60, 30)),
    )
    return replace(box_room(kit), more_lights=more)


def tile_means(picture: Any) -> Any:
    """[tiles, 3] of [height, width, 3]."""
    height, width = picture.shape[:2]
    tiles = picture.reshape(height // TILE, TILE, width // TILE, TILE, 3)
    return tiles.mean(axis=(1, 3), dtype=np.float64).reshape(-1, 3)


@pytest.fixture(scope="module")
def expected(kit: Any) -> Any:
    """[samples, tiles, 3] by the reference, with random numbers of its own."""
    rng = np.random.default_rng(20261130)
    reference = Reference(box_room(kit), *SIZE, CUTOFF)
    return np.stack([tile_means(reference.sample(rng)) for _ in range(SAMPLES)])


def draw_tiles(device: Any, scene: Scene, samples: int, **options: Any) -> Any:
    """[samples, tiles, 3] by the frame."""
    settings = FrameOptions(*SIZE, roughness_cutoff=CUTOFF, seed=7, **options)
    frame = HybridFrame(device, prepare(scene), settings)
    found = []
    for index in range(samples):
        assert frame.run(index).valid
        found.append(tile_means(frame.radiance()))
    return np.stack(found)


def check(found: Any, expected: Any) -> None:
    """Both [samples, tiles, 3]."""
    difference = found.mean(0) - expected.mean(0)
    errors = [series.std(0, ddof=1) / np.sqrt(len(series)) for series in (found, expected)]
    # Radiance is stored in halves; a tile without noise has their rounding.
    noise = np.hypot(*errors) + 1e-4 * expected.mean(0)
    worst = np.abs(difference / noise).max()
    assert worst <= LIMIT, (difference / noise).round(1)
    bias = found.mean() / expected.mean() - 1
    assert abs(bias) <= MOST_BIAS, bias


def test_tiles_are_those_of_an_independent_reference(kit: Any, device: Any, expected: Any) -> None:
    check(draw_tiles(device, box_room(kit), SAMPLES), expected)


def test_tiles_of_several_lights(kit: Any, device: Any) -> None:
    """Fewer rays than lights: each draws one."""
    rng = np.random.default_rng(20261201)
    reference = Reference(three_lamps(kit), *SIZE, CUTOFF)
    expected = np.stack([tile_means(reference.sample(rng)) for _ in range(SAMPLES // 2)])
    check(draw_tiles(device, three_lamps(kit), SAMPLES), expected)


def test_tiles_of_paths_of_three_rays(kit: Any, device: Any) -> None:
    rng = np.random.default_rng(20261202)
    reference = Reference(box_room(kit), *SIZE, CUTOFF, bounces=3)
    expected = np.stack([tile_means(reference.sample(rng)) for _ in range(SAMPLES // 2)])
    check(draw_tiles(device, box_room(kit), SAMPLES // 2, reflection_bounces=3), expected)
