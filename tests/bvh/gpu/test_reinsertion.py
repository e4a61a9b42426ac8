from typing import Any

import numpy as np
import pytest

from bvh.builders import binned_sah, lbvh
from bvh.gpu.build_records import BUILD_STATE, box_buffers, write_boxes
from bvh.gpu.reinsertion import GpuReinsertion
from bvh.gpu.reinsertion_records import (
    ACCEPTED,
    CANDIDATES,
    LEVEL_SLOTS,
    LEVELS,
    PROGRESS,
    REJECTED,
    STARTS,
    place,
)
from bvh.gpu.reinsertion_stages import END, MARK, MOVE, START
from bvh.transforms.reinsertion import (
    DTYPES,
    ReinsertionConfig,
    make_buffers,
    reinsert,
    round_parameters,
    run_round,
    run_twin,
)
from bvh.tree import MAX_DEPTH, Tree, check_tree, fit_bounds, half_area, tree_levels
from engine.gpu.errors import LimitError
from engine.gpu.stage import submit_pass

CAPACITY = 6000
CONFIG = ReinsertionConfig(rounds=8, batch=256)


@pytest.fixture(scope="module")
def optimiser(device: Any) -> GpuReinsertion:
    """For the whole file: every use after the first finds dirty scratch."""
    return GpuReinsertion(device, CAPACITY, CONFIG)


def _boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.random((count, 3))
    size = 10.0 ** rng.uniform(-3, -0.5, (count, 1)) * rng.random((count, 3))
    return np.stack([low, low + size], axis=1).astype(np.float32)


def _tree_buffers(item: GpuReinsertion, tree: Tree, bounds: np.ndarray) -> dict[str, Any]:
    device = item.device
    buffers = box_buffers(device, item.capacity)
    write_boxes(device, buffers, bounds)
    nodes = max(item.capacity - 1, 1)
    for name, size, array in (("children", 8, tree.children), ("bounds", 24, tree.bounds)):
        buffers[name] = device.buffer(name, size * nodes)
        device.write(buffers[name], array)
    return buffers


def _read(item: GpuReinsertion, buffers: dict[str, Any], count: int) -> Tree:
    children = item.device.read(buffers["children"], np.int32, count=2 * count)
    bounds = item.device.read(buffers["bounds"], np.float32, count=6 * count)
    return Tree(children.reshape(-1, 2), bounds.reshape(-1, 2, 3))


def _optimise(item: GpuReinsertion, tree: Tree, bounds: np.ndarray) -> Tree:
    buffers = _tree_buffers(item, tree, bounds)
    submit_pass(item.device, lambda scope: item.encode(scope, buffers))
    return _read(item, buffers, len(tree.children))


def _cost(tree: Tree) -> float:
    return float(half_area(tree.bounds).sum())


def progress_of(optimiser: GpuReinsertion) -> Any:
    """The PROGRESS record after the last submission."""
    return optimiser.device.read(optimiser.resources["progress"], PROGRESS.dtype, count=1)[0]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 257, CAPACITY])
def test_the_tree_is_the_cpus(optimiser: GpuReinsertion, rng: Any, count: int) -> None:
    bounds = _boxes(rng, count)
    tree = lbvh.build(bounds, lbvh.LbvhConfig())
    got = _optimise(optimiser, tree, bounds)
    expected = reinsert(tree, bounds, CONFIG)
    assert (got.children == expected.children).all()
    assert (got.bounds == expected.bounds).all()
    assert check_tree(got, bounds) == []
    if count >= 257:
        assert _cost(got) < 0.98 * _cost(tree)
        assert progress_of(optimiser)["moves"] > 20


def test_no_primitive(optimiser: GpuReinsertion) -> None:
    tree = lbvh.build(np.zeros((0, 2, 3), np.float32), lbvh.LbvhConfig())
    got = _optimise(optimiser, tree, np.zeros((0, 2, 3), np.float32))
    assert (got.children == tree.children).all()


