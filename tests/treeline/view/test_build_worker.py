"""Builds in a process of their own: the same bytes, told as they go, given up when superseded."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bvh.blas import BuildOptions
from engine.scene.mesh import make_mesh
from engine.scene.scene import Instance
from passes.option_list import ViewSettings
from treeline.view.array_file import read_value, write_value
from treeline.view.build_worker import BuildWorker, Built, StructureKey, build
from treeline.view.session import ViewSession

LBVH = StructureKey(BuildOptions(builder="lbvh", reinsertion=0), "static")
SAH = StructureKey(BuildOptions(builder="sah", reinsertion=0), "object")
SLOW = StructureKey(BuildOptions(reinsertion=1000, pairing="best"), "object")
LIMIT_S = 120.0


def wait_for(worker: BuildWorker) -> Built:
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        built = worker.poll()
        if built is not None:
            return built
        time.sleep(0.002)
    raise AssertionError(f"no answer; {worker.progress}")


@pytest.fixture
def ball_scene(small_scene: Any) -> Any:
    """The small scene with a bumpy ball of 4,608 triangles."""
    rng = np.random.default_rng(3)
    rows, columns = 48, 48
    theta, phi = np.meshgrid(np.linspace(0.1, 3.0, rows + 1), np.linspace(0, 6.28, columns + 1))
    unit = np.stack([np.sin(theta) * np.cos(phi), np.cos(theta), np.sin(theta) * np.sin(phi)], -1)
    points = (unit * rng.uniform(0.9, 1.0, unit.shape[:2] + (1,))).reshape(-1, 3)
    a = (np.arange(columns)[:, None] * (rows + 1) + np.arange(rows)).ravel()
    faces = np.concatenate(
        [np.stack([a, a + 1, a + rows + 2], 1), np.stack([a, a + rows + 2, a + rows + 1], 1)]
    )
    ball = make_mesh("ball", points, faces, 1)
    instance = Instance("ball", len(small_scene.meshes), np.eye(4))
    return replace(
        small_scene,
        meshes=(*small_scene.meshes, ball),
        instances=(*small_scene.instances, instance),
    )


@pytest.fixture
def worker(ball_scene: Any) -> Iterator[BuildWorker]:
    made = BuildWorker(ball_scene, None, cached=False)
    yield made
    made.close()


def test_a_worker_builds_the_same_bytes_and_says_how_far_it_is(
    worker: BuildWorker, ball_scene: Any
) -> None:
    assert worker.poll() is None and worker.wanted is None
    worker.request(LBVH)
    texts = {worker.progress}
    built = None
    while built is None:
        built = worker.poll()
        texts.add(worker.progress)
    assert built.key == LBVH and built.error is None and built.structure is not None
    here = build(ball_scene, LBVH, None, False)
    assert np.array_equal(built.structure.bvh.words, here.bvh.words)
    assert built.structure.prepared.object_names == here.prepared.object_names
    assert worker.wanted is None and "starting" in texts and len(texts) > 1


def test_a_newer_request_ends_the_older_one(worker: BuildWorker) -> None:
    worker.request(SLOW)
    time.sleep(0.1)
    worker.request(LBVH)
    assert worker.wanted == LBVH
    assert wait_for(worker).key == LBVH
    worker.request(SAH)  # by the process that is there now
    assert wait_for(worker).key == SAH
    assert worker.poll() is None


def test_an_answer_that_nobody_took_is_not_the_next_ones(worker: BuildWorker) -> None:
    worker.request(LBVH)
    end = time.monotonic() + LIMIT_S
    while worker._answers.empty() and time.monotonic() < end:
        time.sleep(0.005)
    worker.request(SAH)
    assert wait_for(worker).key == SAH
    assert worker.poll() is None and worker.wanted is None


def test_what_cannot_be_built_comes_back_as_text(ball_scene: Any) -> None:
    far = np.eye(4)
    far[0, 3] = 1e12
    scene = ball_scene
    items = (*scene.instances[:-1], replace(scene.instances[-1], transform=far))
    worker = BuildWorker(replace(scene, instances=items), None, cached=False)
    worker.request(StructureKey(BuildOptions(builder="lbvh", reinsertion=0), "object"))
    built = wait_for(worker)
    assert built.structure is None and built.error is not None
    assert built.error.kind == "request" and "'ball' reaches" in built.error.message
    worker.close()


def test_a_process_that_dies_is_an_error_not_a_wait(worker: BuildWorker) -> None:
    worker.request(SLOW)
    end = time.monotonic() + LIMIT_S
    while worker._process is None and time.monotonic() < end:
        time.sleep(0.005)
    worker._process.kill()
    built = wait_for(worker)
    assert built.error is not None and built.error.kind == "fault"
    assert "ended without a result" in built.error.message
    worker.request(LBVH)
    assert wait_for(worker).error is None


def test_the_old_picture_stays_while_a_structure_is_built(
    open_session: Callable[..., ViewSession], until: Callable[..., int], ball_scene: Any
) -> None:
    # The best pairs are the CPU's: no builder is compiled.
    first = BuildOptions(builder="lbvh", reinsertion=0, pairing="best")
    session = open_session(scene=ball_scene, settings=ViewSettings(build=first))
    assert session.frame is None
    build_until_ready(session)
    shown, timed = session.frame, session.timed
    settings = replace(session.settings, build=replace(first, leaf=1))
    session.change(settings)
    session.step()
    assert session.busy and session.frame is shown and not session.ready
    samples = session.samples
    session.step()
    assert session.samples == samples  # the cores are the build's
    assert session.active is not None and session.active.settings != settings
    assert timed is not None and session.timed is not None
    build_until_ready(session)
    assert session.frame is not shown and session.active.settings == settings
    session.change(replace(settings, build=SLOW.build))
    session.step()
    session.change(settings)  # back again: nothing is wanted of the build any more
    session.step()
    assert session.ready and session.busy is None


def build_until_ready(session: ViewSession) -> None:
    end = time.monotonic() + LIMIT_S
    while not session.ready and time.monotonic() < end:
        session.step()
        assert session.error is None
        time.sleep(0.002)
    assert session.ready


def test_arrays_come_back_whole_and_writable(tmp_path: Path, rng: np.random.Generator) -> None:
    value = {
        "empty": np.zeros((0, 3), np.float32),
        "ints": rng.integers(0, 9, (5, 7)).astype(np.uint8),
        "floats": rng.random((100, 3)),
        "turned": np.asfortranarray(rng.random((4, 6))),
        "text": ["a", 1],
    }
    write_value(tmp_path / "value", value)
    back = read_value(tmp_path / "value")
    (tmp_path / "value").unlink()
    assert back["text"] == value["text"]
    for name in ("empty", "ints", "floats", "turned"):
        assert np.array_equal(back[name], value[name]) and back[name].dtype == value[name].dtype
    back["floats"][0] = 7.0
    assert back["floats"][0, 0] == 7.0
