"""Sources of rows, and folds by content."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxdisc.families import Gaussian, Poisson
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows, HashFolds, row_hashes
from maxdisc.testing import taking

tables = hnp.arrays(
    np.float64, (9, 4), elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.nan, 1e300, 1e-300])
)


@given(tables, st.permutations(range(9)))
def test_a_hash_depends_on_content_alone(X, order):
    base = row_hashes(X)
    order = np.array(order)
    np.testing.assert_array_equal(row_hashes(X[order]), base[order])
    np.testing.assert_array_equal(row_hashes(np.asfortranarray(X)), base)
    np.testing.assert_array_equal(np.r_[row_hashes(X[:4]), row_hashes(X[4:])], base)
    sparse = sp.csr_array(X)
    np.testing.assert_array_equal(row_hashes(sparse), base)
    same = (X[:, None] == X[None]) | (np.isnan(X[:, None]) & np.isnan(X[None]))
    np.testing.assert_array_equal(base[:, None] == base[None], same.all(axis=2))


@given(tables, st.lists(st.integers(0, 8)))
def test_compiled_hashes_are_the_same(X, some):
    rows, sparse, due = np.array(some, dtype=np.intp), sp.csr_array(X), row_hashes(X)
    for way in ("plain", "compiled"):
        with taking(way):
            np.testing.assert_array_equal(row_hashes(sparse, rows), due[rows])
            np.testing.assert_array_equal(row_hashes(sparse), due)


def test_explicit_zeros_and_unsorted_indices_do_not_show():
    X = sp.csr_array((np.array([2.0, 0.0, 1.0]), np.array([3, 1, 0]), np.array([0, 3])), shape=(1, 5))
    np.testing.assert_array_equal(row_hashes(X), row_hashes(np.array([[1.0, 0, 0, 2.0, 0]])))


def test_hash_folds_are_of_even_size():
    X = np.random.default_rng(0).integers(0, 5, size=(20_000, 8)).astype(float)
    folds = HashFolds(5).of(X, 0)
    # Equal rows share a fold, so the spread is a little above binomial.
    np.testing.assert_allclose(np.bincount(folds), 4000, atol=400)


def test_a_column_moved_changes_the_hash():
    X = np.eye(50)
    assert len(np.unique(row_hashes(X))) == 50


def test_batches_must_be_a_function():
    with pytest.raises(TypeError, match="starts a new pass"):
        BatchRows(iter([]), 2)


def test_no_batches_and_batches_of_another_width():
    with pytest.raises(ValueError, match="source of rows is empty"):
        BatchRows(lambda: [], 2).moments(Poisson())
    ragged = [(np.ones((2, 3)), np.array([0, 1])), (np.ones((2, 4)), np.array([0, 1]))]
    with pytest.raises(ValueError, match="starts at row 2 has 4 columns, the first had 3"):
        BatchRows(lambda: ragged, 2).moments(Poisson())


def test_out_of_range_values_in_a_batch_are_named():
    batches = [(np.ones((2, 2)), np.array([0, 1])), (-np.ones((2, 2)), np.array([0, 1]))]
    with pytest.raises(ValueError, match="'words' has -1"):
        BatchRows(lambda: batches, 2, names=["words", "lines"]).moments(Poisson())


def test_weights_of_batches():
    X, codes, weights = np.arange(6.0)[:, None], np.array([0, 1] * 3), np.arange(1.0, 7.0)
    batches = BatchRows(lambda: [(X[:4], codes[:4], weights[:4]), (X[4:], codes[4:], weights[4:])], 2)
    whole = ArrayRows(X, codes, 2, weights).moments(Gaussian())[0]
    got = batches.moments(Gaussian())[0]
    np.testing.assert_allclose(got.weight, whole.weight)
    np.testing.assert_allclose(got.centred()[1], whole.centred()[1], atol=1e-12)
