"""`import treeline as tl`: load, build, render and cast rays from Python."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treeline as tl
from bvh.gpu import trace_rays
from bvh.gpu.trace_rays import RayTracer
from engine.gpu.errors import AdapterError, UserError
from treeline import casting

SQUARE = "v -1 -1 0\nv 1 -1 0\nv 1 1 0\nv -1 1 0\nf 1 2 3\nf 1 3 4\n"


@pytest.fixture
def prepared(tmp_path: Path) -> Any:
    path = tmp_path / "square.obj"
    path.write_text(SQUARE)
    return tl.build(tl.load(path))


def test_rays_count_t_in_the_given_direction(device: Any, prepared: Any) -> None:
    rays = [[0.5, 0, 4, 0, 0, -2], [0.5, 0, 4, 0, 0, 1], [5, 0, 4, 0, 0, -1]]
    answer = tl.cast_rays(prepared, rays, device=device)
    assert answer["t_hit"].tolist() == [2.0, np.inf, np.inf]
    assert answer["object_ids"].tolist() == [0, 0xFFFFFFFF, 0xFFFFFFFF]
    assert answer["uv"].shape == (3, 2)


def test_rays_with_an_interval(device: Any, prepared: Any) -> None:
    rays = [[0.5, 0, 4, 0, 0, 0, -1, 3.9], [0.5, 0, 4, 4.1, 0, 0, -1, np.inf]]
    assert np.isinf(tl.cast_rays(prepared, rays, device=device)["t_hit"]).all()
    near = [[0.5, 0, 4, 0, 0, 0, -1, np.inf]]
    assert tl.cast_rays(prepared, near, device=device, any_hit=True)["t_hit"].tolist() == [4.0]


def test_no_rays_give_empty_arrays(device: Any, prepared: Any) -> None:
    answer = tl.cast_rays(prepared, np.zeros((0, 6)), device=device)
    assert {len(values) for values in answer.values()} == {0}


@pytest.mark.parametrize("shape", [(3,), (2, 5), (2, 3, 6)])
def test_other_shapes_are_refused(prepared: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="rays"):
        tl.cast_rays(prepared, np.zeros(shape))


def test_rays_that_are_not_finite_are_named(device: Any, prepared: Any) -> None:
    good = [0.5, 0, 4, 0, 0, 0, -1, np.inf]
    for place in range(8):
        for wrong in (np.nan, np.inf, -np.inf)[: 1 if place == 7 else 3]:
            bad = [*good[:place], wrong, *good[place + 1 :]]
            with pytest.raises(ValueError, match="ray 1 is not finite"):
                tl.cast_rays(prepared, [good, bad], device=device)
    with pytest.raises(ValueError, match="ray 0 is not finite"):
        tl.cast_rays(prepared, [[0, 0, 1e300, 0, 0, -1]], device=device)
    still = tl.cast_rays(prepared, [[0.5, 0, 4, 0, 0, 0]], device=device)
    assert still["object_ids"].tolist() == [0xFFFFFFFF]


def test_rays_in_parts(device: Any, prepared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there are, in order."""
    rays = [[0.1 * i, 0, i + 1, 0, 0, -1] for i in range(8)]
    whole = tl.cast_rays(prepared, rays, device=device)
    monkeypatch.setattr(casting, "RAYS_AT_ONCE", 3)
    counts: list[int] = []
    trace = RayTracer.trace

    def counted(self: RayTracer, records: Any) -> Any:
        counts.append(len(records))
        return trace(self, records)

    monkeypatch.setattr(RayTracer, "trace", counted)
    parts = tl.cast_rays(prepared, rays, device=device)
    assert counts == [3, 3, 2]
    assert whole["t_hit"].tolist() == [i + 1 for i in range(8)]
    for name, values in whole.items():
        assert np.array_equal(values, parts[name])


