"""Pictures compared in other processes: the same errors, and what a process that ends leads to."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.gpu.errors import CheckFailed
from treeline import picture_comparer
from treeline.image_error import F32, image_error
from treeline.picture_comparer import MOST_PROCESSES, PictureComparer, processes_for

RNG = np.random.default_rng(5)
REFERENCE: F32 = RNG.random((24, 32, 3), np.float32)
PICTURES: list[F32] = [REFERENCE + k * RNG.random((24, 32, 3), np.float32) for k in (0.1, 0.5)]


def drawn(count: int = 2) -> Iterator[tuple[F32, float]]:
    return iter([(picture, 0.5) for picture in PICTURES[:count]])


@pytest.mark.parametrize("processes", [0, 2])
def test_errors_are_those_of_one_picture_after_the_other(processes: int) -> None:
    with PictureComparer(REFERENCE, processes) as comparer:
        results = [comparer.begin(drawn()) for _ in range(3)]
        found = [result() for result in results]
    expected = [
        image_error(picture, REFERENCE, 0.5, perceptual=number == 0)
        for number, picture in enumerate(PICTURES)
    ]
    for error in found:
        assert list(error.errors) == expected
        assert all(a is b for a, b in zip(error.pictures, PICTURES, strict=True))


def test_a_process_that_ended_is_told_in_one_line() -> None:
    with PictureComparer(REFERENCE, 1) as comparer:
        comparer.begin(drawn())()
        process: Any = comparer._processes[0]._process
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with pytest.raises(CheckFailed, match=r"^a process .* ended, exit code -9$"):
            comparer.begin(drawn())()


def test_a_process_that_cannot_be_started_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving has nothing to end then."""

    def refuse(process: Any) -> None:
        raise OSError("no room for a process")

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)
    with pytest.raises(OSError, match="no room"), PictureComparer(REFERENCE, 1) as comparer:
        comparer.begin(drawn(1))()


def test_a_process_whose_starter_was_killed_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an answer that nobody read: the pipe is reset then, not at its end."""
    monkeypatch.setattr(picture_comparer.signal, "signal", lambda *_: None)
    ours, theirs = multiprocessing.Pipe()
    theirs.send("an answer")
    ours.close()
    with pytest.raises(ConnectionResetError):
        theirs.recv()
    ours, theirs = multiprocessing.Pipe()
    theirs.send("an answer")
    ours.close()
    picture_comparer._serve(theirs, REFERENCE)


def test_leaving_ends_the_processes() -> None:
    with PictureComparer(REFERENCE, 1) as comparer:
        result = comparer.begin(drawn())
        result()
        process: Any = comparer._processes[0]._process
        assert process.is_alive()
    process.join(10)
    assert not process.is_alive()


def test_small_pictures_are_compared_where_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_comparer.os, "sched_getaffinity", lambda _: set(range(16)))
    assert processes_for(160 * 90) == 0
    assert processes_for(1280 * 720) == MOST_PROCESSES
    monkeypatch.setattr(picture_comparer.os, "sched_getaffinity", lambda _: {0})
    assert processes_for(1280 * 720) == 1
