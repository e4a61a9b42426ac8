"""Ray counts are what the G-buffer implies: recomputed here in NumPy from AOVs, meshes and the
published hash, in float64 and with none of the frame's code."""

from typing import Any

import numpy as np
import pytest

from bvh.rays import MISS_ID

# A decision that depends on a cosine this near zero may fall either way in float32.
MARGIN = 1e-3


def pcg(value: Any) -> Any:
    """PCG output permutation (Jarzynski, Olano 2020) over uint32 arrays."""
    with np.errstate(over="ignore"):
        state = value * np.uint32(747796405) + np.uint32(2891336453)
        shift = (state >> np.uint32(28)) + np.uint32(4)
        word = ((state >> shift) ^ state) * np.uint32(277803737)
        return (word >> np.uint32(22)) ^ word


def random(pixel: Any, frame_index: int, seed: int, dimension: int) -> Any:
    with np.errstate(over="ignore"):
        key = pcg(np.array([seed * 16 + dimension], np.uint32))
        key = pcg(np.uint32(frame_index) + key)
        key = pcg(pixel.astype(np.uint32) + key)
    return (key >> np.uint32(8)) / 2.0**24


def light_point(light: Any, pixel: Any, frame_index: int, seed: int, dimension: int) -> Any:
    s = [
        2 * np.rint(random(pixel, frame_index, seed, dimension + k) * 65535) / 65535 - 1
        for k in (0, 1)
    ]
    return light.center + s[0][:, None] * light.half_u + s[1][:, None] * light.half_v


def unit(v: Any) -> Any:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def surface(scene: Any, objects: Any, primitives: Any, u: Any, v: Any, view: Any) -> Any:
    """(position, geometric normal, shading normal), float64, both turned to `view`."""
    n = len(objects)
    position, geometric, shading = np.zeros((3, n, 3))
    for number in np.unique(objects):
        rows = np.flatnonzero(objects == number)
        instance = scene.instances[number]
        mesh = scene.meshes[instance.mesh]
        corner = mesh.triangles[primitives[rows]]
        weights = np.stack([1 - u[rows] - v[rows], u[rows], v[rows]], 1)[:, :, None]
        linear = instance.transform[:3, :3]
        points = mesh.positions[corner].astype(np.float64) @ linear.T + instance.transform[:3, 3]
        position[rows] = (weights * points).sum(1)
        cross = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
        geometric[rows] = unit(cross)
        stored = (weights * mesh.normals[corner]).sum(1) @ np.linalg.inv(linear)
        has = np.linalg.norm(stored, axis=1, keepdims=True) > 0
        shading[rows] = np.where(has, unit(np.where(has, stored, 1.0)), geometric[rows])
    geometric *= np.where((geometric * view).sum(1) < 0, -1.0, 1.0)[:, None]
    shading *= np.where((shading * geometric).sum(1) < 0, -1.0, 1.0)[:, None]
    facing = (shading * view).sum(1, keepdims=True)
    shading = np.where(facing < 1e-3, unit(shading + (1e-3 - facing) * view), shading)
    return position, geometric, shading


