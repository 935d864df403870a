"""Sums of products: additive, exact about any mean, the same from dense and sparse rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxdisc.families import Gaussian
from maxdisc.moments.products import ClassProducts, observed_means
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows, FixedFolds

ALL = np.arange(5)


def table(seed=0, n=60, shift=0.0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, size=n)
    X = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5)) + codes[:, None] + shift
    return X, codes


def direct_within(X, codes, weights=None, per_class=False):
    weights = np.ones(len(X)) if weights is None else weights
    each = []
    for c in range(3):
        held = codes == c
        each.append(
            np.cov(X[held].T, aweights=weights[held], ddof=0) * weights[held].sum()
            if weights[held].sum() > 0
            else np.zeros((X.shape[1],) * 2)
        )
    return np.stack(each) if per_class else np.sum(each, axis=0, keepdims=True)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_within_is_the_scatter_about_class_means(per_class, shift):
    X, codes = table(shift=shift)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=len(X))
    products = ArrayRows(X, codes, 3, weights).products(ALL, per_class=per_class)[0]
    np.testing.assert_allclose(products.within(), direct_within(X, codes, weights, per_class), rtol=1e-7)
    means = [np.average(X[codes == c], axis=0, weights=weights[codes == c]) for c in range(3)]
    np.testing.assert_allclose(products.means(), means, rtol=1e-12)


def test_a_large_mean_costs_no_digits():
    X, codes = table()
    # Multiples of 2^-20 stay exact under the shift, so any loss would be the sums' own.
    X = np.round(X * 2**20) / 2**20
    near = ArrayRows(X, codes, 3).products(ALL)[0].within()
    far = ArrayRows(X + 2**30, codes, 3).products(ALL)[0].within()
    np.testing.assert_allclose(far, near, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("gap", [2.0**10, 2.0**27, 2.0**33])
def test_classes_may_lie_any_distance_apart(per_class, gap):
    X, codes = table()
    X = np.round(X * 2**16) / 2**16  # exact under the gaps
    far = X + gap * (codes == 0)[:, None] * np.array([1, 0, -1, 0, 0])
    thin = np.where((codes == 0)[:, None] | (np.arange(5) % 2 == 1), far, 0.0)
    folds = FixedFolds(np.arange(60) % 2, 2)
    for table_, form in ((far, np.asarray), (far, sp.csr_array), (thin, sp.csr_array)):
        near = table_ - np.round(table_ / gap) * gap if gap > 2**20 else table_
        due = direct_within(near, codes, per_class=per_class)
        whole = ArrayRows(form(table_), codes, 3).products(ALL, per_class=per_class)[0]
        np.testing.assert_allclose(whole.within(), due, rtol=1e-6, atol=1e-6)
        parts = ArrayRows(form(table_), codes, 3).products(ALL, folds, per_class)
        np.testing.assert_allclose(ClassProducts.total(parts).within(), due, rtol=1e-6, atol=1e-6)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=4), st.booleans(), st.integers(0, 5))
def test_parts_add_up_to_the_whole_in_any_order(cuts, per_class, seed):
    X, codes = table(seed, shift=300.0)
    bounds = [0, *sorted(cuts), 60]
    parts = [
        ArrayRows(X[a:b], codes[a:b], 3).products(ALL, per_class=per_class)[0] for a, b in pairwise(bounds)
    ]
    order = np.random.default_rng(seed).permutation(len(parts))
    total = ClassProducts.total([ClassProducts.zero(3, 5, per_class), *(parts[i] for i in order)])
    whole = ArrayRows(X, codes, 3).products(ALL, per_class=per_class)[0]
    np.testing.assert_allclose(total.within(), whole.within(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(total.means(), whole.means(), rtol=1e-12)
    swapped = parts[1] + parts[0]
    np.testing.assert_array_equal((parts[0] + parts[1]).products, swapped.products)


@pytest.mark.parametrize("per_class", [False, True])
def test_sparse_rows_give_what_dense_rows_give(per_class):
    rng = np.random.default_rng(3)
    X = rng.poisson(0.4, size=(200, 5)).astype(float)
    X[:, 2] = 1e6 + rng.normal(size=200)  # hardly a zero: summed about its mean
    X[:, 4] = 0.0
    codes, weights = rng.integers(0, 3, size=200), rng.uniform(size=200)
    folds = FixedFolds(np.arange(200) % 3 - 1, 2)
    dense = ArrayRows(X, codes, 3, weights).products(ALL[::-1], folds, per_class)
    sparse = ArrayRows(sp.csr_array(X), codes, 3, weights).products(ALL[::-1], folds, per_class)
    assert len(dense) == len(sparse) == 3
    for a, b in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(b.within(), a.within(), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(b.means(), a.means(), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(sparse[0].origin.any(axis=0)), [2])


def test_soft_labels_count_in_every_class():
    X = table()[0]
    soft = np.random.default_rng(0).dirichlet(np.ones(3), size=len(X))
    got = ArrayRows(X, soft, 3).products(ALL, per_class=True)[0]
    for c in range(3):
        alone = ArrayRows(X, np.zeros(len(X), dtype=int), 1, soft[:, c]).products(ALL)[0]
        np.testing.assert_allclose(got.within()[c], alone.within()[0], rtol=1e-9)


def test_a_missing_cell_counts_as_the_mean_of_its_class_in_its_fold():
    X, codes = table()
    folds = FixedFolds(np.arange(60) % 2, 2)
    filled = X.copy()
    X[3, 1] = X[10, 1] = X[10, 4] = np.nan
    for row, column in np.argwhere(np.isnan(X)):
        alike = (codes == codes[row]) & (np.arange(60) % 2 == row % 2) & ~np.isnan(X[:, column])
        filled[row, column] = X[alike, column].mean()
    for got, due in zip(
        ArrayRows(X, codes, 3).products(ALL, folds), ArrayRows(filled, codes, 3).products(ALL, folds),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(got.within(), due.within(), rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="stores NaN"):
        ArrayRows(sp.csr_array(X), codes, 3).products(ALL)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("size", [60, 13, 1])
def test_missing_cells_do_not_know_the_batches(size, per_class):
    X, codes = table(shift=1e4)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    X[:20, 2] = np.nan  # whole batches without a cell
    folds = FixedFolds(np.arange(60) % 3 - 1, 2)
    batches = BatchRows(lambda: [(X[i : i + size], codes[i : i + size]) for i in range(0, 60, size)], 3)
    due = ArrayRows(X, codes, 3).products(ALL, folds, per_class)
    means = observed_means(ArrayRows(X, codes, 3).moments(Gaussian(), folds), ALL)
    for given_means in (None, means):
        got = batches.products(ALL, folds, per_class, given_means)
        for a, b in zip(got, due, strict=True):
            np.testing.assert_allclose(a.within(), b.within(), rtol=1e-9, atol=1e-8)
            np.testing.assert_allclose(a.means(), b.means(), rtol=1e-12)


def test_where_a_fold_saw_no_cell_the_mean_is_that_of_the_others():
    X, codes = table(shift=1e4)
    folds = FixedFolds(np.arange(60) % 2, 2)
    X[(codes == 1) & (np.arange(60) % 2 == 0), 3] = np.nan
    filled = X.copy()
    filled[np.isnan(X)] = np.nanmean(X[codes == 1, 3])
    first, second = ArrayRows(X, codes, 3).products(ALL, folds)[:2]
    for total in (first + second, second + first):
        np.testing.assert_allclose(total.within(), direct_within(filled, codes), rtol=1e-9)
    assert first.means()[1, 3] == 0


def test_the_diagonal_is_never_negative():
    X = np.repeat([[0.1, 1e8], [0.3, -1e8]], 50, axis=0)
    products = ArrayRows(X, np.repeat([0, 1], 50), 2).products(np.arange(2))[0]
    assert (np.diagonal(products.within()[0]) >= 0).all()


def test_batches_and_selection():
    X, codes = table()
    batches = BatchRows(lambda: [(X[:7], codes[:7]), (X[7:], codes[7:])], 3)
    whole = ArrayRows(X, codes, 3).products(ALL)[0]
    np.testing.assert_allclose(batches.products(ALL)[0].within(), whole.within(), rtol=1e-9, atol=1e-10)
    some = np.array([3, 1])
    np.testing.assert_allclose(
        whole.select(some).within(), ArrayRows(X, codes, 3).products(some)[0].within(), rtol=1e-12
    )


def test_products_of_different_features_do_not_add():
    with pytest.raises(ValueError, match="do not add"):
        ClassProducts.zero(3, 2) + ClassProducts.zero(3, 4)
