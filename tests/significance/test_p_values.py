"""P-values from moments: against closed forms, simulation and scipy; what they must keep under the null."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as ss
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from maxdisc.families import FAMILIES
from maxdisc.moments.counting import class_moments
from maxdisc.significance.p_values import _ratio_tail, _tail, p_values
from maxdisc.significance.table import q_values

SIZES = [(30, 30), (5, 55), (20, 20, 20), (1, 29, 30)]


def p_of(name, X, y, weights=None):
    family = FAMILIES[name]
    n_classes = int(y.max()) + 1
    return p_values(
        family, class_moments(family.statistics, X, y, n_classes, weights, powers=family.translates)
    )


def labels(sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def tail(x, n, scale, fixed):
    x, n = np.asarray(x, dtype=float), np.asarray(n, dtype=float)
    return _tail(x, np.repeat(n[:, None], len(x), axis=1), scale, fixed)


@pytest.mark.parametrize("n", [(1, 1), (3, 40), (30, 30), (5000, 200)])
def test_two_exponential_classes_are_a_beta_distribution(n):
    """The ratio exceeds x if the share of the first class leaves an interval."""
    rows, x = sum(n), np.array([1e-4, 0.3, 4.0, 30.0, 120.0])

    def excess(share, at, one, other):
        return (
            -2 * (one * np.log(share * rows / one) + other * np.log1p(-share) + other * np.log(rows / other))
            - at
        )

    def below(at, one, other):
        share = brentq(excess, 1e-300, one / rows, (at, one, other), xtol=1e-300, rtol=1e-14)
        return ss.beta(one, other).cdf(share)

    expected = [below(at, *n) + below(at, *n[::-1]) for at in x]
    assert tail(x, n, 2.0, 0.0) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("scale", "fixed", "per_class"), [(1.0, 1.0, 2), (2.0, 0.0, 1)])
def test_of_many_rows_the_ratio_is_chi_square(scale, fixed, per_class):
    x = np.array([1e-3, 0.5, 3.0, 20.0, 60.0])
    n = (300_000, 200_000, 500_000)
    assert tail(x, n, scale, fixed) == pytest.approx(ss.chi2.sf(x, per_class * 2), rel=2e-4)
    # Far beyond, sums of gamma functions would have no digits.
    share, rows = np.array([[0.500001], [0.499999]]), np.array([[1e12], [1e12]])
    expected = ss.chi2.sf(scale * 4e12 * 1e-12, per_class)
    assert _ratio_tail(share, rows, scale, fixed) == pytest.approx([expected], rel=1e-3)


@pytest.mark.parametrize("n", [(2, 3), (5, 55), (3, 3, 3, 40)])
def test_of_few_rows_the_ratio_is_as_simulated(n):
    """Squares within and between classes, drawn as chi-square; the chi-square limit is far off here."""
    rng, draws = np.random.default_rng(0), 400_000
    squares = np.array([rng.chisquare(k - 1, draws) for k in n])
    share = squares / (squares.sum(axis=0) + rng.chisquare(len(n) - 1, draws))
    ratio = -sum(k * np.log(s * sum(n) / k) for s, k in zip(share, n, strict=True))
    wanted = np.array([0.9, 0.5, 0.1, 0.01, 1e-3])
    x = np.quantile(ratio, 1 - wanted)
    assert tail(x, n, 1.0, 1.0) == pytest.approx(wanted, rel=0.12)
    assert ss.chi2.sf(x[-1], 2 * (len(n) - 1)) < 0.7 * wanted[-1]


def test_a_larger_ratio_has_a_smaller_p_and_a_table_tells_the_same():
    rng, n = np.random.default_rng(0), np.array([[12.0], [30.0], [8.0]])
    share = rng.dirichlet(np.r_[(n[:, 0] - 1) / 2, 1.0], 3000).T[:3]
    rows = np.repeat(n, 3000, axis=1)
    ratio = -(rows * np.log(share * 50 / rows)).sum(axis=0)
    from_table = _ratio_tail(share, rows, 1.0, 1.0)
    alone = np.concatenate(
        [_ratio_tail(share[:, i : i + 500], rows[:, :500], 1.0, 1.0) for i in range(0, 3000, 500)]
    )
    assert from_table == pytest.approx(alone, rel=1e-4)
    assert (np.diff(from_table[np.argsort(ratio)]) <= 0).all()


CONTINUOUS = {
    "gaussian": lambda rng, shape: rng.normal(1e3, 3.0, shape),
    "exponential": lambda rng, shape: rng.exponential(2.0, shape),
}


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_where_classes_do_not_differ_p_values_are_uniform(name, sizes, missing):
    rng, y = np.random.default_rng(1), labels(sizes)
    X = CONTINUOUS[name](rng, (len(y), 4000))
    X[rng.random(X.shape) < missing] = np.nan
    p = p_of(name, X, y)
    assert ss.kstest(p, "uniform").pvalue > 1e-3
    assert np.mean(p <= 0.01) == pytest.approx(0.01, abs=4 * np.sqrt(0.01 / 4000))


DISCRETE = {
    "poisson": lambda rng, mean, shape: rng.poisson(mean, shape),
    "geometric": lambda rng, mean, shape: rng.geometric(1 / (1 + mean), shape) - 1,
    "bernoulli": lambda rng, mean, shape: rng.random(shape) < mean / (1 + mean),
}


@pytest.mark.parametrize("sizes", [(30, 30), (4, 56), (20, 20, 20), (10,) * 10, (40, 160)], ids=str)
@pytest.mark.parametrize("name", DISCRETE)
def test_p_values_of_counts_are_never_too_small(name, sizes):
    rng, y = np.random.default_rng(2), labels(sizes)
    for mean in (0.05, 0.5, 3.0, 30.0):
        X = DISCRETE[name](rng, mean, (len(y), 8_000)).astype(float)
        p = p_of(name, X, y)
        for t in (0.05, 0.01):
            assert np.mean(p <= t) <= 1.1 * t


@pytest.mark.parametrize("weigh", [lambda r, s: r.gamma(0.5, size=s), lambda r, s: r.lognormal(size=s)])
def test_nor_are_those_of_counts_that_no_family_describes(weigh):
    """Overdispersed, scaled, with heavy tails: words in documents of any length."""
    rng = np.random.default_rng(3)
    for sizes in [(30, 30), (5, 55)]:
        y = labels(sizes)
        for share in (0.1, 0.9):
            X = (rng.random((len(y), 8_000)) < share) * weigh(rng, (len(y), 8_000))
            p = p_of("poisson", X, y)
            assert all(np.mean(p <= t) <= 1.1 * t for t in (0.05, 0.01, 0.001))


def test_presence_is_the_hypergeometric_test():
    rng, y = np.random.default_rng(4), labels((15, 25))
    X = (rng.random((40, 50)) < rng.random(50)).astype(float)
    found, total = X[:15].sum(axis=0), X.sum(axis=0)
    law = ss.hypergeom(40, total, 15)
    expected = np.minimum(2 * np.minimum(law.sf(found - 1), law.cdf(found)), 1.0)
    expected = np.where((total == 0) | (total == 40), 1.0, expected)
    for name, cells in (("bernoulli", X), ("poisson", 0.25 * X)):
        assert p_of(name, cells, y) == pytest.approx(expected)


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_neither_unit_nor_origin_matters(seed, unit, origin):
    rng, y = np.random.default_rng(seed), labels((6, 9))
    X = rng.gamma(2.0, size=(15, 4)) + y[:, None]
    assert p_of("gaussian", unit * X + origin, y) == pytest.approx(p_of("gaussian", X, y), rel=1e-5)
    for name in ("exponential", "poisson"):
        assert p_of(name, unit * X, y) == pytest.approx(p_of(name, X, y), rel=1e-6)


def test_equal_weights_are_none_and_unequal_ones_are_fewer_rows():
    rng, y = np.random.default_rng(5), labels((20, 30))
    X = rng.exponential(size=(50, 5)) * (1 + y[:, None])
    for name in ("gaussian", "exponential", "poisson"):
        assert p_of(name, X, y, np.full(50, 7.0)) == pytest.approx(p_of(name, X, y))
    weights, y = rng.exponential(size=50), labels((25, 25))
    null = rng.normal(size=(50, 4000))
    assert ss.kstest(p_of("gaussian", null, y, weights), "uniform").statistic < 0.1


@pytest.mark.parametrize("name", ["gaussian", "exponential", "poisson", "geometric", "bernoulli"])
def test_odd_features_and_classes_have_a_p_value_too(name):
    y = np.array([0, 0, 0, 1, 1, 1, 2])
    X = np.column_stack([
        np.ones(7),                                   # constant
        np.r_[np.zeros(6), 1.0],                      # only the class with one row has it
        np.r_[1.0, np.full(6, np.nan)],               # one cell
        np.full(7, np.nan),                           # none
        (y == 0).astype(float),                       # settles one class
        np.r_[1.0, 0.0, 1.0, np.full(4, np.nan)],     # one class
    ])  # fmt: skip
    p = p_of(name, X, y)
    assert ((p > 0) & (p <= 1)).all()
    assert (p[[0, 2, 3, 5]] == 1.0).all()
    # Of seven rows there are only so many ways to choose one, or to deal all the labels.
    assert p[1] >= (1 / 140 if name == "gaussian" else 1 / 7) - 1e-9
    assert 1 / 140 - 1e-9 <= p[4] < 0.2


def test_numbers_that_were_rounded_are_not_taken_for_a_miracle():
    """Three equal rows have no variance, which for exact numbers would be impossible."""
    rng, y = np.random.default_rng(6), labels((3, 57))
    X = np.round(rng.normal(0, 0.6, (60, 4000)))
    p = p_of("gaussian", X, y)
    assert np.mean(p <= 1e-3) < 0.01


def test_what_moments_do_not_tell_is_not_made_up():
    rng, y = np.random.default_rng(7), labels((10, 10))
    X = rng.gamma(2.0, size=(20, 3))
    assert np.isnan(p_of("gamma", X, y)).all()
    # Squares of such numbers are beyond all numbers.
    assert np.isnan(p_of("poisson", 1e200 * X, y)).all()
    assert (p_of("gaussian", 1e130 * X, y) <= 1).all()


def false_discoveries(p, n_real, q=0.1):
    found = q_values(p) <= q
    return found[n_real:].sum() / max(found.sum(), 1)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["gaussian", "poisson", "negative binomial"])
@pytest.mark.parametrize("n_rows", [60, 100, 400])
def test_false_discoveries_are_as_few_as_promised(law, n_rows):
    """10,000 features, of which 50 are real, at q = 0.1."""
    y, effect = np.arange(n_rows) % 2, 1.5 * np.sqrt(60 / n_rows)
    shares = []
    for seed in range(30 if law == "gaussian" else 10):
        rng = np.random.default_rng(seed)
        shift = np.where(np.arange(10_050) < 50, effect, 0.0) * y[:, None]
        if law == "gaussian":
            p = p_of("gaussian", rng.normal(shift), y)
        else:
            rate = np.exp(1.5 * shift)
            spread = 1.0 if law == "poisson" else rng.gamma(1.0, size=rate.shape)
            p = p_of("poisson", rng.poisson(rate * spread).astype(float), y)
        shares.append(false_discoveries(p, 50))
    assert np.mean(shares) <= 0.12