def test_a_caster_makes_its_kernels_once(
    device: Any, prepared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []
    make = RayTracer.__init__

    def counted(self: RayTracer, device: Any, words: Any, variant: Any, **others: Any) -> None:
        made.append(variant.any_hit)
        make(self, device, words, variant, **others)

    monkeypatch.setattr(RayTracer, "__init__", counted)
    caster = tl.ray_caster(prepared, device=device)
    rays = [[0.5, 0, 4, 0, 0, -2], [5, 0, 4, 0, 0, -1]]
    for _ in range(3):
        for any_hit in (False, True):
            assert caster.cast(rays, any_hit=any_hit)["t_hit"].tolist() == [2.0, np.inf]
    assert made == [False, True]
    assert caster.cast(rays)["instance_ids"].tolist() == [0, 0xFFFFFFFF]


def test_a_caster_takes_larger_stacks_where_one_overflowed(
    device: Any, tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    corners = rng.uniform(-1, 1, (600, 1, 3)) + rng.uniform(-0.3, 0.3, (600, 3, 3))
    vertices = "".join(f"v {x} {y} {z}\n" for x, y, z in corners.reshape(-1, 3))
    faces = "".join(f"f {3 * i + 1} {3 * i + 2} {3 * i + 3}\n" for i in range(600))
    (tmp_path / "soup.obj").write_text(vertices + faces)
    soup = tl.build(tl.load(tmp_path / "soup.obj"), leaf=1, builder="lbvh", optimize=0)
    rays = np.concatenate([rng.uniform(-3, 3, (200, 3)), rng.uniform(-1, 1, (200, 3))], axis=1)
    right = tl.cast_rays(soup, rays, device=device)
    assert np.isfinite(right["t_hit"]).sum() > 20

    def shader(entries: int) -> str:
        path = tmp_path / f"stack_{entries}.wgsl"
        path.write_text(f"const STACK_SIZE: u32 = {entries}u;\n")
        return str(path)

    monkeypatch.setattr(trace_rays, "stack_shader", shader)
    monkeypatch.setattr(casting, "STACK_SIZES", (2, 64))
    grown = tl.cast_rays(soup, rays, device=device)
    for name, values in right.items():
        np.testing.assert_array_equal(grown[name], values)
    monkeypatch.setattr(casting, "STACK_SIZES", (1, 2))
    with pytest.raises(RuntimeError, match="a stack overflowed"):
        tl.cast_rays(soup, rays, device=device)


def test_render_takes_samples_and_options(device: Any, prepared: Any) -> None:
    one = tl.render(prepared, 24, 18, device=device)
    other = tl.render(prepared, 24, 18, device=device, samples=3, seed=5, gbuffer="rays")
    assert one.shape == other.shape and (one != other).any()
    with pytest.raises(tl.UserError, match="reflection bounces are 1 to 4, not 9"):
        tl.render(prepared, 24, 18, device=device, reflection_bounces=9)
    with pytest.raises(TypeError, match="bounces"):
        tl.render(prepared, 24, 18, device=device, bounces=2)
    with pytest.raises(tl.UserError, match="not 0"):
        tl.render(prepared, 24, 18, device=device, samples=0)


def test_what_was_forgotten_is_said(device: Any, prepared: Any) -> None:
    with pytest.raises(TypeError, match="a scene that load gave, not str"):
        tl.build("kitchen.glb")
    with pytest.raises(TypeError, match="a scene that build gave, not Scene"):
        tl.render(prepared.scene, 8, 8, device=device)
    with pytest.raises(TypeError, match="a scene that build gave, not Scene"):
        tl.cast_rays(prepared.scene, np.ones((1, 6)), device=device)
    with pytest.raises(TypeError, match="not complex"):
        tl.cast_rays(prepared, np.ones((1, 6), np.complex64), device=device)


def test_scenes_are_shown_in_a_line(prepared: Any) -> None:
    assert re.fullmatch(
        r"<Scene \w+: [\d,]+ triangles in 1 instances, 1 materials>", repr(prepared.scene)
    )
    assert re.fullmatch(r"<PreparedScene \w+, group static: 1 BLAS, [\d,]+ bytes>", repr(prepared))


def test_render(device: Any, prepared: Any) -> None:
    picture = tl.render(prepared, 40, 30, device=device)
    assert picture.shape == (30, 40, 3) and picture.dtype == np.uint8
    assert picture.std() > 1


def test_mistakes_are_user_errors(tmp_path: Path, prepared: Any) -> None:
    with pytest.raises(UserError, match="gone.glb"):
        tl.load(tmp_path / "gone.glb")
    with pytest.raises(AdapterError, match="Voodoo"):
        tl.open_device("Voodoo")
    with pytest.raises(UserError, match="magic"):
        tl.build(tl.load(), builder="magic")
