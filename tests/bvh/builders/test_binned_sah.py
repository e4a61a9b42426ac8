import numpy as np

from bvh.builders.binned_sah import BinnedSahConfig, build
from bvh.sah import sah_cost
from bvh.tree import check_tree, half_area


def _best_cut(bounds: np.ndarray) -> float:
    """Exhaustive: the cheapest first split over all axes and positions of the centroid order."""
    best = np.inf
    for axis in range(3):
        order = np.argsort(bounds[:, :, axis].sum(axis=1), kind="stable")
        for cut in range(1, len(order)):
            cost = 0.0
            for part in (order[:cut], order[cut:]):
                box = np.stack([bounds[part, 0].min(axis=0), bounds[part, 1].max(axis=0)])
                cost += float(half_area(box)) * len(part)
            best = min(best, cost)
    return best


def test_small_nodes_are_swept_exactly(rng: np.random.Generator) -> None:
    for count in (2, 3, 5, 9, 16):
        low = rng.random((count, 3))
        bounds = np.stack([low, low + rng.random((count, 3)) * 0.3], axis=1).astype(np.float32)
        tree = build(bounds, BinnedSahConfig())
        cost, sizes = 0.0, _leaf_counts(tree.children)
        for child in tree.children[0]:
            box = bounds[~child] if child < 0 else tree.bounds[child]
            cost += float(half_area(box)) * (1 if child < 0 else sizes[child])
        assert np.isclose(cost, _best_cut(bounds), rtol=1e-5)


def _leaf_counts(children: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(children), int)
    for node in range(len(children) - 1, -1, -1):  # children come after their parents
        for child in children[node]:
            counts[node] += 1 if child < 0 else counts[child]
    return counts


def test_chunks_change_nothing(rng: np.random.Generator) -> None:
    low = rng.random((3000, 3))
    bounds = np.stack([low, low + 0.01], axis=1).astype(np.float32)
    whole = build(bounds, BinnedSahConfig())
    parts = build(bounds, BinnedSahConfig(chunk_bins=64))
    assert (whole.children == parts.children).all()


def test_bins_follow_two_clusters() -> None:
    """Two clusters along y: the first cut falls between them."""
    low = np.zeros((64, 3))
    low[:, 1] = np.r_[np.linspace(0, 1, 40), np.linspace(50, 51, 24)]
    bounds = np.stack([low, low + 0.1], axis=1).astype(np.float32)
    tree = build(bounds, BinnedSahConfig())
    assert sorted(_leaf_counts(tree.children)[tree.children[0]].tolist()) == [24, 40]
    assert check_tree(tree, bounds) == []


def test_more_bins_do_not_hurt_much(rng: np.random.Generator) -> None:
    low = rng.random((2000, 3)) ** 2
    bounds = np.stack([low, low + 0.02 * rng.random((2000, 3))], axis=1).astype(np.float32)
    few = sah_cost(build(bounds, BinnedSahConfig(bins=8)), bounds)
    many = sah_cost(build(bounds, BinnedSahConfig(bins=32)), bounds)
    assert many < 1.03 * few
