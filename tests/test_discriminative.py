"""The discriminative estimator: scikit-learn's contract, with its logistic regression as the oracle."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxdisc import DiscriminativeMaxEnt, TermFrequencyVectorizer
from maxdisc.testing import random_data


@parametrize_with_checks([DiscriminativeMaxEnt()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.whole
@parametrize_with_checks([DiscriminativeMaxEnt("gis", max_iter=30), DiscriminativeMaxEnt("iis", max_iter=30)])
def test_scikit_learns_checks_of_scaling(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def wine():
    return load_wine(return_X_y=True)


def counts():
    X, y = random_data("poisson", 120, 4, 60, seed=1)
    return X, y


DATA = {f.__name__: f() for f in (iris, cancer, wine, counts)}


def logistic(X, y, penalty, weight=None, **options):
    # Newton's method is exact; scikit-learn's own L-BFGS is not, on features of very different scales.
    model = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-12, max_iter=1000, **options)
    with warnings.catch_warnings():
        # At the last digit older versions find no step that is still downhill.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, weight)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array, pytest.param(sp.csc_matrix, marks=pytest.mark.whole)]
)
@pytest.mark.parametrize("penalty", [pytest.param(0.1, marks=pytest.mark.whole), 1.0, 30.0])
def test_it_is_logistic_regression_at_the_same_penalty(name, kind, penalty):
    X, y = DATA[name]
    mine = DiscriminativeMaxEnt(penalty=penalty, tol=1e-9, max_iter=5000).fit(kind(X), y)
    theirs = logistic(X, y, penalty)
    assert mine.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(mine.predict_proba(kind(X)), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize("name", ["iris", "cancer"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_logistic_regression_with_sample_weights(name, fit_intercept):
    X, y = DATA[name]
    weight = np.random.default_rng(0).uniform(0.0, 3.0, len(y))
    weight[::5] = 0.0
    mine = DiscriminativeMaxEnt(tol=1e-9, fit_intercept=fit_intercept, max_iter=5000).fit(X, y, weight)
    theirs = logistic(X, y, 1.0, weight, fit_intercept=fit_intercept)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-4)


def test_features_of_different_scales_take_few_steps():
    X, y = DATA["wine"]
    mine = DiscriminativeMaxEnt(tol=1e-9, max_iter=200).fit(X, y)
    assert mine.converged_
    np.testing.assert_allclose(mine.coef_, logistic(X, y, 1.0).coef_, atol=1e-6)


def test_by_default_it_agrees_with_the_default_of_logistic_regression():
    X, y = DATA["iris"]
    mine, theirs = DiscriminativeMaxEnt().fit(X, y), logistic(X, y, 1.0)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def blobs():
    """Balanced and centred, so that the biases start at their optimum."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 3)) + 0.5 * y[:, None]
    return X - X.mean(axis=0), y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_scale_of_the_features_does_not_matter(kind, fit_intercept):
    X, y = blobs()
    model = DiscriminativeMaxEnt(penalty=0.0, fit_intercept=fit_intercept)
    expected = model.fit(kind(X), y).predict_proba(X)
    assert model.score(X, y) > 0.6
    for power in (-100, -12, -9, -6, -3, 3, 6, 9, 12, 100):
        scaled = kind(X * 10.0**power)
        assert model.fit(scaled, y).converged_
        np.testing.assert_allclose(model.predict_proba(scaled), expected, atol=1e-5)
    each = kind(X * [1e-12, 1.0, 1e12])
    assert model.fit(each, y).converged_
    np.testing.assert_allclose(model.predict_proba(each), expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["lbfgs", "gis", "iis"])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_the_scale_of_weights_and_penalty_does_not_matter(solver, penalty):
    X, y = blobs()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 200)
    # A few steps of a scaling are enough to see that all of them are the same.
    steps = {"max_iter": 1000 if solver == "lbfgs" or penalty == 0 else 50}
    first = DiscriminativeMaxEnt(solver, penalty, **steps).fit(X, y, weight)
    assert first.converged_ == (steps["max_iter"] > 50)
    assert first.score(X, y) > 0.6
    for scale in (1e-100, 1e-24, 1e-3, 1e24, 1e100):
        model = DiscriminativeMaxEnt(solver, penalty * scale, **steps).fit(X, y, weight * scale)
        assert model.converged_ == first.converged_
        np.testing.assert_allclose(model.predict_proba(X), first.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(model.objective_path_[-1], scale * first.objective_path_[-1], rtol=1e-9)
    huge = DiscriminativeMaxEnt(solver, penalty=0.0).fit(X, y, np.full(200, 1e307))
    np.testing.assert_allclose(
        huge.predict_proba(X), DiscriminativeMaxEnt(solver, penalty=0.0).fit(X, y).predict_proba(X), atol=1e-6
    )


@pytest.mark.parametrize("solver", ["gis", "iis"])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scalings_that_do_not_get_there_say_so(solver, scale):
    X, y = blobs()
    with pytest.warns(ConvergenceWarning, match="not at the optimum"):
        model = DiscriminativeMaxEnt(solver, penalty=0.0, max_iter=20).fit(X * scale, y)
    assert not model.converged_


@pytest.mark.parametrize("solver", ["gis", "iis"])
@pytest.mark.parametrize("name", ["iris", "cancer"])
def test_scaling_finds_the_same_model(solver, name):
    X, y = DATA[name]
    X = X - X.mean(axis=0) if name == "iris" else X[:, :5]
    mine = DiscriminativeMaxEnt(solver, penalty=20.0, tol=1e-6, max_iter=50_000).fit(X, y)
    theirs = logistic(X, y, 20.0)
    assert mine.converged_
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert (np.diff(mine.objective_path_) >= -1e-10 * np.abs(mine.objective_path_[:-1])).all()


@pytest.mark.parametrize("solver", ["lbfgs", "gis"])
def test_what_has_not_converged_says_so(solver):
    X, y = DATA["wine"]
    with pytest.warns(ConvergenceWarning, match=f"{solver} stopped after 3 steps"):
        model = DiscriminativeMaxEnt(solver, max_iter=3).fit(X, y)
    assert (model.converged_, model.n_iter_) == (False, 3)
    assert np.isfinite(model.coef_).all()


def test_early_stopping_holds_rows_out_and_is_reproducible():
    # Many features, little signal, hardly any penalty: the last step is not the best one.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 40))
    y = (X[:, 0] + 0.7 * rng.normal(size=300) > 0).astype(int)
    full = DiscriminativeMaxEnt(penalty=1e-6).fit(X[:100], y[:100])
    models = [
        DiscriminativeMaxEnt(penalty=1e-6, early_stopping=True, validation_fraction=0.2, random_state=r)
        for r in (0, 0, 1)
    ]
    a, b, c = (model.fit(X[:100], y[:100]) for model in models)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert (a.coef_ != c.coef_).any()

    assert a.converged_

    def loss(model):
        codes = np.searchsorted(model.classes_, y[100:])
        return -model.predict_log_proba(X[100:])[np.arange(200), codes].mean()

    assert loss(a) < 0.9 * loss(full)


def test_early_stopping_needs_rows_to_hold_out():
    with pytest.raises(ValueError, match="holds out no row of any class"):
        DiscriminativeMaxEnt(early_stopping=True).fit([[0.0], [1.0]], [0, 1])


def test_a_warm_start_goes_on():
    X, y = DATA["wine"]
    model = DiscriminativeMaxEnt(warm_start=True).fit(X, y)
    first = model.coef_
    assert model.fit(X, y).n_iter_ == 0
    np.testing.assert_allclose(model.coef_, first, rtol=1e-12)
    # Other classes, or other features, begin anew.
    assert model.fit(X, y > 0).n_iter_ > 0
    assert model.fit(X[:, :3], y > 0).n_iter_ > 0


@pytest.mark.parametrize("name", ["iris", "cancer"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_an_explanation_is_an_exact_sum(name, kind):
    X, y = DATA[name]
    X = X.copy()
    X[:7, 1] = 0.0
    model = DiscriminativeMaxEnt().fit(X, y)
    why = model.explain(kind(X[:7]))
    assert why.contributions.shape == (7, len(model.classes_), X.shape[1] - 1)
    assert "x1" not in why.names
    np.testing.assert_allclose(why.total, why.prior + why.contributions.sum(axis=2), atol=1e-10)
    odds = why.total - why.total[:, :1]
    expected = model.predict_log_proba(X[:7])
    np.testing.assert_allclose(odds, expected - expected[:, :1], atol=1e-8)
    assert why.top(0)


def test_names_of_a_frame_are_kept():
    X, y = DATA["iris"]
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert list(DiscriminativeMaxEnt().fit(frame, y).explain(frame[:1]).names) == list("abcd")


def test_documents_in_a_pipeline():
    texts, topics = ["red apple", "green apple", "fast car", "slow car"] * 3, ["fruit"] * 2 + ["road"] * 2
    model = make_pipeline(TermFrequencyVectorizer(), DiscriminativeMaxEnt()).fit(texts, topics * 3)
    assert model.predict(["an apple", "the car"]).tolist() == ["fruit", "road"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "sgd"}, "solver='sgd' is not available"),
        ({"penalty": -1}, "penalty must be a finite number of at least 0.0, got -1"),
        ({"penalty": None}, "penalty must be"),
        ({"penalty": np.inf}, "penalty must be"),
        ({"tol": np.nan}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"max_iter": 2.5}, "max_iter must be an integer"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a share"),
    ],
)
def test_parameters_that_make_no_sense(parameters, message):
    with pytest.raises(ValueError, match=message):
        DiscriminativeMaxEnt(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_bad_input_ends_in_one_line():
    model = DiscriminativeMaxEnt()
    with pytest.raises(ValueError, match="one class only, 'a'"):
        model.fit([[0.0], [1.0]], ["a", "a"])
    with pytest.raises(ValueError, match="no label"):
        model.fit([[0.0], [1.0]], ["a", None])
    with pytest.raises(ValueError, match="non-zero number"):
        model.fit([[0.0], [1.0]], [0, 1], sample_weight=[0, 0])
    with pytest.raises(ValueError, match="one class only"):
        model.fit([[0.0], [1.0]], [0, 1], sample_weight=[0, 1])
    with pytest.raises(ValueError, match="holds text"):
        model.fit([["a"], ["b"]], [0, 1])
    model.fit([[0.0], [1e-3]], [0, 1])
    model.coef_ = model.coef_ * 1e10
    with pytest.raises(ValueError, match="row 1 has values that are too large"):
        model.predict([[1.0], [1e308]])
