"""Queues that stay empty, where nothing is seen, nothing is hit or nothing asks: frames are valid,
hold what the sky gives, and are as good as new afterwards."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.scene.camera import look_at
from passes.frame_options import FrameOptions
from passes.hybrid import HybridFrame

SIZE = (24, 18)
MODES = [
    {},
    {"any_hit_mode": "queue", "any_hit_rounds": 2},
    {"motion": True, "count": True},
    {"sort_shadow": True, "loops": "one"},
]


@pytest.mark.parametrize("gbuffer", ["raster", "rays"])
@pytest.mark.parametrize("options", MODES, ids=lambda o: "-".join(o) or "plain")
def test_away_and_back_is_the_same_frame(
    device: Any, room: Any, kit: Any, options: dict[str, Any], gbuffer: str
) -> None:
    """Into the sky, where no ray of any type starts, between two looks at the room."""
    every = {**kit.every_ray, **options}
    frame = HybridFrame(device, room, FrameOptions(*SIZE, gbuffer=gbuffer, **every))
    home = frame.inputs
    eye = home.camera.position + [0, 30, 0]
    away = replace(home, camera=look_at(eye, eye + [0.1, 5, 0.2], home.camera.y_fov))

    def look(inputs: Any) -> Any:
        stats = frame.run(0, inputs=inputs)
        while stats.dropped:  # a queue that had no room yet
            stats = frame.run(0, inputs=inputs)
        assert stats.valid
        return stats, frame.result_hash(), frame.image()

    before = look(home)
    empty = look(away)
    after = look(home)
    assert not any(n.rays for n in empty[0].rays.values())
    assert all(n.rays for n in before[0].rays.values())
    assert (frame.aov("object") >= 0).any()
    assert before[1] == after[1] and (before[2] == after[2]).all()
    if options.get("count"):
        assert all(n.nodes == n.any_hits == 0 for n in empty[0].rays.values())


@pytest.mark.parametrize("mode", ["inline", "queue"])
def test_rays_that_all_miss(kit: Any, draw: Any, mode: str) -> None:
    """A leaf that is a mirror for the sky, its lamp unblocked: full queues, and empty hits."""
    from engine.scene.material import Material, Texture

    leaf = Material("leaf", roughness=0.1, alpha_mode="MASK", base_color_texture=0)
    pixels = np.full((4, 4, 4), 255, np.uint8)
    pixels[1:3, 1:3, 3] = 0
    sheet = kit.quad((-1, -1, 0), (2, 0, 0), (0, 2, 0))
    scene = kit.scene(
        [sheet],
        [leaf],
        textures=[Texture("leaf", pixels, True)],
        light=kit.lamp((0, 0, 4), 0.1, (0, 0, -1), (9, 9, 9)),
        sky=(0.2, 0.2, 0.2),
    )
    drawn = draw(scene, *SIZE, any_hit_mode=mode, count=True)
    seen = int((drawn.aov("object") == 0).sum())
    for ray in ("reflection", "shadow"):
        counts = drawn.stats.rays[ray]
        assert (counts.rays, counts.hits, counts.misses) == (seen, 0, seen) and seen > 30
    assert drawn.shadows[1].all() and drawn.stats.valid


@pytest.mark.parametrize("update", ["refit", "rebuild", "policy"])
def test_what_moves_unseen_leaves_no_ray(kit: Any, device: Any, update: str) -> None:
    """The hall's own walking figure, while the camera looks at the sky."""
    from bvh.build import BuildOptions
    from passes.prepare import prepare
    from treeline.scenes import load

    hall = load()
    kept = [i for i, item in enumerate(hall.instances) if item.lifetime == "deforming"]
    same = {i: i for i in range(len(hall.meshes))}
    scene = replace(
        hall,
        instances=tuple(hall.instances[i] for i in kept),
        animation=hall.animation.renumbered(same, kept),
        camera=look_at(np.array([0.0, 50, 0]), np.array([0.1, 90, 0]), 0.8),
    )
    prepared = prepare(scene, BuildOptions("lbvh", reinsertion=0))
    frame = HybridFrame(device, prepared, FrameOptions(*SIZE, update=update))
    for time in (0.2, 0.5):
        stats = frame.run(0, inputs=replace(frame.inputs, clip="walk", time=time))
        assert stats.valid and not any(n.rays for n in stats.rays.values())
        assert frame.moving.messages() == []
