"""Dual coordinate ascent: its optimum, its gap, and what must not change it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from maxdisc.conditional.coordinate_ascent import ascend, fit_ridges
from maxdisc.conditional.model import log_posterior
from maxdisc.testing import taking
from tests.conftest import examples

RIDGES = (3.0, 0.3, 0.03)


def problem(seed, n=80, n_features=150, n_classes=3):
    """Sparse rows, fewer than features, some of them empty; codes and weights."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.exponential(size=(n, n_features)) * (rng.random((n, n_features)) < 0.1)
    X[:, 0] += 0.5 * codes
    X[: n // 20] = 0.0
    return sp.csr_array(X), codes, rng.random(n) + 0.2


def objective(X, codes, weight, fit, offset=0.0):
    log_p = log_posterior(offset + X @ fit.weights + fit.bias)
    return 0.5 * fit.ridge * (fit.weights**2).sum() - weight @ log_p[np.arange(len(codes)), codes]


def fits(way, X, codes, weight, ridges=RIDGES, n_classes=3, **settings):
    with taking(way):
        return list(fit_ridges(X, codes, weight, ridges, n_classes, **settings))


@pytest.mark.parametrize("way", ["compiled", "plain"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("ridge", RIDGES)
def test_the_optimum_is_that_of_a_logistic_regression(way, form, ridge):
    X, codes, weight = problem(0)
    (found,) = fits(way, form(X.toarray()), codes, weight, (ridge,), tol=1e-9)
    other = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=100_000).fit(X, codes, weight)
    np.testing.assert_allclose(found.weights.T, other.coef_, atol=2e-4)
    np.testing.assert_allclose(found.bias - found.bias.mean(), other.intercept_, atol=2e-3)
    # Single precision ends before the tolerance asked for.
    assert found.gap <= 1e-6 * found.objective


@given(seed=st.integers(0, 2**20), n_classes=st.integers(2, 6), tol=st.sampled_from([0.1, 1e-2, 1e-4]))
@examples(20)
def test_the_gap_bounds_the_distance_from_the_optimum(seed, n_classes, tol):
    X, codes, weight = problem(seed, n_classes=n_classes)
    exact = fits("plain", X, codes, weight, n_classes=n_classes)
    for fit, best in zip(
        fits("compiled", X, codes, weight, n_classes=n_classes, tol=tol), exact, strict=True
    ):
        value = objective(X, codes, weight, fit)
        assert fit.objective == pytest.approx(value, rel=1e-5)
        assert -1e-6 * best.objective <= value - best.objective <= fit.gap + 1e-6 * best.objective
        assert fit.converged == (fit.gap <= tol * fit.objective)


@pytest.mark.parametrize("way", ["compiled", "plain"])
def test_a_path_ends_where_each_ridge_ends_alone(way):
    X, codes, weight = problem(1)
    for fit in fits(way, X, codes, weight, tol=1e-8):
        (alone,) = fits(way, X, codes, weight, (fit.ridge,), tol=1e-8)
        np.testing.assert_allclose(fit.weights, alone.weights, atol=1e-3)


@pytest.mark.parametrize("way", ["compiled", "plain"])
def test_a_weight_is_a_number_of_rows_and_rows_without_weight_do_not_count(way):
    X, codes, _ = problem(2)
    times = np.arange(80) % 3
    weighted = fits(way, X, codes, times.astype(float), tol=1e-8)
    repeated = fits(
        way, X[np.repeat(np.arange(80), times)], np.repeat(codes, times), np.ones(times.sum()), tol=1e-8
    )
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a.weights, b.weights, atol=1e-3)
        assert a.objective == pytest.approx(b.objective, rel=1e-5)


@pytest.mark.parametrize("way", ["compiled", "plain"])
def test_offsets_are_where_scores_begin(way):
    X, codes, weight = problem(3)
    offset = np.random.default_rng(0).normal(size=(80, 3))
    (found,) = fits(way, X, codes, weight, (0.3,), offset=offset, tol=1e-8)
    value = objective(X, codes, weight, found, offset)
    assert found.objective == pytest.approx(value, rel=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(20):
        near = replace(found, weights=found.weights + 1e-2 * rng.normal(size=found.weights.shape))
        assert objective(X, codes, weight, near, offset) > value


@pytest.mark.parametrize("way", ["compiled", "plain"])
@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e-3, 1e3, 1e100])
def test_the_scale_of_weights_and_ridges_does_not_matter(way, scale):
    X, codes, weight = problem(7)
    first = fits(way, X, codes, weight, tol=1e-4)
    for a, b in zip(
        fits(way, X, codes, scale * weight, scale * np.array(RIDGES), tol=1e-4), first, strict=True
    ):
        np.testing.assert_allclose(a.weights, b.weights, rtol=1e-3, atol=1e-5)
        assert a.objective == pytest.approx(scale * b.objective, rel=1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", ["compiled", "plain"])
@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e150])
def test_extreme_weights_stay_finite(way, scale):
    X, codes, weight = problem(8)
    for fit in fits(way, X, codes, scale * weight, (1.0, 0.01)):
        assert np.isfinite(fit.weights).all()
        assert np.isfinite(fit.bias).all()


def test_a_class_without_rows_stays_finite():
    X, codes, weight = problem(4)
    for way in ("compiled", "plain"):
        for fit in fits(way, X, codes, weight, n_classes=4):
            assert np.isfinite(fit.weights).all()
            assert np.isfinite(fit.bias).all()


def test_the_same_again_to_the_last_bit():
    X, codes, weight = problem(5)
    for a, b in zip(fits("compiled", X, codes, weight), fits("compiled", X, codes, weight), strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)


def test_a_fit_that_is_stopped_early_says_so():
    X, codes, weight = problem(6)
    (fit,) = ascend(X, codes, weight, (1e-4,), 3, tol=1e-12, max_sweeps=1)
    assert fit.n_sweeps == 1
    assert not fit.converged
    assert fit.gap > 1e-12 * fit.objective
