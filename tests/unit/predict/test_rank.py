from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from kernelab.predict.rank import agreement, regret_pct, spearman


def test_ranks_alone_count() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 25, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3]))


def test_ties_are_scipys() -> None:
    random = np.random.default_rng(0)
    first, second = random.integers(0, 6, 40), random.integers(0, 6, 40)
    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)


def test_the_interval_holds_the_correlation_and_narrows() -> None:
    random = np.random.default_rng(3)
    truth = random.normal(size=400)
    guess = truth + random.normal(size=400)
    small, large = (
        agreement(guess[:40].tolist(), truth[:40].tolist()),
        agreement(guess.tolist(), truth.tolist()),
    )
    assert small.low < small.rho < small.high
    assert large.high - large.low < 0.6 * (small.high - small.low)
    assert large.count == 400


def test_two_are_too_few() -> None:
    with pytest.raises(ValueError, match="three"):
        agreement([1, 2], [1, 2])


def test_regret_is_of_the_best_that_was_tried() -> None:
    assert regret_pct([1, 2, 3], [12, 10, 11], 1) == pytest.approx(20)
    assert regret_pct([1, 2, 3], [12, 10, 11], 2) == 0
