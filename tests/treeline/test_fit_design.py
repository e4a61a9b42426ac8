"""Which runs are chosen, and what is known of a sum before anything is timed."""

import numpy as np
import pytest

from treeline.fit_design import (
    AIMED,
    check_sum,
    choose,
    decided_by_several,
    deciding_runs,
    leverages,
    scaled,
    weighed,
)

Rng = np.random.Generator


def test_runs_that_decide(rng: Rng) -> None:
    x = rng.uniform(1, 2, (12, 2))
    assert (deciding_runs(x) > 4).all()
    x[:, 1] = 0
    x[3, 1] = 5.0
    assert deciding_runs(x)[1] == pytest.approx(1.0, abs=0.3)  # one run alone has any
    x[3:6, 1] = 5.0
    assert 2.2 < deciding_runs(x)[1] < 6
    # What another column explains is no evidence: the rest of it decides, and of nothing nobody.
    x[:, 1] = 3 * x[:, 0]
    assert deciding_runs(x).tolist() == [0.0, 0.0]
    x[7, 1] *= 1.5
    assert deciding_runs(x)[1] == pytest.approx(1.2, abs=0.25)


def test_leverage_is_what_a_run_decides_of_its_own_prediction(rng: Rng) -> None:
    x = rng.uniform(1, 2, (10, 3))
    hat = x @ np.linalg.pinv(x)
    assert leverages(x) == pytest.approx(np.diag(hat))
    assert leverages(x * [1.0, 1e6, 1e-6]) == pytest.approx(np.diag(hat))  # whatever the units
    x[1:, 2] = 0
    assert leverages(x)[0] == pytest.approx(1.0)


def test_the_choice_is_better_than_any_other_by_one_exchange(rng: Rng) -> None:
    tables = [rng.uniform(0, 1, (20, 3)) ** 3, rng.uniform(0, 1, (20, 2)) ** 3]
    chosen = choose(tables, count=8, first=4)
    assert len(set(chosen)) == 8 and 4 in chosen and chosen == sorted(chosen)

    def volume(runs: list[int]) -> float:
        rows = [scaled(weighed(table))[runs] for table in tables]
        return float(sum(np.linalg.slogdet(r.T @ r)[1] for r in rows))

    best = volume(chosen)
    others = [i for i in range(20) if i not in chosen]
    exchanged = [[*(set(chosen) - {old}), new] for old in chosen if old != 4 for new in others]
    assert all(volume(runs) < best + 0.02 for runs in exchanged)
    drawn = [[4, *rng.choice(np.delete(np.arange(20), 4), 7, False).tolist()] for _ in range(50)]
    assert all(volume(runs) < best for runs in drawn)


def test_a_rare_count_gets_several_runs(rng: Rng) -> None:
    """Six of forty candidates have any-hit calls: by chance two or three of eighteen would."""
    x = rng.uniform(1, 2, (40, 2)) * rng.choice([1.0, 10.0], (40, 1))
    x[:, 1] = 0
    x[[5, 11, 17, 23, 29, 35], 1] = rng.uniform(1, 2, 6)
    chosen = choose([x])
    assert len(chosen) == 18 and {5, 11, 17, 23, 29, 35} <= set(chosen)
    found = check_sum("shadow", ("rays", "calls"), x[chosen])
    assert found.rank == 2 and min(found.deciding) > 3 and found.leverage < 0.9


def test_what_no_candidate_tells_is_known_before(rng: Rng) -> None:
    x = rng.uniform(1, 2, (12, 3))
    x[:, 2] = x[:, 0] + x[:, 1]
    found = check_sum("shade", ("hits", "misses", "rays"), x)
    assert found.rank == 2 and found.deciding == (0.0, 0.0, 0.0)
    x[:, 2] = 0
    found = check_sum("shade", ("hits", "misses", "rays"), x)
    assert found.rank == 2 and found.deciding[2] == 0 and found.deciding[0] > 3
    assert found.facts()["deciding_runs"]["rays"] == 0


def test_few_candidates_are_all_taken(rng: Rng) -> None:
    assert choose([rng.uniform(1, 2, (5, 2))], count=8) == [0, 1, 2, 3, 4]


def test_what_an_extreme_run_decides_is_spread_over_several(rng: Rng) -> None:
    """One candidate has much of a count, others a part of that."""
    x = rng.uniform(1, 2, (40, 3))
    x[:, 2] = 0.5 * x[:, 1] + rng.uniform(0, 0.01, 40)
    x[7, 2] += 1.0
    x[30:, 2] += 0.2
    other = rng.uniform(1, 2, (40, 2))
    volumes, fewest = [], []
    chosen = choose([x, other], count=12, first=3)
    spread = decided_by_several([x, other], chosen, first=3)
    for runs in (chosen, spread):
        rows = scaled(weighed(x))[runs]
        volumes.append(np.linalg.slogdet(rows.T @ rows)[1])
        fewest.append(min(deciding_runs(weighed(table[runs])).min() for table in (x, other)))
    assert fewest[0] < 2.5 and fewest[1] >= AIMED
    assert len(set(spread)) == 12 and 3 in spread and spread == sorted(spread)
    assert volumes[0] >= volumes[1] > volumes[0] - 2.0  # what is told hardly suffers
    # The first one stays, even where it is the extreme.
    assert 7 in chosen and 7 not in spread
    assert 7 in decided_by_several([x, other], chosen, first=7)
    # Where enough decide, nothing is exchanged; nor where nothing can be told.
    assert decided_by_several([x, other], spread, first=3) == spread
    x[:, 2] = 2 * x[:, 1]
    assert decided_by_several([x[:, 1:]], chosen, first=3) == chosen
