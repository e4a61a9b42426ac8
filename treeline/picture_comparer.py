"""Pictures compared with one reference in processes of their own, while the GPU draws the next.

SSIM and FLIP take some seconds a megapixel, on one core, and hold Python's lock meanwhile: without
this most of the time of `treeline curve` on a fast GPU would be theirs.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Lock
from typing import Any, Self

from engine.gpu.errors import CheckFailed
from treeline.frame_error import FrameError
from treeline.image_error import F32, ImageError, image_error

MOST_PROCESSES = 8
# Pixels of a picture from which a process is worth its start of about a second.
WORTH_A_PROCESS = 200_000


def processes_for(pixels: int) -> int:
    """How many to use for pictures of so many pixels; 0: none, they are compared where they are
    drawn. One core is left to whoever draws."""
    if pixels < WORTH_A_PROCESS:
        return 0
    return max(1, min(MOST_PROCESSES, len(os.sched_getaffinity(0)) - 1))


class PictureComparer:
    """Compares with `reference` [height, width, 3], linear. `processes` as `processes_for` has them
    (None: by the reference's size). A context: leaving it ends what still compares."""

    def __init__(self, reference: F32, processes: int | None = None) -> None:
        height, width = reference.shape[:2]
        count = processes_for(width * height) if processes is None else processes
        self._reference = reference
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        self._processes = [_Process(reference) for _ in range(count)]
        for process in self._processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(count) if count else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.close()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def begin(self, drawn: Iterable[tuple[F32, float]]) -> Callable[[], FrameError]:
        """Takes pictures of one frame, each with its exposure, as they are drawn. What it gives
        waits for their errors. SSIM and FLIP are the first picture's alone. CheckFailed where a
        process ended."""
        pictures: list[F32] = []
        found: list[Future[ImageError]] = []
        for picture, exposure in drawn:
            found.append(self._submit(picture, exposure, not pictures))
            pictures.append(picture)
        return lambda: FrameError(tuple(pictures), tuple(future.result() for future in found))

    def _submit(self, picture: F32, exposure: float, perceptual: bool) -> "Future[ImageError]":
        if self._threads is not None:
            return self._threads.submit(self._ask, picture, exposure, perceptual)
        done: Future[ImageError] = Future()
        done.set_result(image_error(picture, self._reference, exposure, perceptual=perceptual))
        return done

    def _ask(self, picture: F32, exposure: float, perceptual: bool) -> ImageError:
        process = self._idle.get()
        try:
            return process.compare(picture, exposure, perceptual)
        finally:
            self._idle.put(process)


class _Process:
    """One of them, started when it is first needed."""

    def __init__(self, reference: F32) -> None:
        self._reference = reference
        self._process: Any = None
        self._pipe: Connection | None = None
        self._closed = False
        self._lock = Lock()

    def compare(self, picture: F32, exposure: float, perceptual: bool) -> ImageError:
        pipe = self._open()
        try:
            pipe.send((picture, exposure, perceptual))
            found: ImageError = pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join()
            code = self._process.exitcode
            raise CheckFailed(
                f"a process that compares pictures ended, exit code {code}"
            ) from error
        return found

    def _open(self) -> Connection:
        with self._lock:
            if self._closed:
                raise CheckFailed("nobody waits for this comparison any more")
            if self._pipe is None:
                context = multiprocessing.get_context("spawn")
                pipe, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(theirs, self._reference), daemon=True
                )
                process.start()
                theirs.close()
                self._pipe, self._process = pipe, process  # only of one that runs
            return self._pipe

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()


def _serve(pipe: Connection, reference: F32) -> None:
    """A process: compares what it is sent until nobody is there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    try:
        while True:
            picture, exposure, perceptual = pipe.recv()
            pipe.send(image_error(picture, reference, exposure, perceptual=perceptual))
    except (EOFError, ConnectionError):  # reset: where it left without reading an answer
        pass
