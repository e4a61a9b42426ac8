"""The a-trous denoiser: what it leaves as it is, what it does not cross, and what it is for."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bvh.build import BuildOptions
from passes.hybrid import FrameOptions, HybridFrame
from passes.prepare import PreparedScene, prepare

SIZE = (40, 30)
PIXELS = SIZE[0] * SIZE[1]
FAST = BuildOptions(builder="lbvh", reinsertion=0)
ROUNDS = 3
LOUD = 50.0  # a deviation by which no difference of light is too large

Refilter = Callable[..., Any]


@pytest.fixture(scope="module")
def make(device: Any) -> Callable[..., HybridFrame]:
    def maker(scene: Any, size: tuple[int, int] = SIZE, **options: Any) -> HybridFrame:
        prepared = scene if isinstance(scene, PreparedScene) else prepare(scene, FAST)
        return HybridFrame(device, prepared, FrameOptions(*size, gbuffer="rays", **options))

    return maker


@pytest.fixture(scope="module")
def refilter(device: Any) -> Refilter:
    """refilter(frame, light, samples [height, width, 3], deviation): what the last round but one
    makes of other samples of the frame's last picture, [height, width, 3]."""

    def again(frame: HybridFrame, light: str, samples: Any, deviation: float = LOUD) -> Any:
        halves = np.full((PIXELS, 4), deviation, np.float16)
        halves[:, :3] = np.reshape(samples, (PIXELS, 3))
        resources = frame.data.resources
        device.write(resources[f"{light}_round_0"], halves.view(np.uint32))
        encoder = device.wgpu.create_command_encoder(label="denoise")
        for item in frame.passes:
            # The last round takes the surface into account again.
            if item.name in {f"denoise/{light}/{n}" for n in range(ROUNDS - 1)}:
                scope = encoder.begin_compute_pass(label=item.name)
                item.encode(scope, resources)
                scope.end()
        device.wgpu.queue.submit([encoder.finish()])
        words = device.read(resources[f"{light}_round_{ROUNDS - 1}"], np.uint32, count=2 * PIXELS)
        found = words.view(np.float16).reshape(SIZE[1], SIZE[0], 4)[..., :3]
        return found.astype(np.float32)

    return again


def test_constant_light_stays(
    make: Callable[..., HybridFrame], refilter: Refilter, room: PreparedScene
) -> None:
    """To half a step of a half, over every kind of surface."""
    frame = make(room, denoiser=ROUNDS)
    assert frame.run().valid
    covered = frame.aov("object") >= 0
    light = np.array([0.7, 1.3, 21.0], np.float16).astype(np.float32)
    for name, there in (
        ("direct", covered),
        ("reflection", covered & (frame.aov("roughness") <= frame.options.roughness_cutoff)),
    ):
        for deviation in (0.0, LOUD):
            found = refilter(frame, name, np.broadcast_to(light, (*SIZE[::-1], 3)), deviation)
            np.testing.assert_allclose(found[there], np.tile(light, (there.sum(), 1)), rtol=2**-11)
        assert there.sum() > 200


def make_edges(kit: SimpleNamespace) -> dict[str, Any]:
    """Scenes whose picture's left and right half differ in one thing."""
    left = kit.quad((-4, -4, 0), (4, 0, 0), (0, 8, 0))
    right = kit.quad((0, -4, 0), (4, 0, 0), (0, 8, 0))
    deep = kit.quad((0, -4, -0.8), (4, 0, 0), (0, 8, 0))
    tilted = kit.quad((0, -4, 0), (4, 0, -2), (0, 8, 0))
    return {
        "object": kit.scene([left, right], eye=(0, 0, 6)),
        "depth": kit.scene([joined(kit, left, deep)], eye=(0, 0, 6)),
        "normal": kit.scene([joined(kit, left, tilted)], eye=(0, 0, 6)),
    }


def joined(kit: SimpleNamespace, *quads: Any) -> Any:
    """One mesh, so one object."""
    from engine.scene.mesh import make_mesh

    points = np.concatenate([quad.positions for quad in quads])
    triangles = [quad.triangles + 4 * number for number, quad in enumerate(quads)]
    return make_mesh("joined", points, np.concatenate(triangles), 0)


