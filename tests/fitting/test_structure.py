"""``structure="auto"``: joint densities where a dense table has more features than rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from maxdisc import Joint, MaxDiscClassifier
from maxdisc.rows.row_sources import ArrayRows


def wide(n=40, d=60, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    X[:, : d // 4] += rng.normal(size=(classes, d // 4))[y]
    return X, y


def spread(n=300, d=10, seed=3):
    """Two classes that differ by their deviations alone: no shared covariance can tell them apart."""
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(size=(n, d)) * np.where(y, 1.0, 2.0)[:, None], y


def test_more_features_than_rows_are_described_jointly():
    X, y = spread(40, 60)
    assert MaxDiscClassifier().fit(X, y).joint_ is not None
    assert "joint densities" in repr(MaxDiscClassifier().fit(X, y))
    assert MaxDiscClassifier().fit(X[:, :40], y).joint_ is None
    asked = MaxDiscClassifier(structure="joint").fit(X, y)
    np.testing.assert_array_equal(MaxDiscClassifier().fit(X, y).predict_proba(X), asked.predict_proba(X))


def test_of_other_small_tables_held_out_rows_decide():
    for X, y in (spread(), wide(300, 10)):
        structures = ("auto", "independent", "joint")
        auto, alone, joint = (MaxDiscClassifier(structure=s).fit(X, y) for s in structures)
        best = min((alone, joint), key=lambda model: model.evidence_.log_loss)
        np.testing.assert_array_equal(auto.predict_proba(X), best.predict_proba(X))
    assert MaxDiscClassifier().fit(*spread()).joint_ is None
    assert MaxDiscClassifier().fit(*wide(300, 10)).joint_ is not None
    # Folds that can be had only once serve both.
    X, y = wide(300, 10)
    splits = list(StratifiedKFold(5).split(X, y))
    model = MaxDiscClassifier(cv=iter(splits)).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), MaxDiscClassifier(cv=splits).fit(X, y).predict(X))


def test_very_small_and_large_tables_are_independent():
    assert MaxDiscClassifier().fit(*wide(100, 10)).joint_ is None
    assert MaxDiscClassifier(cv=2).fit(*wide(2100, 10)).joint_ is None
    assert MaxDiscClassifier(evidence="raw").fit(*wide(300, 10)).joint_ is None


def test_weights_count_as_numbers_of_rows():
    X, y = spread(40, 60)
    weights = np.ones(len(y))
    assert MaxDiscClassifier().fit(X, y, sample_weight=2 * weights).joint_ is None
    twice = MaxDiscClassifier(cv="hash").fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    weighed = MaxDiscClassifier(cv="hash").fit(X, y, sample_weight=2 * weights)
    assert twice.joint_ is weighed.joint_ is None
    assert MaxDiscClassifier().fit(X, y, sample_weight=weights / 100).joint_ is not None
    extra, other = spread(30, 60, seed=1)
    both = np.vstack([X, extra]), np.concatenate([y, other])
    model = MaxDiscClassifier().fit(*both, sample_weight=np.concatenate([weights, np.zeros(30)]))
    assert model.joint_ is not None


@pytest.mark.parametrize(
    "parameters",
    [
        {"family": "exponential"},
        {"redundancy": 1.0},
        {"n_features": 10},
        {"smoothing": 1.0},
        {"evidence": "raw"},
        {"missing": "informative"},
        {"structure": "independent"},
    ],
    ids=str,
)
def test_what_joint_densities_do_not_have_is_not_given_up(parameters):
    X, y = wide()
    assert MaxDiscClassifier(**parameters).fit(np.exp(X), y).joint_ is None


def test_rows_that_are_not_a_dense_table_of_numbers():
    X, y = wide()
    assert MaxDiscClassifier().fit(sp.csr_array(np.maximum(X, 0)), y).joint_ is None
    frame = pd.DataFrame(X).rename(columns=str)
    assert MaxDiscClassifier().fit(frame, y).joint_ is not None
    assert MaxDiscClassifier().fit(frame.assign(word="a"), y).joint_ is None
    assert MaxDiscClassifier().fit_rows(ArrayRows(X, y, 2), [0, 1]).joint_ is None


@pytest.mark.parametrize("make", [wide, spread])
def test_rows_without_a_label_make_nothing_worse(make):
    X, y = make(200, 12)
    partly = np.where(np.arange(len(y)) % 4, y.astype(object), None)
    known = partly != None  # noqa: E711  # of each row
    model = MaxDiscClassifier().fit(X, partly)
    joint = MaxDiscClassifier(structure="joint").fit(X[known], y[known])
    alone = MaxDiscClassifier(structure="independent").fit(X, partly)
    best = min((alone, joint), key=lambda found: found.evidence_.log_loss)
    np.testing.assert_array_equal(model.predict_proba(X), best.predict_proba(X))


def test_missing_cells_do_not_change_the_rule():
    X, y = wide()
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model = MaxDiscClassifier().fit(X, y)
    assert model.joint_ is not None
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_frame_of_numbers_is_the_table_that_it_holds():
    X, y = wide()
    frame = pd.DataFrame(X).rename(columns=str)
    model = MaxDiscClassifier().fit(frame, y)
    assert model.feature_names_in_.tolist() == list(frame)
    np.testing.assert_array_equal(model.predict_proba(frame), MaxDiscClassifier().fit(X, y).predict_proba(X))


@pytest.mark.parametrize("d", [30, 60], ids=["independent", "joint"])
def test_every_method_is_there_whatever_was_chosen(d):
    X, y = spread(40, d)
    model = MaxDiscClassifier(random_state=0).fit(X, y)
    assert (model.joint_ is not None) == (d > len(y))
    assert model.sample(5)[0].shape == (5, d)
    assert np.isfinite(model.score_samples(X)).all()
    assert ((model.novelty(X) > 0) & (model.novelty(X) <= 1)).all()
    assert len(model.ranking_table()["feature"]) == d
    assert np.isfinite(model.ranking_table(X, y, n_permutations=20)["p"]).all()
    explanation = model.explain(X[:3])
    total = explanation.prior + explanation.contributions.sum(axis=-1)
    np.testing.assert_allclose(total, model.predict_joint_log_proba(X[:3]), atol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert clone(model).fit(X, y).partial_fit(X, y).n_features_in_ == d
        assert clone(model).fit(X, y).choose_n_features(X, y).path_ is not None


def test_batches_go_on_with_independent_features():
    X, y = wide()
    more, labels = wide(seed=1)
    model = MaxDiscClassifier().fit(X, y)
    with pytest.warns(UserWarning, match="partial_fit goes on with independent features"):
        model.partial_fit(more, labels)
    begun = MaxDiscClassifier().partial_fit(X, y).partial_fit(more, labels)
    assert model.joint_ is None
    np.testing.assert_allclose(model.predict_proba(X), begun.predict_proba(X), rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(more, labels)


def test_batches_go_on_with_the_model_that_was_compared():
    X, y = wide(300, 10)
    more, labels = wide(100, 10, seed=1)
    model = MaxDiscClassifier().fit(X, y)
    assert model.joint_ is not None
    with pytest.warns(UserWarning, match="partial_fit goes on with independent features"):
        model.partial_fit(more, labels)
    alone = MaxDiscClassifier(structure="independent").fit(X, y).partial_fit(more, labels)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(model.novelty(X), alone.novelty(X))


@pytest.mark.parametrize("structure", ["joint", Joint()], ids=str)
def test_batches_are_refused_where_joint_densities_were_asked_for(structure):
    X, y = wide()
    assert not hasattr(MaxDiscClassifier(structure=structure), "partial_fit")
    with pytest.raises(ValueError, match="choose_n_features keeps sums for each feature alone"):
        MaxDiscClassifier(structure=structure).fit(X, y).choose_n_features(X, y)
