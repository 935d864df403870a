"""Rows in the partitions of an engine: the sums of all are those of the rows in memory."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp

from maxdisc import MaxDiscClassifier
from maxdisc.families import FAMILIES
from maxdisc.numerics.matrices import is_sparse
from maxdisc.rows.partitions import Looks, PartitionedRows, entrywise
from maxdisc.rows.row_sources import ArrayRows, HashFolds
from maxdisc.testing import check_rows


class Pieces:
    """An engine of one process, through which all that goes is pickled; every other piece is empty."""

    def __init__(self, X, codes, n_classes, cuts=(0, 7, 30, 31)):
        self.pieces = []
        ends = [*cuts[1:], X.shape[0]]
        for start, stop in zip(cuts, ends, strict=True):
            for some in (slice(start, stop), slice(stop, stop)):
                self.pieces.append((X[some], codes[some], n_classes, None, None, some.start))

    def added(self, job):
        job = pickle.loads(pickle.dumps(job))
        return reduce(entrywise, [pickle.loads(pickle.dumps(job(piece))) for piece in self.pieces])


def rows_of(piece):
    return ArrayRows(*piece)


def partitioned(X, codes, n_classes):
    return PartitionedRows(Pieces(X, codes, n_classes), rows_of, n_classes)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_laws_of_rows(family):
    check_rows(partitioned, family)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_blocks_of_features_change_nothing(form, gaps, monkeypatch):
    rng = np.random.default_rng(0)
    X, codes = rng.poisson(1.0, size=(90, 13)).astype(float), np.arange(90) % 3
    if form is np.asarray:
        X[rng.random(X.shape) < gaps] = np.nan
    rows = partitioned(form(X), codes, 3)
    family = FAMILIES["gaussian"]
    whole = rows.moments(family, HashFolds(3))
    blocks = replace(rows, most_bytes=8 * 2 * 3 * 4 * 5)  # of five features
    blocks.example()  # found by a pass of its own
    asked = []
    monkeypatch.setattr(rows.engine, "added", lambda job: asked.append(1) or Pieces.added(rows.engine, job))
    parts = blocks.moments(family, HashFolds(3))
    assert len(asked) == 3
    for part, want in zip(parts, whole, strict=True):
        for name in ("weight", "sums", "origin", "observed", "nonzero"):
            found, due = getattr(part, name), getattr(want, name)
            assert (found is None) == (due is None), name
            if due is not None:
                np.testing.assert_allclose(found, due, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("evidence", ["raw", "calibrated"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_model_is_that_of_the_rows_in_memory(form, evidence):
    rng = np.random.default_rng(1)
    codes = np.arange(240) % 3
    X = rng.poisson(0.5 + (codes[:, None] == np.arange(12) % 3), size=(240, 12)).astype(float)
    here = MaxDiscClassifier("poisson", cv="hash", evidence=evidence).fit(form(X), codes)
    there = MaxDiscClassifier("poisson", cv="hash", evidence=evidence)
    there.fit_rows(partitioned(form(X), codes, 3), np.arange(3))
    assert there.n_selected_ == here.n_selected_
    np.testing.assert_array_equal(there.ranking_, here.ranking_)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-9)


def test_a_negative_value_anywhere_is_seen():
    X = sp.csr_array(np.eye(40))
    model = MaxDiscClassifier(n_features="all", smoothing=1.0, evidence="raw")
    codes = np.arange(40) % 2
    assert model.fit_rows(partitioned(X, codes, 2), [0, 1]).families_[0][0].name == "poisson"
    X = X.tolil()
    X[35, 3] = -1.0
    assert model.fit_rows(partitioned(X.tocsr(), codes, 2), [0, 1]).families_[0][0].name == "gaussian"


def test_no_rows_at_all_and_other_columns():
    assert entrywise([], []) == []
    with pytest.raises(ValueError, match="some partitions have 2 columns, others 3"):
        Looks.at(np.ones((1, 3))) + Looks.at(np.ones((1, 2)))
    assert is_sparse((Looks.at(sp.csr_array((0, 2))) + Looks.at(sp.csr_array((3, 2)))).example)


def test_averages_of_joint_densities_are_refused_in_one_line():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(60, 4)), np.arange(60) % 2
    model = MaxDiscClassifier(structure="joint")
    with pytest.raises(ValueError, match=r"needs the rows in memory or in batches: use evidence='raw'"):
        model.fit_rows(partitioned(X, codes, 2), [0, 1])
