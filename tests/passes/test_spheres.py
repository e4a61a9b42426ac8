"""Spheres in the frame: both G-buffers, shading, secondary rays, holes, scene files."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.rays import MISS_ID
from bvh.validate import validate
from engine.gpu.errors import UserError
from engine.scene.load import load_scene
from engine.scene.material import Texture
from engine.scene.mesh import make_spheres
from engine.scene.scene import Instance, scene_bounds
from passes.frame_options import FrameOptions
from passes.gbuffer import DrawList
from passes.gpu_scene import GpuScene
from passes.prepare import prepare
from passes.rays import RAY_TYPES
from passes.traverse_passes import traversal

LEFT_HALF = np.full((1, 2, 4), 255, np.uint8)
LEFT_HALF[0, 0, 3] = 0  # longitudes before +X, through -Z, are clear


def balls_and_floor(kit: Any, **changes: Any) -> Any:
    """Two spheres in one mesh, an ellipsoid of another placed askew, a floor and a wall."""
    pair = make_spheres(
        "pair", np.array([[-1.0, 0.6, 0], [0.2, 0.3, 1.0]]), np.array([0.6, 0.3]), 1
    )
    egg = make_spheres("egg", np.zeros((1, 3)), np.ones(1), 2)
    floor = kit.quad((-4, 0, 4), (8, 0, 0), (0, 0, -8), 0)
    return kit.scene(
        [pair, egg, floor],
        [kit.grey(0.6), kit.grey(0.8, roughness=0.05, metallic=0.9), kit.grey(0.3, roughness=0.2)],
        instances=[
            Instance("pair", 0, np.eye(4)),
            Instance("egg", 1, kit.place((1.3, 0.8, -0.2), (0.4, 0.9, 0.6), 0.7)),
            Instance("floor", 2, np.eye(4)),
        ],
        eye=(0.3, 1.6, 4.5),
        target=(0.1, 0.5, 0),
        light=kit.lamp((1.5, 3.0, 2.0), 0.3),
        sky=(0.2, 0.3, 0.4),
        **changes,
    )


def test_both_gbuffers_the_twins_and_geometry_agree(kit: Any, draw: Any) -> None:
    scene = balls_and_floor(kit)
    rays = draw(scene, 40, 32, gbuffer="rays", occlusion=True)
    raster = draw(rays.prepared, 40, 32, gbuffer="raster")
    assert rays.stats.valid and raster.stats.valid and validate(rays.prepared.bvh) == []
    names = [instance.name for instance in rays.prepared.scene.instances]
    seen = rays.aov("object")
    assert {names[i] for i in np.unique(seen) if i >= 0} == {"pair", "egg", "floor"}
    pair = seen == names.index("pair")
    assert set(np.unique(rays.aov("primitive")[pair])) == {0, 1}
    # What a pixel on an edge shows is for each to say.
    same = (seen == raster.aov("object")) & (rays.aov("primitive") == raster.aov("primitive"))
    assert same.mean() > 0.995
    assert np.allclose(rays.aov("depth")[same], raster.aov("depth")[same], rtol=1e-6)
    # The twin runs the whole frame on the CPU.
    cpu = rays.frame.run_cpu()
    visibility = rays.frame.data.read_texture("visibility")
    alike = (cpu["visibility"][..., :2] == visibility[..., :2]).all(axis=-1)
    assert alike.mean() > 0.995
    found, wanted = (
        v[..., 2:].copy().view(np.float32)[alike] for v in (visibility, cpu["visibility"])
    )
    assert np.abs(found - wanted)[seen[alike] >= 0].max() < 1e-4
    picture = np.abs(cpu["accumulated"].reshape(32, 40, 4)[..., :3] - rays.radiance)
    assert np.median(picture) < 1e-5 and (picture < 2e-2).mean() > 0.98


def test_normals_and_positions_are_those_of_the_ellipsoid(kit: Any, draw: Any) -> None:
    drawn = draw(balls_and_floor(kit), 48, 48, gbuffer="raster")
    scene = drawn.prepared.scene
    index = [instance.name for instance in scene.instances].index("egg")
    here = drawn.aov("object") == index
    depth, normal = drawn.aov("depth")[here].astype(float), drawn.aov("normal")[here]
    rows, columns = np.nonzero(here)
    camera = scene.camera.transform
    half = np.tan(scene.camera.y_fov / 2)
    x, y = (2 * (columns + 0.5) / 48 - 1) * half, (1 - 2 * (rows + 0.5) / 48) * half
    local = np.stack([x * depth, y * depth, -depth], 1)
    world = local @ camera[:3, :3].T + camera[:3, 3]
    inverse = np.linalg.inv(scene.instances[index].transform)
    on_unit = world @ inverse[:3, :3].T + inverse[:3, 3]
    assert here.sum() > 60
    assert np.abs(np.linalg.norm(on_unit, axis=1) - 1).max() < 1e-4
    expected = on_unit @ inverse[:3, :3]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(expected - normal).max() < 1e-3


@pytest.mark.parametrize("distance", [1e-2, 1.0, 1e4])
def test_a_sphere_never_shadows_or_reflects_itself(kit: Any, draw: Any, distance: float) -> None:
    center = distance * np.array([0.6, -0.48, 0.64])
    transform = kit.place(center, (0.5, 1.0, 0.8), 0.4)
    scene = kit.scene(
        [make_spheres("ball", np.zeros((1, 3)), np.ones(1))],
        [kit.grey(roughness=0.0, metallic=0.5)],
        instances=[Instance("ball", 0, transform)],
        eye=center + [0, 0, 4],
        target=center,
        light=kit.lamp(center + [1.5, 2.0, 2.0], 0.5, [-1.5, -2, -2]),
    )
    drawn = draw(scene, 40, 40)
    assert drawn.stats.valid
    rays, lit = drawn.shadows
    assert (rays["slot"] % 2 == 0).sum() > 80 and lit.all()
    _, hits = drawn.reflections
    assert len(hits) > 80 and (hits["object"] == MISS_ID).all()


def hollow(kit: Any) -> Any:
    """A sphere whose half is clear: its inside shows, and light falls through onto the floor."""
    texture = Texture("half", LEFT_HALF, True, "clamp", "clamp")
    skin = kit.grey(0.7, alpha_mode="MASK", base_color_texture=0)
    scene = kit.scene(
        [
            make_spheres("shell", np.array([[0.0, 1.0, 0.0]]), np.ones(1), 1),
            kit.quad((-4, -0.2, 4), (8, 0, 0), (0, 0, -8), 0),
        ],
        [kit.grey(0.6), skin],
        textures=[texture],
        eye=(3.5, 2.0, -2.0),
        target=(0, 0.6, 0),
        light=kit.lamp((0.0, 4.0, -2.5), 0.2),
    )
    return scene


def test_a_hole_shows_the_inside_and_lets_light_through(kit: Any, draw: Any) -> None:
    prepared = prepare(hollow(kit))
    assert prepared.asks
    rays = draw(prepared, 40, 40, gbuffer="rays")
    raster = draw(prepared, 40, 40, gbuffer="raster")
    queued = draw(prepared, 40, 40, gbuffer="rays", any_hit_mode="queue")
    solid = draw(prepared, 40, 40, gbuffer="rays", any_hit="opaque")
    assert all(d.stats.valid for d in (rays, raster, queued, solid))
    assert rays.frame.result_hash() == queued.frame.result_hash()
    seen = rays.aov("object")
    shell = [i.name for i in prepared.scene.instances].index("shell0")
    same = (seen == raster.aov("object")) & np.isclose(
        rays.aov("depth"), raster.aov("depth"), rtol=1e-5
    )
    assert same.mean() > 0.995
    both = (seen == shell) & (solid.aov("object") == shell)
    inside = both & (rays.aov("depth") > solid.aov("depth") + 0.1)
    through = (solid.aov("object") == shell) & (seen != shell)
    assert inside.sum() > 60 and (both & ~inside).sum() > 20
    # The floor: light that the opaque sphere kept off it.
    floor = (seen == 1 - shell) & (solid.aov("object") == 1 - shell)
    brighter = rays.radiance.sum(-1) > solid.radiance.sum(-1) + 1e-3
    darker = rays.radiance.sum(-1) < solid.radiance.sum(-1) - 1e-3
    assert through.sum() >= 0 and (brighter & floor).sum() > 10 and not (darker & floor).any()
    twin = rays.frame.run_cpu("gbuffer/resolve")
    alike = twin["visibility"][..., 0] == np.where(seen < 0, 0xFFFFFFFF, seen)
    assert alike.mean() > 0.995


def test_motion_of_spheres_under_a_moving_camera(kit: Any, draw: Any) -> None:
    """Spheres move on the picture as the same surface in triangles does."""
    from engine.scene.camera import look_at

    def motion(mesh: Any) -> Any:
        scene = kit.scene([mesh], eye=(0, 0, 4))
        drawn = draw(scene, 24, 24, gbuffer="rays", motion=True)
        moved = replace(
            look_at(np.array([0.2, 0.1, 4.1]), np.zeros(3), np.radians(40.0)), near=1e-6
        )
        drawn.frame.run(1, 1, replace(drawn.frame.inputs, camera=moved))
        return drawn.aov("motion"), drawn.aov("object") >= 0

    ball, there = motion(make_spheres("ball", np.zeros((1, 3)), np.ones(1)))
    net, covered = motion(kit.sphere(rings=40))
    both = there & covered
    assert both.sum() > 150 and np.abs(ball[both]).max() > 0.1
    assert np.abs(ball - net)[both].max() < 0.05


def test_prepared_spheres_keep_a_blas_of_their_own(kit: Any) -> None:
    bad = make_spheres("bad", np.zeros((4, 3)), np.array([1.0, 0.0, -1.0, np.nan]))
    scene = kit.scene([bad, kit.quad((0, 0, 0), (1, 0, 0), (0, 1, 0))])
    for group in ("static", "object", "all"):
        prepared = prepare(scene, group=group)
        spheres = [s.spheres for s in prepared.bvh.blas_stats]
        assert sorted(spheres) == [0, 1]
        stats = prepared.bvh.blas_stats[spheres.index(1)]
        assert (stats.dropped_degenerate, stats.dropped_nonfinite) == (2, 1)
        assert validate(prepared.bvh) == []
    far = make_spheres("far", np.array([[1000.0, 0, 0]]), np.array([0.5]))
    moved = prepare(kit.scene([far]))
    assert not moved.scene.meshes[0].positions.any() and moved.scene.meshes[0].radii[0] == 0.5
    tiny = make_spheres("tiny", np.zeros((1, 3)), np.array([2.0**-50]))
    place = np.diag([2.0**50, 2.0**50, 2.0**50, 1.0])
    scaled = prepare(kit.scene([tiny], instances=[Instance("tiny", 0, place)]))
    assert scaled.scene.meshes[0].radii[0] == 0.5
    assert scene_bounds([bad], [Instance("x", 0, np.diag([1.0, 2.0, 3.0, 1.0]))])[1, 0] >= 1.0


def test_a_scene_file_places_spheres(tmp_path: Any) -> None:
    path = tmp_path / "balls.toml"
    path.write_text(
        '[[spheres]]\nname = "a"\nradius = 0.5\ncenter = [0, 1, 0]\ncolor = [1, 0.5, 0.25]\n'
        'lifetime = "rigid"\nscale = [1, 2, 1]\ninstances = [{}, {translation = [3, 0, 0]}]\n'
        '[[spheres]]\nname = "b"\nradius = 2\nmask = 3\nmetallic = 1\nroughness = 0\n'
    )
    scene = load_scene(path)
    assert [i.name for i in scene.instances] == ["a", "a#2", "b"]
    assert [i.lifetime for i in scene.instances] == ["rigid", "rigid", "static"]
    assert scene.instances[2].mask == 3 and scene.meshes[0].radii is not None
    assert scene.materials[0].base_color == (1, 0.5, 0.25, 1.0)
    assert scene.materials[1].metallic == 1
    assert scene.bounds().tolist() == [[-2, -2, -2], [3.5, 3, 2]]
    assert len(prepare(scene).bvh.blas_names) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("radius = 1", "spheres[0].name is missing"),
        ('name = "a"\nradius = 0', "radius is 0, not a"),
        ('name = "a"\nradius = -1', "radius is -1, not a"),
        ('name = "a"\nradius = nan', "radius is nan, not a"),
        ('name = "a"', "radius is missing"),
        ('name = "a"\nradius = 1\nlifetime = "deforming"', "lifetime is 'deforming', not one of"),
        ('name = "a"\nradius = 1\nfile = "x"', "file is 'x', which [files] lacks"),
        ('name = "a"\nradius = 1\nmaterial = "x"', "material and file go together"),
        ('name = "a"\nradius = 1\ncolour = [1, 1, 1]', "colour is no key here"),
    ],
)
def test_mistakes_of_a_scene_file(tmp_path: Any, text: str, message: str) -> None:
    path = tmp_path / "balls.toml"
    path.write_text(f"[[spheres]]\n{text}\n")
    with pytest.raises(UserError) as raised:
        load_scene(path)
    assert message in str(raised.value)


def test_a_scene_without_spheres_has_kernels_without_them(device: Any, room: Any) -> None:
    scene = GpuScene(device, room)
    assert not scene.has_spheres
    for ray in RAY_TYPES:
        assert not traversal(scene, FrameOptions(8, 8), ray)[1]["HAS_SPHERES"]
    assert {entry for entry, _ in DrawList(scene, 0xFF).draws} == {"opaque_main", "alpha_main"}
