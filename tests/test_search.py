"""Several models on the same folds: the best is kept, as it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import Pipeline

from maxdisc import MaxDiscClassifier, MaxDiscSearchCV, TermFrequencyVectorizer
from maxdisc.search import FOR_FRAMES, FOR_TABLES, FOR_TEXT, FOR_WIDE_TABLES
from maxdisc.words import CountScaler

RAW = {"evidence": "raw"}


@pytest.fixture(scope="module")
def documents():
    """Words of four topics, each with some of its own, in documents of very different lengths."""
    rng = np.random.default_rng(0)
    common = 1 / np.arange(1, 301)
    rates = common * np.exp(rng.normal(size=(4, 300)))
    y = np.array(["air", "earth", "fire", "water"])[np.arange(420) % 4]
    shares = rates / rates.sum(axis=1, keepdims=True)
    texts = [
        " ".join(f"word{w}" for w in rng.choice(300, size=rng.integers(4, 80), p=shares[i % 4]))
        for i in range(420)
    ]
    return texts, y


@pytest.fixture(scope="module")
def of_documents(documents):
    texts, y = documents
    return MaxDiscSearchCV(vectorizer=TermFrequencyVectorizer(min_count=2)).fit(texts[:300], y[:300])


def counts(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return sp.csr_array(rng.poisson(np.exp(0.6 * rng.normal(size=(3, 30)))[y]).astype(float)), y


def test_documents(documents, of_documents):
    texts, y = documents
    search = of_documents
    assert search.score(texts[300:], y[300:]) > 0.8
    assert isinstance(search.best_estimator_, Pipeline)
    assert isinstance(search.best_estimator_[0], TermFrequencyVectorizer)
    assert search.best_estimator_[0].scale == search.best_params_["scale"]
    assert [r["scale"] for r in search.cv_results_["params"]] == [r["scale"] for r in FOR_TEXT]
    # The pipeline is what it would be if it had been fitted alone.
    alone = Pipeline(
        [
            ("words", TermFrequencyVectorizer(min_count=2, scale=search.best_params_["scale"])),
            ("classify", MaxDiscClassifier(evidence=search.best_params_["evidence"])),
        ]
    ).fit(texts[:300], y[:300])
    np.testing.assert_allclose(alone.predict_proba(texts[300:]), search.predict_proba(texts[300:]), atol=1e-9)
    explained = search.explain(texts[300:303])
    np.testing.assert_allclose(
        explained.prior + explained.length + explained.contributions.sum(axis=2),
        search.best_classifier_.predict_joint_log_proba(search.best_estimator_[0].transform(texts[300:303])),
        atol=1e-8,
    )
    assert set(explained.names) <= set(search.best_estimator_[0].get_feature_names_out())
    assert search.transform(texts[300:303]).shape == (3, search.best_classifier_.n_selected_)
    assert not hasattr(search, "n_features_in_")


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda t: np.array(t, dtype=object), pd.Series])
def test_documents_come_in_many_forms(documents, form):
    texts, y = documents
    search = MaxDiscSearchCV([{"scale": "log", "smoothing": 1.0}]).fit(form(texts[:60]), y[:60])
    assert search.predict(form(texts[60:63])).shape == (3,)


def test_counts_in_a_sparse_table():
    X, y = counts()
    search = MaxDiscSearchCV().fit(X, y)
    assert isinstance(search.best_estimator_[0], CountScaler)
    assert search.n_features_in_ == 30
    assert search.score(X, y) > 0.8
    np.testing.assert_allclose(search.predict_proba(X), np.exp(search.predict_log_proba(X)))
    assert search.explain(X[:2]).names[0].startswith("x")


def test_tables_and_their_names():
    data = load_breast_cancer(as_frame=True)
    search = MaxDiscSearchCV().fit(data.data, data.target)
    assert isinstance(search.best_estimator_, MaxDiscClassifier)
    assert search.cv_results_["params"] == list(FOR_FRAMES)
    assert search.feature_names_in_.tolist() == data.data.columns.tolist()
    assert set(search.explain(data.data[:2]).names) <= set(data.data.columns)
    search.fit(data.data.to_numpy(), data.target)
    assert not hasattr(search, "feature_names_in_")


def test_wide_tables_are_given_joint_densities():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 60)) + 0.8 * y[:, None] * (np.arange(60) < 10)
    search = MaxDiscSearchCV().fit(X, y)
    assert search.cv_results_["params"] == list(FOR_WIDE_TABLES)
    assert search.best_classifier_.joint_ is not None
    assert MaxDiscSearchCV().fit(X[:, :40].tolist(), y.tolist()).cv_results_["params"] == list(FOR_TABLES)
    with pytest.raises(ValueError, match="1D array"):
        MaxDiscSearchCV().fit(X[:, 0], y)


def test_the_best_has_the_least_log_loss_and_ties_go_to_the_earlier():
    X, y = counts()
    same = {"evidence": "calibrated", "smoothing": 1.0}
    search = MaxDiscSearchCV([same, {**same, "n_features": "all"}, dict(same)]).fit(X, y)
    losses = np.array(search.cv_results_["log_loss"])
    assert losses[0] == losses[2]
    assert search.best_index_ == int(np.argmax(losses <= losses.min() * 1.005 + 1e-12))
    assert search.best_index_ < 2
    assert search.best_score_ == -losses[search.best_index_]
    worse = MaxDiscSearchCV([{"n_features": 1}, same]).fit(X, y)
    assert worse.best_index_ == 1
    assert worse.best_params_ == same


def test_what_is_kept_is_the_model_itself():
    X, y = load_iris(return_X_y=True)
    search = MaxDiscSearchCV([{"evidence": "calibrated"}], random_state=3).fit(X, y)
    alone = MaxDiscClassifier(random_state=3).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), alone.predict_proba(X))
    assert search.cv_results_["log_loss"][0] == alone.evidence_.log_loss
    assert search.cv_results_["accuracy"][0] == alone.evidence_.accuracy
    assert search.cv_results_["n_selected"] == [alone.n_selected_]
    assert set(map(len, search.cv_results_.values())) == {1}


def test_raw_candidates_tell_what_their_path_does():
    X, y = counts()
    search = MaxDiscSearchCV([RAW, {"evidence": "calibrated"}]).fit(X, y)
    alone = MaxDiscClassifier(evidence="raw").fit(X, y)
    at = int(np.searchsorted(alone.path_.sizes, alone.n_selected_))
    assert search.cv_results_["log_loss"][0] == pytest.approx(alone.path_.mean_log_loss[at])
    assert search.cv_results_["accuracy"][0] == pytest.approx(alone.path_.mean_accuracy[at])


def test_a_refined_candidate_stands_for_its_calibrated_sibling():
    X, y = counts()
    calibrated = {"scale": "log", "evidence": "calibrated"}
    listed = [calibrated, {"scale": "length"}, {"scale": "log", "evidence": "refined"}]
    search = MaxDiscSearchCV(listed).fit(X, y)
    assert search.cv_results_["params"] == listed[1:]


def test_siblings_with_arrays():
    X, y = counts()
    listed = [{"prior": np.full(3, 1 / 3)}, {"prior": np.full(3, 1 / 3), "evidence": "refined"}]
    assert MaxDiscSearchCV(listed).fit(X, y).best_classifier_.class_prior_[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "cv", [4, "hash", "holdout", StratifiedKFold(3, shuffle=True), ShuffleSplit(3), iter, GroupKFold(3)]
)
def test_all_candidates_have_the_same_folds(cv):
    X, y = counts()
    if cv is iter:
        rows = np.arange(240)
        cv = iter([(rows[rows % 3 != f], rows[rows % 3 == f]) for f in range(3)])
    groups = np.arange(240) // 4 if isinstance(cv, GroupKFold) else None
    same = {"smoothing": 1.0, "n_features": 20}
    search = MaxDiscSearchCV([same, dict(same), {**same, "scale": "log"}], cv=cv).fit(X, y, groups=groups)
    results = search.cv_results_
    assert results["log_loss"][0] == results["log_loss"][1] != results["log_loss"][2]


def test_seeds():
    X, y = counts()
    listed = [{"smoothing": 1.0}, {"smoothing": 1.0}]

    def losses(seed):
        return MaxDiscSearchCV(listed, random_state=seed).fit(X, y).cv_results_["log_loss"]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)
    for seed in (None, 7, np.random.RandomState(0)):
        a, b = losses(seed)
        assert a == b


def test_weights_of_rows_are_passed_on():
    X, y = counts()
    weights = np.where(y == 0, 1e-6, 1.0)
    search = MaxDiscSearchCV([{"smoothing": 1.0}]).fit(X, y, weights)
    assert search.best_classifier_.class_prior_[0] < 1e-3


def test_scikit_learn_can_copy_it():
    search = MaxDiscSearchCV([RAW], TermFrequencyVectorizer(min_count=2), cv=3, random_state=1)
    again = clone(search)
    assert again.get_params()["vectorizer__min_count"] == 2
    assert again.candidates == [RAW]
    X, y = counts()
    search = MaxDiscSearchCV([{"smoothing": 1.0}]).fit(X, y)
    assert search.get_params()["candidates"] == [{"smoothing": 1.0}]
    assert search.set_params(cv=4).cv == 4


def test_the_vectorizer_that_is_given_is_left_as_it_is(documents):
    texts, y = documents
    words = TermFrequencyVectorizer(scale="frequency")
    MaxDiscSearchCV([{"scale": "length", "smoothing": 1.0}], words).fit(texts[:60], y[:60])
    assert words.scale == "frequency"
    assert not hasattr(words, "terms_")


def test_verbose(capsys):
    X, y = counts()
    MaxDiscSearchCV([{"smoothing": 1.0}], verbose=1).fit(X, y)
    assert "held-out log-loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ("all", "candidates must be 'auto' or a list"),
        ([], "candidates are empty"),
        ([{"famly": "poisson"}], "'famly'"),
        ([{"family": "posson"}], "posson"),
        ([{"scale": "loud"}], "scale"),
        ([{"evidence": "raw", "smoothing": 1.0, "n_features": 3}], "nothing to choose"),
        ([{"structure": "joint", "redundancy": 1.0}], "joint"),
        (["raw"], "candidates must be"),
        ([None], "candidates must be"),
        (7, "candidates must be"),
    ],
)
def test_bad_candidates_are_refused_in_one_line(candidates, words):
    X, y = counts(60)
    search = MaxDiscSearchCV(candidates)
    with pytest.raises(ValueError, match=words) as error:
        search.fit(X, y)
    assert "\n" not in str(error.value)
    assert not hasattr(search, "best_estimator_")


def test_bad_data_is_refused_in_one_line():
    X, y = counts(60)
    for rows, labels in (
        (X, np.zeros(60)),
        (X, None),
        (X[:50], y),
        (["some", "words"], [1]),
        (np.array([["a", "b"]] * 60), y),
    ):
        with pytest.raises(ValueError) as error:  # noqa: PT011  # which one is not the matter here
            MaxDiscSearchCV().fit(rows, labels)
        assert "\n" not in str(error.value).strip()
    with pytest.raises(ValueError, match="negative"):
        MaxDiscSearchCV([{"scale": "log"}]).fit(-X, y)
    with pytest.raises(NotFittedError):
        MaxDiscSearchCV().predict(X)
    for method in ("explain", "transform"):
        with pytest.raises(NotFittedError):
            getattr(MaxDiscSearchCV(), method)(X)


def test_missing_cells():
    X, y = load_iris(return_X_y=True)
    X[::7, 1] = np.nan
    assert MaxDiscSearchCV(cv=3).fit(X, y).score(X, y) > 0.9


def test_scaling_knows_the_weights_of_rows():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.poisson(np.exp(rng.normal(size=(3, 8)))[y] * rng.uniform(0.2, 5.0, size=(90, 1)))
    times = rng.integers(0, 3, size=90)
    search = MaxDiscSearchCV([{"scale": "length", "n_features": "all", "evidence": "raw"}], cv="hash")
    weighed = clone(search).fit(X, y, times).predict_proba(X)
    repeated = clone(search).fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict_proba(X)
    np.testing.assert_allclose(weighed, repeated, atol=1e-10)
    with pytest.raises(ValueError, match="at least one non-zero number"):
        clone(search).fit(X, y, np.zeros(90))
