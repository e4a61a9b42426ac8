"""The hit table: what it counts, what either grouping takes, and that both shade alike."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import LimitError, UserError
from engine.scene.material import Material, Texture
from engine.scene.mesh import make_spheres
from engine.scene.scene import Instance
from passes.frame_options import FrameOptions
from passes.hit_records import RECORDS_A_ROW, pack_hit_records, upload_hit_records
from passes.hit_table import hit_classes, material_class, mean_distinct
from passes.prepare import PreparedScene, prepare
from passes.rays import RAY_TYPES, REFLECTION, SHADOW

SIZE = (48, 32)


def classes_scene(kit: Any) -> Any:
    """A mirror floor, leaves in three places, a ball that is rigid, one that deforms, a wall."""
    pixels = np.full((4, 4, 4), 255, np.uint8)
    pixels[::2, ::2, 3] = 0
    materials = [
        kit.mirror(),
        kit.grey(0.3),
        kit.grey(0.9, roughness=0.4),
        Material("leaf", roughness=1.0, alpha_mode="MASK", base_color_texture=0),
        Material("veil", roughness=1.0, alpha_mode="BLEND", base_color=(1, 0, 0, 0.7)),
    ]
    meshes = [
        kit.quad((-6, -1.5, 6), (12, 0, 0), (0, 0, -12), 0),
        kit.quad((-0.6, -1, 0), (1.2, 0, 0), (0, 2, 0.5), 3),
        kit.quad((-6, -1.6, -3), (12, 0, 0), (0, 9, 0), 1),
        kit.sphere((0, 0, 0), 0.6, 2, rings=6),
        kit.quad((-4, -1, 1), (1, 0, 0), (0, 2, 0), 4),
    ]
    instances = [
        Instance("floor", 0, np.eye(4)),
        Instance("wall", 2, np.eye(4)),
        *(
            Instance(f"leaf{i}", 1, kit.place((2 * i - 2, 0, 0)), lifetime="vegetation")
            for i in range(3)
        ),
        Instance("rigid", 3, kit.place((-1, 0.2, 1)), lifetime="rigid"),
        Instance("deforming", 3, kit.place((1, 0.2, 1)), lifetime="deforming"),
        Instance("veil", 4, np.eye(4)),
    ]
    return kit.scene(
        meshes,
        materials,
        textures=[Texture("holes", pixels, True, "repeat", "repeat")],
        instances=instances,
        eye=(0, 1.2, 6),
        target=(0, -0.4, 0),
        light=kit.lamp((0, 4, 4), 0.3, (0, -1, -1), (20, 20, 20)),
        sky=(0.2, 0.3, 0.4),
    )


@pytest.fixture(scope="module")
def prepared(kit: Any) -> PreparedScene:
    return prepare(classes_scene(kit), group="object")


def test_materials_are_classed_by_what_branches(kit: Any) -> None:
    assert material_class(kit.mirror()) == "mirror"
    assert material_class(kit.grey(roughness=0.02)) == "glossy"
    assert material_class(kit.grey(roughness=0.6)) == "glossy"
    assert material_class(kit.grey(roughness=0.61)) == "rough"
    for mode in ("MASK", "BLEND"):  # a hole costs a test, however smooth
        assert material_class(kit.mirror(alpha_mode=mode)) == mode.lower()


def test_records_and_bytes_by_hand(prepared: PreparedScene) -> None:
    found = {
        (c.ray_type, c.geometry, c.material): (
            *(c.objects, c.coarse_records, c.coarse_bytes, c.fine_records, c.fine_bytes),
        )
        for c in hit_classes(prepared, (REFLECTION, SHADOW))
    }
    assert {key: found[key] for key in found if key[0] == "reflection"} == {
        ("reflection", "static", "mirror"): (1, 1, 4 + 64, 1, 64),
        ("reflection", "static", "rough"): (1, 1, 4 + 64, 1, 64),
        ("reflection", "static", "blend"): (1, 1, 4 + 64, 1, 64),
        ("reflection", "rigid", "glossy"): (1, 1, 4 + 64, 1, 64),
        ("reflection", "deforming", "glossy"): (1, 1, 4 + 64, 1, 64),
        ("reflection", "vegetation", "mask"): (3, 1, 3 * 4 + 64, 3, 3 * 64),
    }
    # Any-hit rays read nothing but alpha records: a word an object, 64 bytes a triangle of a mesh.
    leaves = 3 * 4 + 2 * 64
    assert found["shadow", "vegetation", "mask"] == (3, 3, leaves, 3, leaves)
    assert found["shadow", "static", "blend"] == (1, 1, 4 + 128, 1, 4 + 128)
    assert found["shadow", "static", "mirror"] == (1, 0, 0, 0, 0)


def test_spheres_are_a_class_of_their_own(kit: Any) -> None:
    spheres = make_spheres("balls", np.zeros((2, 3)), np.ones(2))
    scene = kit.scene([spheres, kit.quad((-9, -1, 9), (18, 0, 0), (0, 0, -18))])
    found = {c.geometry: c.objects for c in hit_classes(prepare(scene), (REFLECTION,))}
    assert found == {"procedural": 1, "static": 1}


def test_hits_are_those_of_the_objects(draw: Any, prepared: PreparedScene) -> None:
    drawn = draw(prepared, *SIZE, count=True)
    table = drawn.frame.hit_table()
    assert table.grouping == "coarse"
    mine = {(c.geometry, c.material): c.hits for c in table.classes if c.ray_type == "reflection"}
    assert sum(mine.values()) == drawn.stats.rays["reflection"].hits > 0
    _, hits = drawn.reflections
    names = [item.name for item in prepared.scene.instances]
    leaves = [i for i, name in enumerate(names) if name.startswith("leaf")]
    assert mine["vegetation", "mask"] == np.isin(hits["object"], leaves).sum() > 0
    assert mine["deforming", "glossy"] == (hits["object"] == names.index("deforming")).sum() > 0
    assert all(c.hits is None for c in table.classes if c.ray_type == "shadow")
    assert {item.ray_type for item in table.touched} == {"reflection"}
    for item in table.touched:
        assert 1 <= item.classes <= item.objects and 1 <= item.materials <= item.objects
    narrow, wide = table.touched
    assert (narrow.lanes, wide.lanes) == (32, 64) and narrow.objects < wide.objects


def test_distinct_keys_of_neighbours(rng: np.random.Generator) -> None:
    keys = np.array([3, 3, 5, -1] + [-1] * 4 + [7, 7, 7, 7] + [1, 2])
    assert mean_distinct(keys, 4) == pytest.approx((2 + 1 + 2) / 3)  # nothing hit: left out
    assert np.isnan(mean_distinct(np.full(9, -1), 4)) and np.isnan(mean_distinct(keys[:0], 4))
    many = rng.integers(-1, 9, 1003)
    runs = [set(many[i : i + 64].tolist()) - {-1} for i in range(0, len(many), 64)]
    assert mean_distinct(many, 64) == pytest.approx(np.mean([len(r) for r in runs if r]))


def test_both_groupings_shade_alike(draw: Any, room: Any, prepared: PreparedScene) -> None:
    for scene in (room, prepared):
        coarse, fine = (
            draw(scene, *SIZE, count=True, hit_table=grouping) for grouping in ("coarse", "fine")
        )
        assert coarse.frame.result_hash() == fine.frame.result_hash()
        np.testing.assert_array_equal(coarse.radiance, fine.radiance)
        assert coarse.stats.rays == fine.stats.rays
        assert fine.frame.hit_table().grouping == "fine"
        # Something was shaded by the records.
        assert fine.stats.rays["reflection"].hits > 100


def test_twins_of_both_groupings_agree(draw: Any, prepared: PreparedScene) -> None:
    shaded = [
        draw(prepared, *SIZE, gbuffer="rays", hit_table=grouping).frame.run_cpu("shade")
        for grouping in ("coarse", "fine")
    ]
    np.testing.assert_array_equal(shaded[0]["reflected"], shaded[1]["reflected"])
    assert shaded[0]["reflected"].any()


def test_records_beyond_a_row_are_found(draw: Any, kit: Any) -> None:
    """More objects than a row of the texture holds, of several materials."""
    materials = [kit.mirror(), *(kit.grey(v) for v in (0.1, 0.4, 0.9))]
    floor = kit.quad((-40, -1.0, 9), (80, 0, 0), (0, 0, -80))
    meshes = [floor, *(kit.quad((-0.4, -0.9, 0), (0.8, 0, 0), (0, 1.6, 0), m) for m in (1, 2, 3))]
    places = [kit.place((i % 34 - 17, 0, -(i // 34))) for i in range(RECORDS_A_ROW + 30)]
    instances = [Instance(f"card{i}", 1 + i % 3, place) for i, place in enumerate(places)]
    # Far and near: the last are in front.
    instances = [Instance("floor", 0, np.eye(4)), *reversed(instances)]
    scene = kit.scene(
        meshes, materials, instances=instances, eye=(0, 1, 5), sky=(0.6, 0.5, 0.4),
        light=kit.lamp((0, 6, 6), 0.5, (0, -1, -1), (30, 30, 30)),
    )  # fmt: skip
    both = [
        draw(scene, *SIZE, group="object", hit_table=grouping) for grouping in ("coarse", "fine")
    ]
    _, hits = both[1].reflections
    found = hits["object"][hits["object"] != 0xFFFFFFFF]
    assert (found >= RECORDS_A_ROW).sum() > 20
    np.testing.assert_array_equal(both[0].radiance, both[1].radiance)


def test_records_are_the_materials_of_objects(prepared: PreparedScene) -> None:
    texels = pack_hit_records(prepared)
    records = texels.reshape(-1, 16)[: len(prepared.pack.objects)]
    numbers = prepared.pack.objects["material"]
    expected = prepared.pack.materials.view(np.uint32).reshape(-1, 16)
    np.testing.assert_array_equal(records, expected[numbers])


def test_what_cannot_be_is_refused(device: Any, prepared: PreparedScene, monkeypatch: Any) -> None:
    with pytest.raises(UserError, match="unknown hit table 'flat', there are coarse, fine"):
        FrameOptions(8, 8, hit_table="flat")
    pack = prepared.pack
    many = replace(prepared, pack=replace(pack, objects=np.repeat(pack.objects[:1], 3000)))
    monkeypatch.setattr(device, "limits", {**device.limits, "max-texture-dimension-2d": 2})
    with pytest.raises(LimitError, match="a fine hit table of 3,000 objects .* hold 2,048"):
        upload_hit_records(device, many)


def test_every_ray_type_has_its_rows(prepared: PreparedScene) -> None:
    assert {c.ray_type for c in hit_classes(prepared, RAY_TYPES)} == {r.name for r in RAY_TYPES}
