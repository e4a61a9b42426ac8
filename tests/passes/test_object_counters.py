"""What each object is charged with: sums are the totals, and the charge is the right object's."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh.counters import COUNTERS, OBJECT_COUNTERS, CounterTable, counter_words, table_words
from engine.scene.material import Material, Texture
from engine.scene.scene import Instance
from passes.frame_options import FrameOptions
from passes.gpu_scene import GpuScene
from passes.hybrid import HybridFrame
from passes.prepare import prepare
from passes.rays import RAY_TYPES
from passes.read_back import TLAS_NAME

Spent = dict[str, dict[str, int]]


def spent_by(stats: Any, ray_type: str) -> Spent:
    return {name: row for (name, kind), row in stats.objects.items() if kind == ray_type}


@pytest.mark.parametrize(
    "options",
    [
        {"any_hit_mode": "inline"},
        {"any_hit_mode": "queue"},
        {"any_hit": "reject"},
        {"any_hit": "opaque"},
        {"traversal": "contract"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_objects_and_the_tlas_add_up_to_the_totals(
    draw: Any, room: Any, kit: Any, options: dict[str, str]
) -> None:
    stats = draw(room, 41, 27, count=True, seed=3, **kit.every_ray, **options).stats
    assert stats.valid
    for ray in RAY_TYPES:
        spent, total = spent_by(stats, ray.name), stats.rays[ray.name]
        for field in OBJECT_COUNTERS:
            assert sum(row[field] for row in spent.values()) == getattr(total, field), field
        tlas = spent[TLAS_NAME]
        assert tlas["nodes"] > 0 < tlas["box_tests"]
        inside = ("hits", "triangle_tests", "triangle_hits", "instance_hits", "any_hits")
        assert not any(tlas[field] for field in inside)
        asked = options.get("any_hit") != "opaque"
        assert (total.any_hits > 0) == asked
        assert total.alpha_samples <= total.any_hits >= total.rejected
        if options.get("any_hit") == "reject":
            assert total.rejected == total.any_hits and total.alpha_samples == 0
        elif asked:
            assert 0 < total.rejected < total.any_hits == total.alpha_samples


def test_both_places_of_the_alpha_test_charge_the_same_hits(draw: Any, room: Any, kit: Any) -> None:
    """Rounds visit nodes again, but what objects are hit does not depend on them."""
    inline, queued = (
        draw(room, 41, 27, count=True, any_hit_mode=mode, **kit.every_ray).stats
        for mode in ("inline", "queue")
    )
    for ray in RAY_TYPES:
        found = [{n: r["hits"] for n, r in spent_by(s, ray.name).items()} for s in (inline, queued)]
        if ray.any_hit:  # which of several occluders ends a ray depends on the rounds
            assert sum(found[0].values()) == sum(found[1].values()) > 0
        else:
            assert found[0] == found[1]


def grove(kit: Any) -> Any:
    """A mirror floor, two leaves of one mesh over it whose texels are half holes, and a ball behind
    a wall."""
    pixels = np.zeros((8, 8, 4), np.uint8)
    pixels[..., 3] = 255 * (np.indices((8, 8)).sum(0) % 2)
    materials = [
        kit.mirror(),
        kit.grey(),
        Material("leaf", roughness=1.0, alpha_mode="MASK", base_color_texture=0),
    ]
    meshes = [
        kit.quad((-6, -1.5, 6), (12, 0, 0), (0, 0, -12), 0),
        kit.quad((-1, -1, 0), (2, 0, 0), (0, 2, 0.5), 2),
        kit.quad((-6, -1.6, -3), (12, 0, 0), (0, 9, 0), 1),
        kit.sphere((0, 0, -5), 0.8, 1, rings=6),
    ]
    names = ("floor", "leaf", "wall", "ball")
    meshes = [replace(mesh, name=name) for mesh, name in zip(meshes, names, strict=True)]
    instances = [
        Instance("floor", 0, np.eye(4)),
        Instance("wall", 2, np.eye(4)),
        Instance("ball", 3, np.eye(4)),
        Instance("left", 1, kit.place((-1.2, 0, 0))),
        Instance("right", 1, kit.place((1.2, 0.1, 0.3))),
    ]
    return kit.scene(
        meshes,
        materials,
        textures=[Texture("holes", pixels, True, "repeat", "repeat")],
        instances=instances,
        eye=(0, 1.2, 6),
        target=(0, -0.4, 0),
        light=kit.lamp((0, 2.5, 5), 0.3, (0, -0.4, -1)),
    )


def test_leaves_pay_for_their_tests_and_nobody_else_does(draw: Any, kit: Any) -> None:
    stats = draw(grove(kit), 48, 32, count=True, group="object").stats
    for ray in ("reflection", "shadow"):
        spent = spent_by(stats, ray)
        assert [name for name, row in spent.items() if row["any_hits"]] == ["leaf"]
        leaf = spent["leaf"]
        assert 0 < leaf["rejected"] < leaf["any_hits"] == leaf["alpha_samples"]
        assert leaf["any_hits"] <= leaf["triangle_hits"]
        # Every hit on a leaf was a candidate that its test accepted.
        assert 0 < leaf["hits"] <= leaf["any_hits"] - leaf["rejected"]


def test_an_object_behind_another_takes_nodes_but_no_hits(draw: Any, kit: Any) -> None:
    stats = draw(grove(kit), 48, 32, count=True, group="object").stats
    spent = spent_by(stats, "reflection")
    assert spent["wall"]["hits"] > 0
    assert spent["ball"]["hits"] == 0 < spent["ball"]["nodes"]
    assert spent["ball"]["instance_hits"] > 0


def test_a_hidden_object_is_charged_with_nothing(device: Any, kit: Any) -> None:
    prepared = prepare(grove(kit), group="object")
    scene = GpuScene(device, prepared)
    frame = HybridFrame(device, prepared, FrameOptions(48, 32, count=True), scene)
    assert ("leaf", "shadow") in frame.run().objects
    hidden = [i for i, name in enumerate(prepared.object_names) if name == "leaf"]
    scene.set_hidden(hidden)
    stats = frame.run()
    assert not [name for name, _ in stats.objects if name == "leaf"]
    assert stats.rays["shadow"].any_hits == 0 < stats.rays["shadow"].nodes


def test_the_hits_of_an_object_are_those_of_its_rays(draw: Any, kit: Any) -> None:
    drawn = draw(grove(kit), 48, 32, count=True, group="object")
    _, hits = drawn.reflections
    found = hits["instance"][hits["instance"] != 0xFFFFFFFF]
    names = np.array(drawn.prepared.object_names)[found]
    spent = spent_by(drawn.stats, "reflection")
    for name in ("floor", "leaf", "wall", "ball"):
        row = spent.get(name)
        assert (row["hits"] if row else 0) == (names == name).sum()


def test_a_scene_of_one_instance_has_no_tlas_to_charge(draw: Any, kit: Any) -> None:
    scene = kit.scene([kit.sphere(rings=6)], [kit.grey(roughness=0.2)])
    stats = draw(scene, 24, 24, count=True).stats
    for ray in ("reflection", "shadow"):
        spent, total = spent_by(stats, ray), stats.rays[ray]
        assert set(spent) == {"static"}
        assert spent["static"]["nodes"] == total.nodes > 0
        assert spent["static"]["instance_hits"] == total.instance_hits == total.rays


def test_counters_follow_objects_and_not_instances(device: Any, kit: Any) -> None:
    """2,000 copies of one mesh: one row, and what comes back is as small as for one copy."""
    copies = [Instance(f"copy{i}", 0, kit.place((i % 50, 0, -(i // 50)))) for i in range(2000)]
    floor = kit.quad((-9, -1.0, 9), (60, 0, 0), (0, 0, -60))
    meshes = [kit.quad((-0.2, -0.3, 0), (0.4, 0, 0), (0, 0.6, 0)), floor]
    sizes = []
    for count in (2, 2000):
        instances = [*copies[:count], Instance("floor", 1, np.eye(4))]
        scene = kit.scene(meshes, [kit.mirror()], instances=instances, eye=(0, 1, 4))
        prepared = prepare(scene, group="object")
        frame = HybridFrame(device, prepared, FrameOptions(24, 16, count=True))
        stats = frame.run()
        sizes.append(stats.readback_bytes)
        assert {name for name, _ in stats.objects} == {TLAS_NAME, "quad"}
        spent, total = spent_by(stats, "reflection"), stats.rays["reflection"]
        assert sum(row["nodes"] for row in spent.values()) == total.nodes
        assert spent["quad"]["instance_hits"] == total.instance_hits > 0
    assert sizes[0] == sizes[1]


def test_the_table_of_a_buffer(rng: np.random.Generator) -> None:
    rows = rng.integers(1, 8, 1001).astype(np.uint32)
    rows[:7] = range(1, 8)
    words = counter_words(rows)
    assert len(words) % 4 == 0 and words.nbytes < 4 * (len(rows) + table_words(7) + 6)
    table = CounterTable.of(words)
    assert table.totals.shape == (len(COUNTERS),)
    assert table.objects.shape == (8, len(OBJECT_COUNTERS)) and not table.objects.any()
    np.testing.assert_array_equal(table.rows, rows)
    table.charge("any_hits", np.array([0, 3, 3], np.uint32))
    column = table.objects[:, OBJECT_COUNTERS.index("any_hits")]
    assert (column[1], column[4], column.sum()) == (1, 2, 3) and table.objects.sum() == 3


def test_a_test_without_a_texture_samples_none(draw: Any, kit: Any) -> None:
    """Alpha of the vertices alone: candidates are tested, and no texture is read."""
    colors = np.full((4, 4), 255, np.uint8)
    colors[1:3, 3] = 0
    veil = kit.quad((-3, -3, 1), (6, 0, 0), (0, 6, 0), 1, colors=colors)
    floor = kit.quad((-4, -2, 5), (8, 0, 0), (0, 0, -10), 0)
    materials = [kit.mirror(), Material("veil", alpha_mode="MASK")]
    scene = kit.scene([floor, veil], materials, eye=(0, 0.5, 5), target=(0, -2, 0))
    counts = draw(scene, 24, 16, count=True).stats.rays["reflection"]
    assert 0 < counts.rejected < counts.any_hits and counts.alpha_samples == 0