def lobe_loses(drawn: Any, pixels: Any, frame_index: int, seed: int) -> tuple[Any, Any]:
    """(whether the pixel's GGX lobe sends its sample below the shading normal's horizon, whether
    rounding cannot change that): Heitz 2018, listing 1."""
    width, height = drawn.frame.data.width, drawn.frame.data.height
    camera = drawn.prepared.scene.camera
    tangent = np.tan(camera.y_fov / 2)
    x = ((pixels % width + 0.5) / width * 2 - 1) * tangent * width / height
    y = (1 - (pixels // width + 0.5) / height * 2) * tangent
    view = unit(-np.stack([x, y, -np.ones(len(pixels))], 1) @ camera.transform[:3, :3].T)
    n = drawn.aov("normal").reshape(-1, 3)[pixels].astype(np.float64)
    rough = drawn.aov("roughness").ravel()[pixels].astype(np.float64)
    sign = np.where(n[:, 2] >= 0, 1.0, -1.0)  # Duff et al. 2017
    a = -1 / (sign + n[:, 2])
    b = n[:, 0] * n[:, 1] * a
    tangents = [
        np.stack([1 + sign * n[:, 0] ** 2 * a, sign * b, -sign * n[:, 0]], 1),
        np.stack([b, sign + n[:, 1] ** 2 * a, -n[:, 1]], 1),
        n,
    ]
    local = np.stack([(view * axis).sum(1) for axis in tangents], 1)
    alpha = rough[:, None] ** 2
    v = unit(local * np.concatenate([alpha, alpha, np.ones_like(alpha)], 1))
    t1 = unit(np.stack([-v[:, 1], v[:, 0] + 1e-30, np.zeros(len(v))], 1))  # a mirror: any
    t2 = np.cross(v, t1)
    r1, r2 = (random(pixels, frame_index, seed, k) for k in (0, 1))
    p1 = np.sqrt(r1) * np.cos(2 * np.pi * r2)
    s = 0.5 * (1 + v[:, 2])
    p2 = (1 - s) * np.sqrt(1 - p1**2) + s * np.sqrt(r1) * np.sin(2 * np.pi * r2)
    m = p1[:, None] * t1 + p2[:, None] * t2 + np.sqrt(np.maximum(0, 1 - p1**2 - p2**2))[:, None] * v
    half = unit(m * np.concatenate([alpha, alpha, np.ones_like(alpha)], 1))
    up = 2 * (local * half).sum(1) * half[:, 2] - local[:, 2]
    return (up <= 0) & (rough >= 0.02), (np.abs(up) > MARGIN) | (rough < 0.02)


def wants_light(light: Any, point: Any, at: Any, geometric: Any, shading: Any) -> tuple[Any, Any]:
    """(whether a shadow ray is due, whether rounding cannot change that)."""
    direction = unit(at - point)
    cosines = np.stack(
        [-direction @ light.normal, (geometric * direction).sum(1), (shading * direction).sum(1)]
    )
    return (cosines > 0).all(0), (np.abs(cosines) > MARGIN).all(0)


@pytest.mark.parametrize(
    "gbuffer,cutoff,seed,frame_index",
    [
        ("raster", 0.6, 0, 0),
        ("raster", 0.0, 77, 3),
        ("raster", 1.0, 77, 3),
        ("rays", 0.3, 1, 0),
        ("rays", 0.75, 0, 2),
    ],
)
def test_rays_are_what_the_gbuffer_implies(
    draw: Any, room: Any, gbuffer: str, cutoff: float, seed: int, frame_index: int
) -> None:
    width, height = 75, 51
    drawn = draw(
        room,
        width,
        height,
        gbuffer=gbuffer,
        roughness_cutoff=cutoff,
        seed=seed,
        frame_index=frame_index,
    )
    scene, light = room.scene, room.scene.light
    objects = drawn.aov("object").ravel()
    covered = objects >= 0

    reflections, hits = drawn.reflections
    smooth = np.flatnonzero(covered & (drawn.aov("roughness").ravel() <= np.float32(cutoff)))
    lost, sure = lobe_loses(drawn, smooth, frame_index, seed)
    sends = np.isin(smooth, reflections["pixel"])
    assert drawn.stats.rays["reflection"].rays == len(reflections) == sends.sum() > 0
    np.testing.assert_array_equal(sends[sure], ~lost[sure])
    assert sure.mean() > 0.95

    # Primary shadow rays: position from the depth, normals from the triangle.
    pixels = np.flatnonzero(covered)
    camera = scene.camera
    tangent = np.tan(camera.y_fov / 2)
    x = ((pixels % width + 0.5) / width * 2 - 1) * tangent * width / height
    y = (1 - (pixels // width + 0.5) / height * 2) * tangent
    rays = np.stack([x, y, -np.ones(len(pixels))], 1) @ camera.transform[:3, :3].T
    position = camera.position + drawn.aov("depth").ravel()[pixels, None] * rays
    seen = drawn.frame.data.read_texture("visibility").reshape(-1, 4)[pixels]
    u, v = seen[:, 2:].copy().view(np.float32).astype(np.float64).T
    at_triangle, geometric, shading = surface(
        scene, objects[pixels], drawn.aov("primitive").ravel()[pixels], u, v, unit(-rays)
    )
    assert np.percentile(np.abs(at_triangle - position).max(1), 99) < 1e-3
    at = light_point(light, pixels, frame_index, seed, 2)
    wanted, certain = wants_light(light, position, at, geometric, shading)
    # Neither a mirror nor a metal without a lobe reflects a sampled direction.
    metal = drawn.aov("metalness").ravel()[pixels] == 1
    wanted &= ~(metal & (drawn.aov("roughness").ravel()[pixels] < 0.02))

    shadows, _ = drawn.shadows
    assert drawn.stats.rays["shadow"].rays == len(shadows)
    sent = np.zeros(2 * width * height, bool)
    sent[shadows["slot"]] = True
    assert wanted.sum() > 500 and certain.mean() > 0.98
    np.testing.assert_array_equal(sent[::2][pixels][certain], wanted[certain])
    assert not sent[::2][~covered].any()

    # Shadow rays from what the reflections hit.
    found = np.flatnonzero(hits["object"] != MISS_ID)
    hit, ray = hits[found], reflections[found]
    point, geometric, shading = surface(
        scene,
        hit["object"].astype(int),
        hit["primitive"],
        hit["u"].astype(float),
        hit["v"].astype(float),
        -ray["direction"].astype(float),
    )
    at = light_point(light, ray["pixel"], frame_index, seed, 4)
    wanted, certain = wants_light(light, point, at, geometric, shading)
    materials = [scene.materials[scene.meshes[i.mesh].material] for i in scene.instances]
    dark = np.array([m.metallic == 1 and m.roughness < 0.02 for m in materials])
    wanted &= ~dark[hit["object"]]
    second = np.zeros(width * height, bool)
    second[ray["pixel"][wanted & certain]] = True
    unsure = np.zeros(width * height, bool)
    unsure[ray["pixel"][~certain]] = True
    assert wanted.sum() > 30 and certain.mean() > 0.9
    np.testing.assert_array_equal(sent[1::2][~unsure], second[~unsure])


def test_a_roughness_on_the_cutoff_sends_a_ray(kit: Any, draw: Any) -> None:
    """0.6 is 153/255, so eight bits hold it exactly; "at most the cutoff" includes it."""
    wall = kit.quad((-9, -9, 0), (18, 0, 0), (0, 18, 0))
    # A rough lobe loses some of its samples below the wall.
    for roughness, fewest, most in ((0.6, 45, 64), (0.604, 0, 0), (0.0, 64, 64), (1.0, 0, 0)):
        drawn = draw(kit.scene([wall], [kit.grey(roughness=roughness)]), 8, 8, roughness_cutoff=0.6)
        assert fewest <= drawn.stats.rays["reflection"].rays <= most, roughness


@pytest.mark.parametrize("metallic", [0.0, 1.0])
def test_the_lamp_emits_to_one_side(kit: Any, draw: Any, metallic: float) -> None:
    floor = kit.quad((-9, 0, 9), (18, 0, 0), (0, 0, -18))
    for facing, rays in ((-1, 64), (1, 0)):
        lamp = kit.lamp((0, 3, 0), 0.3, (0, facing, 0), (5, 5, 5))
        kind = kit.grey(metallic=metallic, roughness=0.9)
        scene = kit.scene([floor], [kind], eye=(0, 2, 3), y_fov=0.5, light=lamp)
        drawn = draw(scene, 8, 8)
        assert drawn.stats.rays["shadow"].rays == rays
        assert ((drawn.radiance > 0) == (rays > 0)).all() and (drawn.radiance >= 0).all()
