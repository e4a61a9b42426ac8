"""Where the cases of a sweep are measured: a process an adapter on this machine, or the workers of
a Dask cluster.

Both yield (job, answer) as cases end; an answer is what `treeline.sweep_case.attempt` gives, or the
`error` of a process that ended. Leaving the loop ends what still runs.
"""

import logging
import multiprocessing
import queue
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing.connection import Connection
from typing import Any

from engine.gpu.errors import UserError
from treeline.sweep import Job
from treeline.sweep_case import adapter_name, attempt

Answer = dict[str, Any]
CONNECT_S = 10  # to a scheduler
SCHEDULER_PORT = 8786  # where an address names none
# One process starts at a time: a forked one would keep the ends of pipes that are being handed to
# another, whose end would then not be noticed.
_STARTING = threading.Lock()


def _serve(pipe: Connection) -> None:
    """A process of this machine: measures what it is sent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    try:
        while True:
            pipe.send(attempt(pipe.recv()))
    except (EOFError, BrokenPipeError):
        pass  # nobody is there any more


class _Adapter:
    """The jobs of one adapter, in a process of their own; in a new one after it has ended."""

    def __init__(self, jobs: Sequence[Job], answers: "queue.SimpleQueue[tuple[Job, Answer]]"):
        self._jobs, self._answers = jobs, answers
        self._process: Any = None
        self._pipe: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()
        threading.Thread(target=self._run, daemon=True).start()

    def _open(self) -> Connection | None:
        """The pipe to a process that lives; None once closed."""
        with self._lock:
            if self._closed:
                return None
            if self._pipe is None:
                context = multiprocessing.get_context("spawn")
                with _STARTING:
                    self._pipe, theirs = context.Pipe()
                    self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
                    self._process.start()
                    theirs.close()
            return self._pipe

    def _run(self) -> None:
        for job in self._jobs:
            pipe = self._open()
            if pipe is None:
                return
            try:
                pipe.send(job)
                answer = pipe.recv()
            except (EOFError, OSError):
                self._process.join()
                self._pipe = None
                answer = {"error": f"its process ended, exit code {self._process.exitcode}"}
            self._answers.put((job, answer))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()


def on_this_machine(jobs: Sequence[Job]) -> Iterator[tuple[Job, Answer]]:
    """Adapters at the same time, the cases of each one after the other, in their order."""
    answers: queue.SimpleQueue[tuple[Job, Answer]] = queue.SimpleQueue()
    by_adapter = groupby(sorted(jobs, key=lambda job: job.device), key=lambda job: job.device)
    adapters = [_Adapter(list(mine), answers) for _, mine in by_adapter]
    try:
        for _ in jobs:
            yield answers.get()
    finally:
        for adapter in adapters:
            adapter.close()


class Cluster:
    """The workers of a Dask scheduler at `address`. They need this program, the scenes at the same
    paths, and one adapter for each name that a sweep asks for. UserError where Dask is not
    installed, nobody answers, or there is no worker."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
            from distributed.comm.addressing import parse_address, parse_host_port
        except ImportError as error:
            raise UserError(
                "--scheduler needs Dask, which is not installed: pip install 'treeline[cluster]'"
            ) from error
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            # First by hand: a client that never connected complains when it is dropped.
            host = parse_host_port(parse_address(address)[1], SCHEDULER_PORT)
            socket.create_connection(host, timeout=CONNECT_S).close()
            self.client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UserError(f"no Dask scheduler answers at {address}") from error
        if not self.client.scheduler_info()["workers"]:
            self.close()
            raise UserError(f"the Dask scheduler at {address} has no workers")

    def adapter_name(self, asked: str | None) -> str:
        """That of every worker. UserError where they have different ones."""
        names = sorted(set(self.client.run(adapter_name, asked).values()))
        if len(names) > 1:
            raise UserError(
                f"the cluster's workers have different adapters: {'; '.join(names)}: name one "
                "that all have with --adapter"
            )
        return str(names[0])

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Answer]]:
        """As workers become free."""
        from distributed import as_completed

        futures = {self.client.submit(attempt, job, pure=False): job for job in jobs}
        for future in as_completed(futures, loop=self.client.loop):
            error = future.exception() if future.status != "finished" else None
            answer = future.result() if error is None else {"error": _ended(error)}
            yield futures[future], answer

    def close(self) -> None:
        """Cases that still run are given up."""
        self.client.close()


def _ended(error: Any) -> str:
    return " ".join(f"its worker ended: {type(error).__name__}: {error}".split())
