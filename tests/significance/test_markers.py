"""What sets a class apart: signed divergences and p-values from sums that add."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from maxdisc import Smoothing
from maxdisc.densities.class_densities import estimate
from maxdisc.divergences.class_divergences import one_vs_rest
from maxdisc.families import FAMILIES
from maxdisc.moments.counting import class_moments
from maxdisc.significance.markers import DERIVED, SHARED, ClassSums, find_markers


def amounts(n=90, d=12, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = np.log1p(rng.poisson(0.6 + 3.0 * (codes[:, None] == np.arange(d) % 4), size=(n, d)))
    return X, codes


@pytest.mark.parametrize("family", [name for name in DERIVED if name != SHARED])
def test_scores_are_the_divergences_of_the_family_with_the_sign_of_the_difference(family):
    X, codes = amounts()
    found = find_markers(ClassSums.of(X, codes, 3), family)
    member, values = FAMILIES[family], (X > 0).astype(float) if family == "bernoulli" else X
    moments = class_moments(member.statistics, values, codes, 3, powers=member.translates)
    expected = one_vs_rest(estimate(member, moments, Smoothing(1.0)))
    np.testing.assert_allclose(np.abs(found.scores), expected, rtol=1e-9, atol=1e-12)
    more = np.stack([values[codes == c].mean(axis=0) > values[codes != c].mean(axis=0) for c in range(3)])
    assert ((found.scores > 0) == more).all()


def test_of_one_variance_it_is_the_squared_difference_of_means_in_deviations():
    X = np.random.default_rng(0).normal(size=(60, 5)) + 3.0 * (np.arange(60)[:, None] % 2) * np.arange(5)
    codes = np.arange(60) % 2
    found = find_markers(ClassSums.of(X, codes, 2))
    a, b = X[codes == 0], X[codes == 1]
    pooled = (((a - a.mean(0)) ** 2).sum(0) + ((b - b.mean(0)) ** 2).sum(0)) / 60
    assert found.family == SHARED
    np.testing.assert_allclose(np.abs(found.scores[0]), (a.mean(0) - b.mean(0)) ** 2 / pooled, rtol=1e-9)
    np.testing.assert_allclose(found.p[0], stats.ttest_ind(a, b).pvalue, rtol=1e-6)


def test_sums_add_and_sparse_rows_have_the_sums_of_dense_ones():
    X, codes = amounts()
    whole = find_markers(ClassSums.of(X, codes, 3))
    parts = [ClassSums.of(sp.csr_array(X[s]), codes[s], 3) for s in (slice(0, 31), slice(31, 90))]
    halves = find_markers(parts[0] + parts[1])
    np.testing.assert_allclose(halves.scores, whole.scores, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(halves.p, whole.p, rtol=1e-7)
    np.testing.assert_array_equal(halves.sums.present, whole.sums.present)


def test_p_values_are_uniform_at_most_where_labels_say_nothing():
    rng = np.random.default_rng(1)
    X = np.log1p(rng.negative_binomial(0.7, 0.3, size=(200, 1500)))
    codes = (np.arange(200) % 5 == 0).astype(int)
    p = find_markers(ClassSums.of(X, codes, 2)).p[1]
    for level in (0.01, 0.05, 0.2):
        # Three standard errors of a share of 1,500.
        assert (p <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / 1500)
    assert (p <= 0.2).mean() > 0.1  # and not much larger than they should be


def test_p_values_of_a_strong_difference_are_near_those_of_a_permutation_test():
    X, codes = amounts(60, 4, seed=3)
    p = find_markers(ClassSums.of(X, codes, 3)).p[0]
    rng = np.random.default_rng(0)
    away = np.abs(X[codes == 0].mean(0) - X.mean(0))
    deals = [np.abs(X[rng.permutation(codes) == 0].mean(0) - X.mean(0)) >= away - 1e-12 for _ in range(4000)]
    np.testing.assert_allclose(p[p > 0.005], np.mean(deals, axis=0)[p > 0.005], rtol=0.5, atol=0.02)


def test_more_rows_of_the_same_kind_leave_scores_where_they_are():
    X, codes = amounts(90)
    once = find_markers(ClassSums.of(X, codes, 3), smoothing=0.0)
    often = find_markers(ClassSums.of(np.tile(X, (20, 1)), np.tile(codes, 20), 3), smoothing=0.0)
    np.testing.assert_allclose(often.scores, once.scores, rtol=1e-6, atol=1e-9)
    assert often.p.min() < once.p.min() * 1e-10


def test_a_constant_feature_says_nothing():
    X, codes = amounts()
    X[:, 0] = 0.0
    X[:, 1] = 2.5
    found = find_markers(ClassSums.of(X, codes, 3))
    assert (found.p[:, :2] == 1).all()
    np.testing.assert_allclose(found.scores[:, :2], 0.0, atol=1e-12)
    scaled = find_markers(ClassSums.of(X - 2.5, codes, 3))
    assert (scaled.p[:, :2] == 1).all()
    assert (scaled.scores[:, :2] == 0).all()


def test_missing_cells_are_left_out():
    X, codes = amounts()
    X[:30, 3] = np.nan
    found = find_markers(ClassSums.of(X, codes, 3))
    alone = find_markers(ClassSums.of(X[30:, 3:4], codes[30:], 3))
    np.testing.assert_allclose(found.scores[:, 3], alone.scores[:, 0], rtol=1e-9)
    np.testing.assert_allclose(found.p[:, 3], alone.p[:, 0], rtol=1e-7)


@pytest.mark.parametrize(
    ("values", "family", "message"),
    [
        ([[-1.0], [2.0]], "poisson", "no negative values, and there are some, down to -1"),
        ([[1.0], [2.0]], "weibull", "family must be 'auto' or one of 'poisson'"),
    ],
)
def test_what_cannot_be_is_said(values, family, message):
    with pytest.raises(ValueError, match=message):
        find_markers(ClassSums.of(np.array(values), np.array([0, 1]), 2), family)


def test_infinite_values_are_refused():
    with pytest.raises(ValueError, match="infinite"):
        ClassSums.of(np.array([[np.inf], [1.0]]), np.array([0, 1]), 2)
