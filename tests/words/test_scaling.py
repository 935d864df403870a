"""Counts of a table are scaled as those of documents are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.words import CountScaler
from maxdisc.words.scaling import SCALES

COUNTS = np.array([[3, 1, 0], [0, 2, 2], [0, 0, 0], [5, 0, 0]])


@pytest.mark.parametrize("scale", SCALES)
def test_documents_are_scaled_the_same(scale):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{w}" for w in rng.zipf(1.5, size=rng.integers(0, 60)) % 99) for _ in range(300)]
    train, test = texts[:200], texts[200:]
    words = TermFrequencyVectorizer(scale=None).fit(train)
    scaler = CountScaler(scale).fit(words.transform(train))
    other = TermFrequencyVectorizer(scale=scale).fit(train)
    assert scaler.mean_length_ == pytest.approx(other.mean_length_)
    for some in (train, test):
        a, b = scaler.transform(words.transform(some)), other.transform(some)
        np.testing.assert_allclose(a.toarray(), b.toarray(), rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array, np.ndarray.tolist])
@pytest.mark.parametrize("scale", SCALES)
def test_rows_have_the_length_they_should(scale, form):
    X = form(COUNTS)
    scaled = CountScaler(scale).fit_transform(X)
    assert sp.issparse(scaled)
    dense, mean = scaled.toarray(), COUNTS.sum() / 4
    assert not dense[2].any()
    some = [0, 1, 3]
    if scale == "length":
        np.testing.assert_allclose(dense[some].sum(axis=1), mean)
    elif scale == "frequency":
        np.testing.assert_allclose(dense[some].sum(axis=1), 1)
    elif scale == "log":
        np.testing.assert_allclose(np.sqrt((dense**2).sum(axis=1))[some], mean)
        np.testing.assert_allclose(dense[0, 0] / dense[0, 1], np.log(4) / np.log(2))
    else:
        np.testing.assert_array_equal(dense, COUNTS)


@pytest.mark.parametrize("scale", SCALES)
def test_cells_that_are_stored_in_parts_are_added_first(scale):
    whole = sp.csr_array(np.array([[2.0, 1.0]]))
    parts = sp.csr_array((np.array([1.0, 1.0, 1.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    expected = CountScaler(scale).fit_transform(whole).toarray()
    np.testing.assert_allclose(CountScaler(scale).fit_transform(parts).toarray(), expected)
    assert parts.nnz == 3  # what is given is left as it is


def test_what_is_given_is_left_as_it_is():
    for X in (COUNTS.astype(float), sp.csr_array(COUNTS.astype(float))):
        before = X.copy()
        for scale in SCALES:
            out = CountScaler(scale).fit_transform(X)
            out.data[:] = -1
        assert (before != X).sum() == 0


def test_bad_input_is_refused():
    for X in (-COUNTS, sp.csr_array(-COUNTS)):
        with pytest.raises(ValueError, match="row 0, column 0 has -3"):
            CountScaler().fit(X)
    with pytest.raises(ValueError, match="scale"):
        CountScaler("loud").fit(COUNTS)
    with pytest.raises(ValueError, match="2 features"):
        CountScaler().fit(COUNTS).transform(COUNTS[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        CountScaler().fit([[1.0, np.nan]])


def test_it_works_in_a_pipeline():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.poisson(np.exp(rng.normal(size=(2, 12)))[y] * rng.uniform(0.2, 5, (200, 1)))
    model = make_pipeline(CountScaler("log"), MaxDiscClassifier()).fit(X, y)
    assert model.score(X, y) > 0.8
    assert clone(model)[0].scale == "log"
    assert model[0].get_feature_names_out().tolist() == [f"x{i}" for i in range(12)]
