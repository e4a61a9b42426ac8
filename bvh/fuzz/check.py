"""What validate and the oracle make of damaged buffers, mutation by mutation.

Demanded of each: every structural mutation is named by `validate` and no harmless one is; neither
raises anything but UserError nor runs past TIME_LIMIT; and where `validate` names nothing, the
oracle reports no error and finds what brute force finds over the decoded triangles. On buffers
that `validate` refuses the oracle's answer is only counted: an error, the true one, or another.
"""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import numpy as np
from numpy.typing import NDArray

from bvh import oracle
from bvh.fuzz.crossings import EDGE_MARGIN, nearest, same_t
from bvh.fuzz.damage import Mutation
from bvh.fuzz.mutations import apply, mutate, undo
from bvh.fuzz.subjects import Subject
from bvh.validate import validate
from engine.gpu.errors import UserError

TIME_LIMIT = 10.0  # seconds a reader may take for one buffer; a sound one takes 0.02
RAYS = 8  # a mutation: those that read the damaged record and meet few nodes first
STEP_LIMIT = 600  # nodes a ray may visit; undamaged, none of them visits a third of that


class Hang(Exception):
    """A reader ran past TIME_LIMIT."""


@dataclass(slots=True)
class Tally:
    """Counts of a run. `broken` are the demands that were not met, one line each."""

    mutations: int = 0
    structural: int = 0
    named: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    sorts: Counter[str] = field(default_factory=Counter)
    traversals: Counter[str] = field(default_factory=Counter)  # error, equal, different
    slowest_validate_ms: float = 0.0
    slowest_trace_ms: float = 0.0
    rays: int = 0
    broken: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Takes another run's counts in."""
        self.mutations += other.mutations
        self.structural += other.structural
        self.named += other.named
        self.kinds += other.kinds
        self.sorts += other.sorts
        self.traversals += other.traversals
        self.slowest_validate_ms = max(self.slowest_validate_ms, other.slowest_validate_ms)
        self.slowest_trace_ms = max(self.slowest_trace_ms, other.slowest_trace_ms)
        self.rays += other.rays
        self.broken += other.broken


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises Hang in the body after so long; without effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def mutation_of(subjects: list[Subject], seed: int, index: int) -> tuple[Subject, Mutation]:
    """Mutation number `index` of a run, always the same one."""
    subject = subjects[index % len(subjects)]
    return subject, mutate(subject, np.random.default_rng([seed, 1, index]))


def run(subjects: list[Subject], seed: int, first: int, count: int) -> Tally:
    """Mutations `first` to `first + count` through validate and the oracle."""
    tally = Tally()
    for index in range(first, first + count):
        subject, mutation = mutation_of(subjects, seed, index)
        before = apply(subject, mutation)
        try:
            for text in check(subject, mutation, tally):
                tally.broken.append(f"mutation {index} of '{subject.name}', {mutation}: {text}")
        finally:
            undo(subject, before)
    return tally


def check(subject: Subject, mutation: Mutation, tally: Tally) -> list[str]:
    """What is wrong with how the damaged `subject` is read; counts into `tally`."""
    tally.mutations += 1
    tally.structural += mutation.structural
    tally.kinds[mutation.kind] += 1
    tally.sorts[f"{mutation.kind}/{mutation.sort}"] += 1
    broken = []
    started = time.perf_counter()
    try:
        with time_limit(TIME_LIMIT):
            faults = validate(subject.scene)
    except (Exception, Hang) as error:
        return [f"validate raised {type(error).__name__}: {error}"]
    finally:
        spent = 1e3 * (time.perf_counter() - started)
        tally.slowest_validate_ms = max(tally.slowest_validate_ms, spent)
    if mutation.structural and not faults:
        broken.append("validate named nothing")
    if not mutation.structural and faults:
        broken.append(f"harmless, but validate says {faults[0]}")
    tally.named += mutation.structural and bool(faults)

    chosen = rays_for(subject, mutation)
    expected, sure = expected_t(subject, mutation, chosen)
    started = time.perf_counter()
    try:
        with time_limit(TIME_LIMIT):
            result = oracle.trace(
                subject.words, subject.rays[chosen], step_limit=STEP_LIMIT, workers=1
            )
    except UserError as error:
        tally.traversals["error"] += 1
        return [*broken, *([] if faults else [f"sound, but the oracle says {error}"])]
    except (Exception, Hang) as error:
        return [*broken, f"the oracle raised {type(error).__name__}: {error}"]
    finally:
        spent = 1e3 * (time.perf_counter() - started)
        tally.slowest_trace_ms = max(tally.slowest_trace_ms, spent)
    tally.rays += len(chosen)
    broken += judge(subject, tally, faults != [], result.t, result.overflows > 0, expected, sure)
    return broken


def judge(
    subject: Subject,
    tally: Tally,
    refused: bool,
    t: NDArray[np.float32],
    failed: NDArray[np.bool_],
    expected: NDArray[np.float64],
    sure: NDArray[np.bool_],
) -> list[str]:
    """Counts a traversal and holds it against brute force where `validate` refuses nothing."""
    if failed.any():
        tally.traversals["error"] += 1
        return [] if refused else ["sound, but a ray met a cap"]
    wrong = np.flatnonzero(~same_t(t, expected, subject.size) & sure)
    tally.traversals["different" if len(wrong) else "equal"] += 1
    if len(wrong) and not refused:
        i = int(wrong[0])
        return [f"no error, but t = {t[i]} where brute force finds {expected[i]}"]
    return []


def rays_for(subject: Subject, mutation: Mutation, count: int = RAYS) -> NDArray[np.int64]:
    """`count` rays for one mutation: of those that read the damaged record as many as there are,
    then others."""
    reading = subject.visits.get(mutation.focus, np.zeros(0, np.int64))[:count]
    rest = subject.quick[len(subject.quick) // 4 :][: 2 * count]
    rest = rest[~np.isin(rest, reading)]
    return np.concatenate([reading, rest[: count - len(reading)]]).astype(np.int64)


def expected_t(
    subject: Subject, mutation: Mutation, chosen: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(t, whether that is sure) of the chosen rays by brute force over the triangles that the
    damaged buffer holds. Where a vertex moved, its block is crossed anew; all other triangles are
    what they were, so their crossings are too."""
    rays = subject.rays if chosen is None else subject.rays[chosen]
    sure = np.ones(len(rays), np.bool_)
    if mutation.moved is None:
        expected = subject.expected if chosen is None else subject.expected[chosen]
        return expected, sure
    number, block = mutation.moved
    container = subject.containers[number]
    assert container.rows is not None
    which = subject.instances_of(container)
    rows = np.flatnonzero(container.rows.block == block)
    fresh = subject.cross(which, rays, rows)
    sure[fresh.ray[np.abs(fresh.margin) < EDGE_MARGIN]] = False
    old = subject.crossings
    kept = old.where(~(np.isin(old.instance, which) & np.isin(old.row, rows)))
    t = nearest(kept, len(subject.rays))
    t = t if chosen is None else t[chosen]
    return np.minimum(t, nearest(fresh.inside(), len(rays))), sure
