"""Corrections of single features: a ridge regression of classes with scores to start from."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from maxdisc.conditional.corrections import ScaledRows, correct
from maxdisc.conditional.model import log_posterior


def problem(n=150, n_features=6, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = (rng.random((n, n_features)) < 0.5) * rng.normal(1.0, 1.0, (n, n_features))
    X[:, 0] += codes
    return X / np.sqrt((X**2).sum(axis=1).mean()), codes, rng


def value(Z, codes, weight, offset, ridge, correction):
    log_p = log_posterior(offset + Z @ correction)
    return 0.5 * ridge * (correction**2).sum() - weight @ log_p[np.arange(len(codes)), codes]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("ridge", [0.03, 1.0, 30.0])
def test_the_optimum_is_that_of_scipy(form, ridge):
    X, codes, rng = problem()
    weight, offset = rng.random(150) + 0.2, rng.normal(size=(150, 3))
    rows = ScaledRows.of(form(X), np.linspace(0.5, 2, 6))
    found = correct(rows, codes, weight, offset, ridge, max_iter=2000, tol=1e-9)
    Z = np.hstack([X * np.linspace(0.5, 2, 6), np.ones((150, 1))])
    best = minimize(
        lambda point: value(Z, codes, weight, offset, ridge, point.reshape(7, 3)),
        np.zeros(21),
        options={"gtol": 1e-7},
    )
    np.testing.assert_allclose(found, best.x.reshape(7, 3), atol=1e-4)


def test_the_optimum_is_that_of_a_logistic_regression():
    X, codes, rng = problem(200, 5, 3, seed=1)
    weight = rng.random(200) + 0.2
    rows = ScaledRows.of(X, np.ones(5))
    found = correct(rows, codes, weight, np.zeros((200, 3)), 0.7, max_iter=2000, tol=1e-10)
    # A column of ones is a feature like others there: its bias pays the ridge, too.
    other = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=10_000)
    other.fit(np.hstack([X, np.ones((200, 1))]), codes, weight)
    np.testing.assert_allclose(found.T, other.coef_, atol=1e-4)


def test_sparse_and_dense_rows_are_the_same():
    X, codes, rng = problem()
    offset = rng.normal(size=(150, 3))
    dense, sparse = (
        correct(ScaledRows.of(form(X), np.ones(6)), codes, np.ones(150), offset, 0.3)
        for form in (np.asarray, sp.csr_array)
    )
    np.testing.assert_allclose(dense, sparse, atol=1e-10)
    some = np.array([3, 140, 7])
    rows = ScaledRows.of(sp.csr_array(X), np.ones(6))
    np.testing.assert_allclose(rows.rows(some).scores(sparse), rows.scores(sparse)[some])


def test_offsets_are_counted_from():
    """Scores that are right already, as sure as they are, leave little to correct; wrong ones much."""
    X, codes, _ = problem()
    rows = ScaledRows.of(X, np.ones(6))
    right = np.zeros((150, 3))
    right[np.arange(150), codes] = 12.0
    none, all_of_it = (
        np.abs(correct(rows, codes, np.ones(150), offset, 0.1)).max() for offset in (right, -right)
    )
    assert none < 1e-2
    assert all_of_it > 1
    # A score that all classes share says nothing.
    shared = np.repeat(np.random.default_rng(0).normal(size=(150, 1)) * 50, 3, axis=1)
    a = correct(rows, codes, np.ones(150), shared, 0.3, tol=1e-9, max_iter=2000)
    b = correct(rows, codes, np.ones(150), np.zeros((150, 3)), 0.3, tol=1e-9, max_iter=2000)
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_where_it_starts_does_not_matter():
    X, codes, rng = problem()
    rows = ScaledRows.of(sp.csr_array(X), np.ones(6))
    given = (rows, codes, np.ones(150), rng.normal(size=(150, 3)), 0.1)
    fresh = correct(*given, max_iter=2000, tol=1e-9)
    for start in (rng.normal(size=(7, 3)), 1e3 * rng.normal(size=(7, 3)), fresh):
        np.testing.assert_allclose(correct(*given, start, 2000, 1e-9), fresh, atol=1e-5)


def test_a_large_ridge_leaves_nothing_and_each_step_gains():
    X, codes, rng = problem()
    rows, offset = ScaledRows.of(X, np.ones(6)), rng.normal(size=(150, 3))
    sizes = [np.abs(correct(rows, codes, np.ones(150), offset, r)).max() for r in (1e-2, 1, 1e2, 1e4, 1e12)]
    assert (np.diff(sizes) < 0).all()
    assert sizes[-1] < 1e-9
    Z = np.hstack([X, np.ones((150, 1))])
    reached = [
        value(
            Z, codes, np.ones(150), offset, 0.1, correct(rows, codes, np.ones(150), offset, 0.1, None, n, 0.0)
        )
        for n in range(12)
    ]
    assert (np.diff(reached) <= 1e-9).all()


def test_columns_add_up_to_nothing_over_the_classes():
    """What is given to one class is taken from the others: only differences are seen."""
    X, codes, rng = problem()
    found = correct(ScaledRows.of(X, np.ones(6)), codes, np.ones(150), rng.normal(size=(150, 3)), 0.1)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-8)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_weights_and_ridge_have_one_unit(factor):
    X, codes, rng = problem()
    rows, offset = ScaledRows.of(X, np.ones(6)), rng.normal(size=(150, 3))
    a = correct(rows, codes, np.ones(150), offset, 0.3, tol=1e-9, max_iter=2000)
    b = correct(rows, codes, np.full(150, factor), offset, 0.3 * factor, tol=1e-9, max_iter=2000)
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_separable_rows_and_more_features_than_rows():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(12, 200)) / np.sqrt(200), np.arange(12) % 2
    found = correct(ScaledRows.of(X, np.ones(200)), codes, np.ones(12), np.zeros((12, 2)), 1e-4)
    scores = ScaledRows.of(X, np.ones(200)).scores(found)
    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=1) == codes).all()