class Bench:
    """Runs stages one by one and compares each with its twin over the same buffers."""

    def __init__(self, item: GpuReinsertion, tree: Tree, bounds: np.ndarray) -> None:
        self.item = item
        self.buffers = {**item.resources, **_tree_buffers(item, tree, bounds)}
        self.nodes = max(item.capacity - 1, 1)
        self.kept = len(bounds)

    def arrays(self) -> dict[str, Any]:
        records = {"state": BUILD_STATE.dtype, "progress": PROGRESS.dtype}
        dtypes = {**DTYPES, "children": np.int32, "bounds": np.float32, "boxes": np.float32}
        return {
            name: self.item.device.read(buffer, records[name], count=1)
            if name in records
            else self.item.device.read(buffer, dtypes.get(name, np.uint32))
            for name, buffer in self.buffers.items()
        }

    def step(self, name: str, number: int, level: int = 0) -> None:
        parameters = round_parameters(self.item.capacity, self.item.config, number)
        parameters["level"] = level
        expected = self.arrays()
        expected["parameters"] = parameters
        run_twin(name, expected)
        gpu = self.buffers | {"parameters": self.item._rounds[number]}
        if name == "refit":
            gpu["parameters"] = self.item._levels[level]
        self.item.stages[name].run(gpu, self.item._groups[name])
        got = self.arrays()
        for key, array in got.items():
            self._compare(name, key, array, expected[key], got)

    def _compare(self, stage: str, key: str, got: Any, expected: Any, all_got: Any) -> None:
        where = f"{key} after {stage}"
        if stage == "select" and key == "candidates":
            count = int(all_got["tally"][CANDIDATES])
            got, expected = np.sort(got[:count]), np.sort(expected[:count])
        elif stage == "scatter" and key == "changed":
            starts = all_got["tally"][STARTS : STARTS + MAX_DEPTH + 2]
            for first, end in zip(starts[:-1], starts[1:], strict=True):
                assert (np.sort(got[first:end]) == np.sort(expected[first:end])).all(), where
            return
        assert (got == expected).all(), where

    def round(self, number: int) -> None:
        for name in (*(MOVE if number else START), *MARK):
            self.step(name, number)
        depth = int(np.flatnonzero(self.arrays()["tally"][LEVELS:STARTS]).max(initial=0))
        for level in range(depth + 1, -1, -1):
            self.step("refit", number, level)
        for name in END:
            self.step(name, number)


