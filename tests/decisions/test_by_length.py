"""Decisions whose weights depend on how many selected features a row has."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxdisc.decisions.by_length import (
    LengthDecision,
    LengthWeights,
    common_length,
    hats,
    scale_rows,
    scale_selected,
    select_features,
)
from maxdisc.families import Poisson
from maxdisc.inspection.explanation import Explanation
from tests.conftest import examples

N_FEATURES, N_CLASSES = 12, 3


def rows_of(seed, n=15, density=0.4):
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.0, (n, N_FEATURES)) * (rng.random((n, N_FEATURES)) < density)
    return sp.csr_array(X.astype(float))


def decision_of(seed, n_selected=7):
    rng = np.random.default_rng(seed)
    counts = np.array([0.0, 1.0, 3.0, 9.0])
    lengths = LengthWeights(
        counts,
        np.vstack([np.zeros(2), rng.random((3, 2))]),
        np.vstack([np.zeros(N_CLASSES), rng.normal(size=(3, N_CLASSES))]),
        length=5.0,
    )
    columns = rng.permutation(N_FEATURES)[:n_selected]
    weights = rng.normal(size=(2, N_CLASSES, n_selected))
    return LengthDecision(Poisson(), columns, weights, np.log(rng.dirichlet(np.ones(N_CLASSES))), lengths)


@examples(40)
@given(seed=st.integers(0, 2**16), factor=st.floats(1e-3, 1e3))
def test_neither_the_scale_of_a_row_nor_other_features_matter(seed, factor):
    decision, X = decision_of(seed), rows_of(seed)
    scores = decision.scores(X)
    np.testing.assert_allclose(decision.scores(X * factor), scores, rtol=1e-9, atol=1e-9)
    others = np.setdiff1d(np.arange(N_FEATURES), decision.columns)
    more = X.toarray()
    more[:, others] += 7.0
    np.testing.assert_allclose(decision.scores(sp.csr_array(more)), scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(decision.scores(more), scores, rtol=1e-12, atol=1e-12)


@examples(40)
@given(seed=st.integers(0, 2**16))
def test_scores_are_sums_of_what_features_and_the_length_say(seed):
    decision, X = decision_of(seed), rows_of(seed)
    names = np.array([f"x{column}" for column in decision.columns])
    found = Explanation.of(decision, X, names, np.arange(N_CLASSES))
    total = found.prior + found.length + found.contributions.sum(axis=2)
    np.testing.assert_allclose(total, found.total, rtol=1e-10, atol=1e-10)
    planes = sum(plane @ w.T for plane, w in zip(decision.planes(X), decision.weights, strict=True))
    np.testing.assert_allclose(planes + found.prior + found.length, found.total, rtol=1e-10, atol=1e-10)


@examples(40)
@given(seed=st.integers(0, 2**16), pair=st.sampled_from([(0, 1), (2, 0)]))
def test_for_one_row_it_is_linear(seed, pair):
    decision, X = decision_of(seed), rows_of(seed)
    for row in range(3):
        linear = decision.for_row(X[[row]])
        np.testing.assert_allclose(linear.scores(X[[row]]), decision.scores(X[[row]]), rtol=1e-10, atol=1e-10)
    two = decision.between(np.array(pair))
    np.testing.assert_allclose(two.scores(X), decision.scores(X)[:, pair], rtol=1e-12, atol=1e-12)


def test_a_row_without_a_selected_feature_has_the_prior():
    decision = decision_of(0)
    nothing = sp.csr_array((2, N_FEATURES))
    np.testing.assert_array_equal(decision.scores(nothing), np.tile(decision.log_prior, (2, 1)))
    linear = decision.for_row(nothing[[0]])
    np.testing.assert_array_equal(linear.scores(nothing), decision.scores(nothing))


def test_missing_cells_and_stored_zeros_are_no_features():
    decision, X = decision_of(1), rows_of(1).toarray()
    stored = sp.csr_array(np.ones(X.shape))
    stored.data[:] = X.ravel()
    np.testing.assert_array_equal(decision.scores(stored), decision.scores(sp.csr_array(X)))
    with_nan = np.where(X == 0, np.nan, X)
    np.testing.assert_array_equal(decision.scores(with_nan), decision.scores(X))


@examples(40)
@given(
    n_features=st.lists(st.integers(0, 500), min_size=1, max_size=30),
    counts=st.sets(st.integers(1, 300), min_size=1, max_size=6),
)
def test_hats_interpolate(n_features, counts):
    knots = np.array([0.0, *sorted(counts)])
    hat = hats(np.array(n_features), knots)
    np.testing.assert_allclose(hat.sum(axis=1), 1.0)
    assert (hat >= 0).all()
    # Linear in log(1 + n) between the knots, and constant beyond the last.
    inside = np.minimum(np.log1p(n_features), np.log1p(knots[-1]))
    np.testing.assert_allclose(hat @ np.log1p(knots), inside, atol=1e-12)
    np.testing.assert_array_equal(hats(knots.astype(int), knots), np.eye(len(knots)))


def test_rows_of_one_length_are_recognised():
    X = rows_of(2)
    assert common_length(X) is None
    assert common_length(scale_rows(X.copy(), 3.0)) == pytest.approx(3.0)
    assert common_length(X.toarray()) is None
    assert common_length(sp.csr_array((4, 3))) is None


def test_selected_features_are_scaled_to_the_length():
    X = rows_of(3)
    columns = np.array([5, 2, 9])
    kept = select_features(X, columns, 2.0)
    dense = X.toarray()[:, columns]
    size = np.sqrt((dense**2).sum(axis=1, keepdims=True))
    expected = np.divide(2.0 * dense, size, out=np.zeros_like(dense), where=size > 0)
    np.testing.assert_allclose(kept.toarray(), expected)
    whole = scale_selected(X, columns, 2.0).toarray()
    np.testing.assert_allclose(whole[:, columns], expected)
    assert not np.delete(whole, columns, axis=1).any()
