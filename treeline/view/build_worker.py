"""Builds the structures of one scene in a process of its own, so that the window never waits.

A thread here talks to the process, which keeps the scene and its own device. One build runs at a
time; a request for another one ends the process in the middle of its work and starts a new one,
which costs about a second and nothing else.
"""

import multiprocessing
import os
import queue
import signal
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bvh.blas import BuildOptions
from bvh.blas_cache import BlasCache
from bvh.gpu.blas_builder import refusal
from engine.gpu.device import open_device
from treeline import structures
from treeline.structures import Structure
from treeline.view.array_file import read_value, write_value
from treeline.view.view_error import ViewError, view_error

NICENESS = 10  # the window and its frames come first


@dataclass(frozen=True, slots=True)
class StructureKey:
    """What decides the bytes of a scene's structure."""

    build: BuildOptions
    group: str


@dataclass(frozen=True, slots=True)
class Built:
    """The answer to a request: one of `structure` and `error` is there."""

    key: StructureKey
    structure: Structure | None
    error: ViewError | None = None


class BuildWorker:
    """`request`, then `poll` until there is an answer. `adapter` names the device to build on as
    `open_device` takes it (None: on the CPU); `cached` uses the user's cache of BLASes."""

    def __init__(self, scene: Any, adapter: str | None, *, cached: bool = True) -> None:
        self._scene = scene
        self._adapter = adapter
        self._cached = cached
        self._folder = tempfile.TemporaryDirectory(prefix="treeline-build-")
        self._answers: queue.SimpleQueue[tuple[int, Built]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._number = 0  # of the newest request; answers to older ones are dropped
        self.wanted: StructureKey | None = None
        self.progress = ""

    def request(self, key: StructureKey) -> None:
        """Builds this next, instead of what is being built; nothing changes if it is this one."""
        if key == self.wanted:
            return
        if self.wanted is not None:
            self.cancel()
        self.wanted, self.progress = key, "starting"
        self._number += 1
        threading.Thread(target=self._serve, args=(self._number, key), daemon=True).start()

    def poll(self) -> Built | None:
        """The newest request's answer, once; never waits."""
        while True:
            try:
                number, built = self._answers.get_nowait()
            except queue.Empty:
                return None
            if number == self._number:
                self.wanted = None
                return built

    def cancel(self) -> None:
        """Ends the build that runs, if one does."""
        self._number += 1
        self.wanted = None
        with self._lock:
            process, self._process = self._process, None
            self._pipe = None
        if process is not None:
            process.kill()

    def close(self) -> None:
        self.cancel()
        self._folder.cleanup()

    def _serve(self, number: int, key: StructureKey) -> None:
        """One request from begin to end, in a thread."""
        try:
            pipe = self._open(number)
            if pipe is None:
                return
            pipe.send((number, key))
            while True:
                kind, content = pipe.recv()
                if number != self._number:
                    return
                if kind == "progress":
                    self.progress = content
                    continue
                if kind == "error":
                    answer = Built(key, None, content)
                else:
                    answer = Built(key, read_value(Path(content)))
                    Path(content).unlink()
                break
        except Exception as error:
            if number != self._number:
                return  # cancelled: the process was ended
            self._process = self._pipe = None
            detail = f": {error}" if str(error) else ""
            answer = Built(
                key, None, ViewError(f"the build ended without a result{detail}", "fault")
            )
        self._answers.put((number, answer))

    def _open(self, number: int) -> Connection | None:
        """A pipe to the process, which is started if there is none; None where the request was
        cancelled in the meantime."""
        with self._lock:
            if self._pipe is not None or number != self._number:
                return self._pipe
        folder = Path(self._folder.name)
        scene = folder / "scene"
        if not scene.exists():
            write_value(folder / "scene.part", self._scene)
            (folder / "scene.part").rename(scene)
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, str(folder), self._adapter, self._cached), daemon=True
        )
        with self._lock:
            if number != self._number:
                return None
            process.start()
            theirs.close()
            self._process, self._pipe = process, ours
        return ours


def serve(pipe: Connection, folder: str, adapter: str | None, cached: bool) -> None:
    """The process: answers requests until the other side goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the window's
    os.nice(NICENESS)
    scene = read_value(Path(folder) / "scene")
    device: Any = None
    try:
        while True:
            number, key = pipe.recv()
            try:
                if device is None and adapter is not None and not refusal(key.build):
                    device = open_device(adapter)
                structure = build(scene, key, device, cached, lambda t: pipe.send(("progress", t)))
                path = Path(folder) / f"structure-{number}"
                write_value(path, structure)
            except Exception as error:
                pipe.send(("error", view_error(error)))
            else:
                pipe.send(("done", str(path)))
    except (EOFError, BrokenPipeError):
        return


def build(
    scene: Any,
    key: StructureKey,
    device: Any,
    cached: bool,
    told: Callable[[str], None] = lambda text: None,
) -> Structure:
    """The structure, on the `device` where there is one and the options allow it."""
    return structures.build(
        scene,
        key.build,
        key.group,
        device=None if refusal(key.build) else device,
        cache=BlasCache() if cached else None,
        progress=_Told(told),
        or_cpu=True,
    )


class _Told:
    """Progress as one text at a time."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self._text, self._total, self._done = "", 1, 0

    def begin(self, text: str, total: int = 1) -> None:
        self._text, self._total, self._done = text, total, 0
        self._told(text)

    def advance(self, detail: str = "") -> None:
        self._done += 1
        self._told(f"{self._text}: {self._done} of {self._total}, {detail}")