@pytest.mark.parametrize("count", [4, 777])
def test_stages_equal_their_twins(optimiser: GpuReinsertion, rng: Any, count: int) -> None:
    bounds = _boxes(rng, count)
    # Boxes given twice have moves of equal gain.
    bounds[count // 2 :] = bounds[: count - count // 2]
    bench = Bench(optimiser, lbvh.build(bounds, lbvh.LbvhConfig()), bounds)
    for number in range(3):
        bench.round(number)


def test_a_rejected_round_is_taken_back(optimiser: GpuReinsertion, rng: Any) -> None:
    bounds = _boxes(rng, 999)
    bench = Bench(optimiser, lbvh.build(bounds, lbvh.LbvhConfig()), bounds)
    bench.round(0)
    bench.round(1)
    before = bench.arrays()
    progress = before["progress"].copy()
    progress["cost"] = 1e-3  # nothing can be below it
    optimiser.device.write(bench.buffers["progress"], progress)
    bench.round(2)
    after = bench.arrays()
    assert after["progress"]["verdict"][0] == REJECTED
    assert not after["progress"]["done"][0] and after["progress"]["strikes"][0] == 1
    assert after["tally"][CANDIDATES] > 50 and after["progress"]["changed"][0] > 50
    for name in ("children", "bounds", "heights", "parents"):
        assert (before[name] == after[name]).all(), name
    for number in (3, 4, 5):
        bench.round(number)
    assert bench.arrays()["progress"]["done"][0]  # every share of the candidates was asked


@pytest.mark.parametrize(
    ("height", "deeper", "verdict"),
    [(MAX_DEPTH, 0, ACCEPTED), (MAX_DEPTH + 1, 0, REJECTED), (MAX_DEPTH, 1, REJECTED)],
)
def test_a_round_that_goes_too_deep_is_rejected(
    optimiser: GpuReinsertion, rng: Any, height: int, deeper: int, verdict: int
) -> None:
    """Moves are judged apart, and several may lengthen one path: the verdict sees the sum."""
    bounds = _boxes(rng, 50)
    bench = Bench(optimiser, lbvh.build(bounds, lbvh.LbvhConfig()), bounds)
    bench.round(0)
    arrays = bench.arrays()
    arrays["heights"][0] = height
    arrays["tally"][LEVELS + LEVEL_SLOTS - 1] = deeper
    arrays["progress"]["cost"] *= 2
    for name in ("heights", "tally", "progress"):
        optimiser.device.write(bench.buffers[name], arrays[name])
    bench.step("verdict", 1)
    assert bench.arrays()["progress"]["verdict"][0] == verdict


def test_rounds_after_the_last_gain_do_nothing(device: Any, rng: Any) -> None:
    bounds = _boxes(rng, 300)
    tree = lbvh.build(bounds, lbvh.LbvhConfig())
    long = GpuReinsertion(device, 300, ReinsertionConfig(rounds=60, batch=256))
    got = _optimise(long, tree, bounds)
    progress = progress_of(long)
    rounds = int(progress["rounds"] + 4)
    assert progress["done"] and 4 < rounds < 60
    short = reinsert(tree, bounds, ReinsertionConfig(rounds=rounds, batch=256))
    assert (got.children == short.children).all() and (got.bounds == short.bounds).all()


def test_same_input_same_tree(optimiser: GpuReinsertion, rng: Any) -> None:
    bounds = _boxes(rng, 4000)
    tree = binned_sah.build(bounds, binned_sah.BinnedSahConfig())
    trees = [_optimise(optimiser, tree, bounds) for _ in range(3)]
    for other in trees[1:]:
        assert (other.children == trees[0].children).all()


def _chain(count: int) -> np.ndarray:
    """Children of a tree with one leaf and one inner node a level."""
    inner = np.arange(count - 1, dtype=np.int32)
    children = np.stack([inner + 1, ~inner], axis=1)
    children[-1, 0] = ~np.int32(count - 1)
    return children.astype(np.int32)


@pytest.mark.parametrize("count", [MAX_DEPTH + 1, MAX_DEPTH + 2])
def test_deep_trees_get_no_deeper(optimiser: GpuReinsertion, rng: Any, count: int) -> None:
    """At the limit the optimiser may only make it shallower; past it the tree stays."""
    bounds = _boxes(rng, count)
    tree = fit_bounds(_chain(count), bounds)
    got = _optimise(optimiser, tree, bounds)
    assert check_tree(got, bounds) == []
    if count == MAX_DEPTH + 1:
        assert len(tree_levels(got.children)) <= MAX_DEPTH
        assert _cost(got) < _cost(tree)
    else:
        assert (got.children == tree.children).all() and (got.bounds == tree.bounds).all()


def test_moves_that_make_it_too_deep_are_refused(device: Any, rng: Any) -> None:
    bounds = _boxes(rng, 500)
    tree = lbvh.build(bounds, lbvh.LbvhConfig(max_depth=9))
    limit = len(tree_levels(tree.children))
    tight = GpuReinsertion(device, 500, ReinsertionConfig(rounds=8, batch=4000, max_depth=limit))
    got = _optimise(tight, tree, bounds)
    assert len(tree_levels(got.children)) <= limit
    assert _cost(got) < _cost(tree)
    free = reinsert(tree, bounds, ReinsertionConfig(rounds=8, batch=4000))
    assert len(tree_levels(free.children)) > limit


@pytest.mark.parametrize("kind", ["equal", "points", "flat", "line", "huge", "tiny", "far"])
def test_awkward_boxes(optimiser: GpuReinsertion, rng: Any, kind: str) -> None:
    bounds = _boxes(rng, 700)
    if kind == "equal":
        bounds[:] = bounds[0]
    elif kind == "points":
        bounds[:, 1] = bounds[:, 0]
    elif kind == "flat":
        bounds[:, :, 1] = 0.5
    elif kind == "line":
        bounds[:, :, 1:] = 0.5
    elif kind == "far":
        bounds += np.float32(1e5)
    else:
        bounds *= np.float32(1e38 if kind == "huge" else 1e-30)
    tree = lbvh.build(bounds, lbvh.LbvhConfig())
    got = _optimise(optimiser, tree, bounds)
    assert check_tree(got, bounds) == []
    expected = reinsert(tree, bounds, CONFIG)
    assert (got.children == expected.children).all()
    assert _cost(got) <= _cost(tree) * (1 + 1e-6)


def test_moves_close_no_cycle(device: Any, rng: Any) -> None:
    """All nodes at once over a tree of random pairs: many moves into subtrees that move too."""
    count = 1000
    bounds = _boxes(rng, count)
    roots = [~i for i in range(count)]
    children: list[tuple[int, int]] = []
    while len(roots) > 1:
        a, b = (roots.pop(rng.integers(len(roots))) for _ in range(2))
        children.append((a, b))
        roots.append(len(children) - 1)
    flipped = np.array(children[::-1], np.int32)
    flipped[flipped >= 0] = len(children) - 1 - flipped[flipped >= 0]
    tree = fit_bounds(flipped, bounds)
    config = ReinsertionConfig(rounds=12, batch=1 << 20, stride=1)
    got = _optimise(GpuReinsertion(device, count, config), tree, bounds)
    assert check_tree(got, bounds) == []
    assert _cost(got) < 0.6 * _cost(tree)
    buffers = make_buffers(tree, bounds)
    for number in (0, 1):
        run_round(buffers, config, number)
    moved = buffers["moves"].reshape(-1, 2)[: int(buffers["tally"][CANDIDATES])]
    assert (moved[:, 1] > 0).sum() > 30
    # Parents and children still name each other.
    pairs = buffers["children"].reshape(-1, 2)
    for side in (0, 1):
        parents = buffers["parents"][place(pairs[:, side], count - 1)]
        assert (parents == np.arange(count - 1)).all()


def test_moves_that_could_close_a_cycle_are_refused(optimiser: GpuReinsertion, rng: Any) -> None:
    """A full tree of 64 leaves, inner node i over 2 i + 1 and 2 i + 2; nodes 7 (leaves 0 to 7) and
    14 (leaves 56 to 63) move, each into the other."""
    heap = np.arange(1, 127, dtype=np.int32).reshape(-1, 2)
    children = np.where(heap < 63, heap, ~(heap - 63))
    bounds = _boxes(rng, 64)
    bench = Bench(optimiser, fit_bounds(children, bounds), bounds)
    bench.round(0)
    moves = [
        (7, ~56, False),
        (14, ~0, False),
        (~7, ~2, True),  # within what moves
        (~20, ~4, False),  # into it
        (~6, ~30, True),  # out of it
        (~5, ~60, False),  # from one into the other
        (~20, ~40, True),
    ]
    device = optimiser.device
    arrays = bench.arrays()
    arrays["moving"][[7, 14]] = 1
    arrays["tally"][CANDIDATES] = len(moves)
    arrays["candidates"][: len(moves)] = [node for node, _, _ in moves]
    rows = np.array([[target, 1] for _, target, _ in moves], np.int32).view(np.uint32)
    arrays["moves"][: 2 * len(moves)] = rows.reshape(-1)
    for name in ("moving", "tally", "candidates", "moves"):
        device.write(bench.buffers[name], arrays[name])
    bench.step("check", 1)
    left = bench.arrays()["moves"][1 : 2 * len(moves) : 2]
    assert left.tolist() == [allowed for _, _, allowed in moves]
    # What the refused pair would have done: a ring that the root does not reach.
    arrays["parameters"] = round_parameters(CAPACITY, CONFIG, 1)
    arrays["tally"][CANDIDATES] = 2
    run_twin("apply", arrays)
    reached = sum(len(level) for level in tree_levels(arrays["children"][:126].reshape(-1, 2)))
    assert reached < 63


def test_too_large_for_a_binding(device: Any) -> None:
    limit = device.limits["max-storage-buffer-binding-size"]
    with pytest.raises(LimitError, match="reinsertion/"):
        GpuReinsertion(device, limit // 8)
