"""Statistics of repeated cross-validation, against formulas written out and against brute force."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_1samp

from experiments.comparing import compared, corrected_t_test, holm, paired, score
from experiments.records import Key


def test_the_corrected_test_by_hand():
    # Ten differences of five times two folds: mean 0.01, sum of squared deviations 0.0024.
    d = [0.03, -0.01, 0.02, 0.0, 0.03, -0.01, 0.02, 0.0, 0.03, -0.01]
    mean = sum(d) / 10
    variance = sum((x - mean) ** 2 for x in d) / 9
    statistic = mean / sqrt(variance * (1 / 10 + 1 / 1))
    found, p = corrected_t_test(d, 1.0)
    assert found == pytest.approx(statistic)
    assert p == pytest.approx(2 * t.cdf(-abs(statistic), 9))


def test_without_correction_it_is_the_t_test():
    d = np.random.default_rng(0).normal(0.3, size=50)
    oracle = ttest_1samp(d, 0.0)
    np.testing.assert_allclose(corrected_t_test(d, 0.0), [oracle.statistic, oracle.pvalue])
    assert corrected_t_test(d, 1 / 9)[1] > oracle.pvalue


def test_the_correction_keeps_the_level():
    # Two learners that are equally good, judged on halves of one sample, ten times: differences of repeats
    # are correlated by half, as those of overlapping training sets are. Without the correction far more than
    # a twentieth of the tests would reject.
    rng = np.random.default_rng(1)
    rejected = np.zeros(2)
    for _ in range(2000):
        d = np.sqrt(0.5) * rng.normal() + np.sqrt(0.5) * rng.normal(size=10)
        rejected += [corrected_t_test(d, ratio)[1] < 0.05 for ratio in (1.0, 0.0)]
    assert rejected[0] / 2000 < 0.06
    assert rejected[1] / 2000 > 0.3


def test_no_spread():
    assert corrected_t_test([0.0, 0.0, 0.0], 1.0) == (0.0, 1.0)
    assert corrected_t_test([0.1, 0.1, 0.1], 1.0) == (np.inf, 0.0)
    assert corrected_t_test([-0.1, -0.1], 1.0) == (-np.inf, 0.0)
    with pytest.raises(ValueError, match="two differences or more"):
        corrected_t_test([0.1], 1.0)


def closed_testing(p):
    """Holm as the closed test of Bonferroni: the largest adjusted p of all sets that contain a hypothesis."""
    n = len(p)
    sets = [s for size in range(1, n + 1) for s in combinations(range(n), size)]
    return [max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets if i in s) for i in range(n)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_the_closed_test(p):
    np.testing.assert_allclose(holm(p), closed_testing(p), atol=1e-12)


def cells(values):
    """Cells of one row from accuracies by method, shape (repeats, folds)."""
    return {
        Key("row", 1000 + repeat, fold, method): {"accuracy": accuracy}
        for method, by_repeat in values.items()
        for repeat, folds in enumerate(by_repeat)
        for fold, accuracy in enumerate(folds)
    }


def test_means_and_spreads_are_over_repeats():
    found = score(cells({"a": [[0.5, 0.7], [0.7, 0.9]]}), "row", "a")
    assert found.mean == pytest.approx(0.7)
    assert found.spread == pytest.approx(np.std([0.6, 0.8], ddof=1))
    assert found.n_repeats == 2
    assert score({}, "row", "a") is None


def test_differences_are_of_the_same_folds():
    several = cells({"a": [[0.5, 0.7], [0.8, 0.9]], "b": [[0.4, 0.4]]})
    np.testing.assert_allclose(paired(several, "row", "a", "b"), [0.1, 0.3])


def test_the_best_rival_is_taken():
    several = cells({"a": [[0.5, 0.6]] * 2, "b": [[0.1, 0.1]] * 2, "c": [[0.9, 0.7]] * 2})
    (found,) = compared(several, ["row", "other"], "a", ["b", "c", "absent"], n_folds=2)
    assert (found.row, found.rival) == ("row", "c")
    assert found.difference == pytest.approx(-0.25)
    assert 0 < found.p < 1
