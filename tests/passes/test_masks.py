"""Instance masks by ray type: who is not let in is not entered, by counts and by the twins."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.scene.scene import Scene
from passes.frame_stats import RayStats
from passes.hybrid import FrameOptions
from passes.rays import RAY_TYPES

SIZE = 24


@pytest.fixture(scope="module")
def masked_room(kit: Any) -> Scene:
    """The room whose instance i has the mask 1 << (i % 8), and whose meshes have names."""
    room = kit.room()
    meshes = [replace(mesh, name=f"mesh{i}") for i, mesh in enumerate(room.meshes)]
    instances = [replace(item, mask=1 << (i % 8)) for i, item in enumerate(room.instances)]
    return replace(room, meshes=tuple(meshes), instances=tuple(instances))


def options(**masks: int) -> tuple[tuple[str, int], ...]:
    made = FrameOptions(1, 1)
    for ray_type, mask in masks.items():
        made = made.with_mask(ray_type, mask)
    return made.masks


def spent(stats: Any, ray_type: str) -> set[str]:
    """Objects that rays of the type visited nodes of."""
    return {name for name, kind in stats.objects if kind == ray_type and name != "(TLAS)"}


@pytest.mark.parametrize("ray", RAY_TYPES, ids=lambda ray: ray.name)
@pytest.mark.parametrize("group", ["static", "all"])
def test_mask_zero_gives_only_misses(
    draw: Callable[..., Any], kit: Any, ray: Any, group: str
) -> None:
    """Also where the scene is one instance, whose kernel skips the TLAS."""
    scene = kit.room()
    settings = dict(group=group, count=True, **kit.every_ray)
    seen = draw(scene, SIZE, SIZE, **settings).stats
    drawn = draw(scene, SIZE, SIZE, **settings, masks=options(**{ray.name: 0}))
    blind: RayStats = drawn.stats.rays[ray.name]
    assert seen.rays[ray.name].hits and blind.rays
    assert (blind.hits, blind.misses) == (0, blind.rays)
    assert (blind.instance_hits, blind.triangle_tests) == (0, 0)
    for other in RAY_TYPES:
        if other is not ray and ray.name == "shadow":
            assert drawn.stats.rays[other.name] == seen.rays[other.name]


@pytest.mark.parametrize(("traversal", "size"), [("fast", SIZE), ("contract", 8)])
def test_rays_enter_only_instances_that_share_a_bit(
    draw: Callable[..., Any], masked_room: Scene, traversal: str, size: int
) -> None:
    settings = dict(group="object", count=True, traversal=traversal)
    everything = draw(masked_room, size, size, **settings).stats
    mask = 0b01010101
    drawn = draw(masked_room, size, size, **settings, masks=options(shadow=mask))
    names, instances = drawn.prepared.object_names, drawn.prepared.bvh.instances
    let_in = {n for n, item in zip(names, instances, strict=True) if item.mask & mask}
    assert spent(everything, "shadow") - let_in
    assert spent(drawn.stats, "shadow") and spent(drawn.stats, "shadow") <= let_in
    assert drawn.stats.rays["shadow"].hits < everything.rays["shadow"].hits
    assert drawn.stats.rays["reflection"] == everything.rays["reflection"]


def test_twins_agree_about_who_is_seen(draw: Callable[..., Any], masked_room: Scene) -> None:
    masks = options(reflection=0b01010110, shadow=0b00111001)
    drawn = draw(masked_room, SIZE, SIZE, group="object", gbuffer="rays", masks=masks)
    cpu = drawn.frame.run_cpu(until="traverse/shadow")
    rays, hits = drawn.reflections
    queue = cpu["reflection_queue"]
    order = np.argsort(queue.records["pixel"][: queue.count])
    assert np.array_equal(rays["pixel"], queue.records["pixel"][order])
    twin = cpu["reflection_results"][: queue.count][order]
    assert (hits["instance"] == twin["instance"]).mean() > 0.99
    seen = {int(i) for i in hits["instance"] if i != 0xFFFFFFFF}
    shut_out = {
        i for i, item in enumerate(drawn.prepared.bvh.instances) if not item.mask & 0b01010110
    }
    assert seen and not seen & shut_out
    shadows, lit = drawn.shadows
    twin_lit = cpu["shadow_results"][shadows["slot"]] == 1
    assert (lit == twin_lit).mean() > 0.99