@pytest.mark.parametrize("edge", ["object", "depth", "normal"])
def test_it_crosses_no_edge(
    make: Callable[..., HybridFrame], refilter: Refilter, kit: SimpleNamespace, edge: str
) -> None:
    frame = make(make_edges(kit)[edge], denoiser=ROUNDS)
    assert frame.run().valid
    sides = {
        "object": lambda: frame.aov("object") == 1,
        "depth": lambda: frame.aov("depth") > 6.4,
        "normal": lambda: frame.aov("normal")[..., 0] > 0.1,
    }
    right = sides[edge]()
    assert 300 < right.sum() < 900
    samples = np.where(right[..., None], 0.0, 1.0) * np.ones(3)
    found = refilter(frame, "direct", samples)
    assert np.abs(found - samples).max() < (1e-3 if edge == "object" else 0.02)
    # Within a side nothing holds it back: a pixel spreads over several.
    samples[:] = 0.0
    samples[15, 8] = 1.0
    spread = refilter(frame, "direct", samples)
    assert (spread[..., 0] > 1e-3).sum() > 30
    # All of its light is still there, in halves.
    assert spread[..., 0].sum() == pytest.approx(1.0, abs=0.03)


def test_where_samples_hardly_scatter_edges_of_light_stay(
    make: Callable[..., HybridFrame], refilter: Refilter, kit: SimpleNamespace
) -> None:
    """As that of a shadow, once it is known well enough."""
    frame = make(make_edges(kit)["object"], denoiser=ROUNDS)
    frame.run()
    samples = np.zeros((*SIZE[::-1], 3))
    samples[:15] = 1.0
    kept = refilter(frame, "direct", samples, deviation=0.01)
    assert np.abs(kept - samples).max() < 1e-3
    blurred = refilter(frame, "direct", samples, deviation=2.0)
    assert np.abs(blurred - samples).max() > 0.3


@pytest.mark.parametrize(
    ("roughness", "least", "most"), [(0.0, 1, 1), (0.08, 5, 60), (0.5, 100, 200)]
)
def test_reflections_are_blurred_as_far_as_their_lobe(
    make: Callable[..., HybridFrame],
    refilter: Refilter,
    kit: SimpleNamespace,
    roughness: float,
    least: int,
    most: int,
) -> None:
    wall = kit.quad((-6, -6, 0), (12, 0, 0), (0, 12, 0))
    scene = kit.scene([wall], [kit.mirror(roughness=roughness)], eye=(0, 0, 6), y_fov=0.4)
    frame = make(scene, denoiser=ROUNDS)
    frame.run()
    samples = np.zeros((*SIZE[::-1], 3))
    samples[15, 20] = 1.0
    found = refilter(frame, "reflection", samples)[..., 0]
    size = int((found > 0.01 * found.max()).sum())
    assert least <= size <= most
    if roughness == 0:
        assert found[15, 20] == 1.0


def shown(frame: HybridFrame) -> Any:
    """As a screen shows it: one pixel that sees the lamp would outweigh all others."""
    return np.minimum(frame.radiance(), 2.0)


def distance(one: Any, other: Any) -> float:
    return float(np.sqrt(np.mean((one - other) ** 2)))


@pytest.mark.parametrize(
    ("name", "size", "samples", "left"),
    [("room", SIZE, 128, 0.75), ("hall", (64, 36), 32, 0.95)],
)
def test_noise_becomes_less(
    make: Callable[..., HybridFrame], request: Any, name: str, size: Any, samples: int, left: float
) -> None:
    """At one sample a pixel, against a mean of many. The hall has more edges than so few pixels can
    show. The picture as a whole stays as bright."""
    scene = request.getfixturevalue(name)
    truth, plain, denoised = (make(scene, size, denoiser=n) for n in (0, 0, ROUNDS))
    truth.render(samples, 1000)
    reference = shown(truth)
    errors, bright = [], []
    for index in range(2):
        assert plain.run(index).valid and denoised.run(index).valid
        errors.append([distance(shown(frame), reference) for frame in (plain, denoised)])
        bright.append(denoised.radiance().mean() / plain.radiance().mean() - 1)
    before, after = np.mean(errors, axis=0)
    assert after < left * before
    assert abs(np.mean(bright)) < 0.01


def test_a_mean_is_denoised_the_less_the_surer_it_is(
    make: Callable[..., HybridFrame], room: PreparedScene
) -> None:
    """Further samples of a picture: it converges to what it would be without a denoiser."""
    plain, denoised = make(room), make(room, denoiser=ROUNDS)
    apart = []
    for samples in (1, 8, 64):
        plain.render(samples)
        denoised.render(samples)
        apart.append(distance(denoised.radiance(), plain.radiance()) / plain.radiance().mean())
    assert apart[2] < 0.5 * apart[1] < 0.5 * apart[0] and apart[2] < 0.02
    assert abs(denoised.radiance().mean() / plain.radiance().mean() - 1) < 0.005
