"""The fuzzer: a short run of it, and that it would notice what it is there to notice.

`treeline bench fuzz` makes the long runs; these are its first 2,000 mutations.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bvh import oracle
from bvh.build import BuildOptions
from bvh.fuzz import check, gpu_check
from bvh.fuzz.check import Tally, mutation_of
from bvh.fuzz.damage import Mutation
from bvh.fuzz.mutations import KINDS, SORTS, apply, undo
from bvh.fuzz.subjects import Subject, make_subject
from bvh.header import HEADER
from bvh.validate import validate
from treeline.cli.console import Steps
from treeline.fuzz import fuzz, record, subjects_of


@pytest.fixture(scope="module")
def subjects() -> list[Subject]:
    return subjects_of(1)


@pytest.mark.timeout(400)
def test_two_thousand_mutations() -> None:
    result = fuzz(1, 2000, 0, None, None, Steps(None, True))
    assert result.broken == []
    cpu = record(result, None)["cpu"]
    assert cpu["mutations"] == 2000
    assert cpu["named_by_validate"] == cpu["structural"] > 1500
    assert cpu["harmless"] > 300
    assert min(cpu["kinds"].values()) > 200 and set(cpu["kinds"]) == set(KINDS)
    # Errors and wrong answers on refused buffers both occur; most damage is not met by a ray.
    assert cpu["traversals"]["error"] > 100
    assert cpu["traversals"]["different"] > 50


@pytest.mark.timeout(240)
def test_gpu_ends_by_its_caps(device: Any, subjects: list[Subject]) -> None:
    result = gpu_check.run_gpu(device, subjects, 1, 0, 60)
    assert result.tally.broken == []
    assert result.tally.mutations == 60
    assert sum(result.failures.values()) > 3


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("sort", "failure"),
    [
        ("self", "a stack overflowed|the step limit ran out"),
        ("past the end", "a node pointer left the buffer"),
        ("7", "an unknown node type was met"),
    ],
)
def test_gpu_names_what_ended_it(
    device: Any, subjects: list[Subject], sort: str, failure: str
) -> None:
    """Damage to the root, which every ray reads."""
    subject = subjects[0]
    blas = subject.containers[1]
    root = int(blas.node_word[0])
    child = int(subject.words[root])
    value = {"self": 0x15, "past the end": 0x0FFFFFFD, "7": child | 7}[sort]
    edits = tuple((0, root + slot, value) for slot in range(4))
    mutation = Mutation("pointer", sort, True, edits, root)
    before = apply(subject, mutation)
    try:
        assert validate(subject.scene)
        trace = gpu_check.GpuSubject(device, subject).trace(mutation, before, np.arange(64))
    finally:
        undo(subject, before)
    assert trace.failures and set(trace.failures) <= set(failure.split("|"))


def test_subjects_are_large_valid_and_varied(subjects: list[Subject]) -> None:
    for subject in subjects:
        assert subject.node_count >= 1000
        assert validate(subject.scene) == []
        assert np.isfinite(subject.expected).mean() > 0.5
        assert len(subject.visits) > 400  # records that some ray reads
    assert {s.scene.options.nodes for s in subjects} == {"auto", "fp16", "fp32"}
    assert max(len(s.scene.instances) for s in subjects) >= 10
    assert any(s.containers[1].node_half.any() for s in subjects)


def test_runs_repeat_and_leave_no_damage(subjects: list[Subject]) -> None:
    before = [s.words.copy() for s in subjects]
    first = check.run(subjects, 7, 0, 40)
    again = check.run(subjects, 7, 0, 40)
    assert first.sorts == again.sorts and first.traversals == again.traversals
    parts = Tally()
    for start in (0, 13, 26, 39):
        parts.add(check.run(subjects, 7, start, min(13, 40 - start)))
    assert parts.sorts == first.sorts and parts.rays == first.rays
    assert all(np.array_equal(a, s.words) for a, s in zip(before, subjects, strict=True))
    assert check.run(subjects, 8, 0, 40).sorts != first.sorts


@pytest.mark.parametrize("kind", KINDS)
def test_every_sort_of_every_kind(
    kind: str, subjects: list[Subject], rng: np.random.Generator
) -> None:
    """Each sort is made, changes what it says, and `validate` agrees with its label."""
    for sort in SORTS[kind]:
        made = 0
        for attempt in range(60):
            subject = subjects[attempt % len(subjects)]
            mutation = sort(subject, rng)
            buffers = (subject.words, subject.parents)
            if mutation is None or all(int(buffers[b][i]) == v for b, i, v in mutation.edits):
                continue
            assert mutation.kind == kind
            before = apply(subject, mutation)
            assert bool(validate(subject.scene)) == mutation.structural, str(mutation)
            undo(subject, before)
            made += 1
            if made == 4:
                break
        assert made == 4, sort.__name__


def broken_by(subjects: list[Subject], count: int = 25) -> list[str]:
    return check.run(subjects, 3, 0, count).broken


def test_silence_of_validate_is_noticed(
    subjects: list[Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "validate", lambda scene: [])
    broken = broken_by(subjects, 100)
    assert any("validate named nothing" in text for text in broken)
    told = ("the oracle says", "a ray met a cap", "where brute force finds")
    assert any(text in line for line in broken for text in told)


def test_false_alarms_of_validate_are_noticed(
    subjects: list[Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "validate", lambda scene: ["a fault"])
    assert any("harmless, but validate says a fault" in text for text in broken_by(subjects))


def raise_index_error(*args: object, **options: object) -> Any:
    raise IndexError("out of bounds")


def never_end(*args: object, **options: object) -> Any:
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("fault", [raise_index_error, never_end])
@pytest.mark.parametrize("reader", ["validate", "oracle"])
def test_crashes_and_hangs_are_noticed(
    subjects: list[Subject],
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[..., Any],
    reader: str,
) -> None:
    if reader == "validate":
        monkeypatch.setattr(check, "TIME_LIMIT", 0.05)
        monkeypatch.setattr(check, "validate", fault)
    else:
        # `validate` reads the buffer first, and on a busy machine takes its time.
        monkeypatch.setattr(check, "TIME_LIMIT", 1.0)
        monkeypatch.setattr(oracle, "trace", fault)
    broken = broken_by(subjects, 2)
    assert len(broken) == 2
    assert all("raised" in text and reader in text for text in broken)


def test_wrong_hits_are_noticed(subjects: list[Subject], monkeypatch: pytest.MonkeyPatch) -> None:
    real = oracle.trace

    def off(*args: Any, **options: Any) -> Any:
        result = real(*args, **options)
        return replace(result, t=result.t * np.float32(1.01))

    monkeypatch.setattr(oracle, "trace", off)
    assert any("where brute force finds" in text for text in broken_by(subjects))


def test_moved_vertices_are_crossed_anew(subjects: list[Subject]) -> None:
    """Brute force over the damaged bytes: all triangles again, against the quick way."""
    seen = 0
    for index in range(400):
        subject, mutation = mutation_of(subjects, 6, index)
        if mutation.moved is None:
            continue
        before = apply(subject, mutation)
        expected, sure = check.expected_t(subject, mutation)
        every = subject.cross(np.arange(len(subject.instance_words)), subject.rays, None)
        undo(subject, before)
        t = np.full(len(subject.rays), np.inf)
        np.minimum.at(t, every.inside().ray, every.inside().t)
        assert np.allclose(t[sure], expected[sure], rtol=1e-9)
        seen += not np.allclose(t, subject.expected, rtol=1e-6)
    assert seen >= 1


def test_validate_names_wrong_counts_in_the_tlas_header(subjects: list[Subject]) -> None:
    for name, message in (
        ("primitive_count", "instances"),
        ("geometry_count", "geometries"),
    ):
        subject = subjects[1]
        at = HEADER.offsets[name] // 4
        subject.words[at] += 1
        faults = validate(subject.scene)
        subject.words[at] -= 1
        assert [f.container for f in faults] == ["TLAS"] and message in faults[0].message


def test_a_subject_whose_truth_is_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = oracle.trace

    def off(*args: Any, **options: Any) -> Any:
        result = real(*args, **options)
        return replace(result, t=result.t + np.float32(0.5))

    monkeypatch.setattr(oracle, "trace", off)
    with pytest.raises(AssertionError, match="differ"):
        make_subject(np.random.default_rng(1), "small", BuildOptions(reinsertion=0), 1, 1)


@pytest.mark.parametrize("children", [1, 4])
def test_oracle_leaves_a_circle_soon(subjects: list[Subject], children: int) -> None:
    """A root that is its own child, in boxes that every ray enters: with the default limits."""
    subject = subjects[0]
    words = subject.words.copy()
    root = int(subject.containers[1].node_word[0])
    words[root : root + 4] = 0xFFFFFFFF
    words[root : root + children] = 0x15
    boxes = words[root + 4 : root + 28].view(np.float32).reshape(4, 2, 3)
    boxes[:, 0], boxes[:, 1] = -1e3, 1e3
    started = time.perf_counter()
    result = oracle.trace(words, subject.rays[:100], workers=1)
    assert time.perf_counter() - started < 20  # about 1 on an idle core; 20 to 36 by step limit
    assert result.counters.nodes.max() <= len(words) // 16 + 10
    lost = result.overflows > 0
    assert lost.mean() > 0.8 and not result.missed[lost].any()
