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

from maxdisc import DiscriminativeMaxEnt, TermFrequencyVectorizer
from maxdisc.testing import random_data


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


# ---------------------------------------------------------------------- the dual


def sparse_rows(n_rows=300, n_features=500, n_classes=4, seed=0):
    """Enough cells for the dual to be chosen, some rows empty, classes of different sizes."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, n_classes, n_rows) * rng.integers(0, 2, n_rows))
    X = rng.exponential(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.05)
    X[:, :5] += 0.3 * y[:, None]
    X[::50] = 0.0
    return sp.csr_array(X), np.array(["a", "b", "c", "d"])[y]


def loss_of(model, X, y, penalty=1.0, weight=1.0):
    log_p = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return 0.5 * penalty * (model.coef_**2).sum() - (weight * log_p).sum()


@pytest.mark.parametrize("name", ["iris", "cancer", "counts"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("penalty", [1.0, 30.0])
def test_the_dual_finds_the_optimum_of_logistic_regression(name, kind, penalty):
    X, y = DATA[name]
    weight = np.random.default_rng(0).uniform(0.0, 3.0, len(y))
    weight[::5] = 0.0
    mine = DiscriminativeMaxEnt("dual", penalty, tol=1e-11, max_iter=20_000).fit(kind(X), y, weight)
    theirs = logistic(X, y, penalty, weight)
    assert mine.converged_
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("tol", [None, 1e-2, 1e-6, 1e-10])
def test_the_gap_of_the_dual_bounds_the_distance_from_the_optimum(n_classes, tol):
    X, y = sparse_rows(n_features=1000, n_classes=n_classes)
    mine = DiscriminativeMaxEnt(tol=tol).fit(X, y)
    best = -DiscriminativeMaxEnt("lbfgs", tol=1e-9, max_iter=5000).fit(X, y).objective_path_[-1]
    assert mine.solver_ == "dual"
    assert mine.converged_
    assert 0 <= mine.gap_ <= (1e-4 if tol is None else tol)
    # Single precision rounds X.
    assert -mine.objective_path_[-1] == pytest.approx(loss_of(mine, X, y), rel=1e-6)
    assert -1e-6 <= loss_of(mine, X, y) / best - 1 <= mine.gap_ + 1e-6


def test_weights_of_the_dual_are_repetitions():
    X, y = sparse_rows()
    times = np.arange(len(y)) % 3
    weighted = DiscriminativeMaxEnt("dual", tol=1e-13).fit(X, y, times)
    repeated = DiscriminativeMaxEnt("dual", tol=1e-13).fit(
        X[np.repeat(np.arange(len(y)), times)], y.repeat(times)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_the_dual_finds_the_same_again_to_the_last_bit():
    X, y = sparse_rows()
    first, second = DiscriminativeMaxEnt().fit(X, y), DiscriminativeMaxEnt().fit(X, y)
    assert first.solver_ == "dual"
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.intercept_, second.intercept_)


@pytest.mark.parametrize("scale", [1e-100, 1e-24, 1e-3, 1e24, 1e100])
def test_the_scale_of_weights_and_penalty_does_not_matter_to_the_dual(scale):
    X, y = sparse_rows()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    first = DiscriminativeMaxEnt().fit(X, y, weight)
    model = DiscriminativeMaxEnt(penalty=scale).fit(X, y, weight * scale)
    assert (first.solver_, model.solver_) == ("dual", "dual")
    np.testing.assert_allclose(model.predict_proba(X), first.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(model.objective_path_[-1], scale * first.objective_path_[-1], rtol=1e-4)


@pytest.mark.parametrize("power", [-300, -60, -10, 10, 60, 300])
def test_the_scale_of_features_and_penalty_does_not_matter_to_the_dual(power):
    X, y = sparse_rows()
    first = DiscriminativeMaxEnt().fit(X, y)
    model = DiscriminativeMaxEnt(penalty=4.0**power).fit(X * 2.0**power, y)
    assert model.solver_ == "dual"
    np.testing.assert_array_equal(model.coef_ * 2.0**power, first.coef_)


@pytest.mark.parametrize(
    "parameters", [{"penalty": 0.0}, {"fit_intercept": False}, {"early_stopping": True}, {"penalty": 1e-9}]
)
def test_what_the_dual_cannot_do_is_refused_or_left_to_lbfgs(parameters):
    X, y = sparse_rows()
    with pytest.raises(ValueError, match=r"solver='dual' cannot .* use solver='lbfgs'"):
        DiscriminativeMaxEnt("dual", **parameters).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert DiscriminativeMaxEnt(max_iter=5, **parameters).fit(X, y).solver_ == "lbfgs"


def test_dense_and_small_rows_are_left_to_lbfgs():
    X, y = sparse_rows()
    for rows in (X.toarray(), X[:, :5]):
        model = DiscriminativeMaxEnt().fit(rows, y)
        assert model.solver_ == "lbfgs"
        assert np.isnan(model.gap_)


def test_the_dual_that_stops_early_says_so_or_is_left_to_lbfgs(monkeypatch):
    X, y = sparse_rows()
    with pytest.warns(ConvergenceWarning, match="dual stopped after 1 steps"):
        model = DiscriminativeMaxEnt("dual", max_iter=1).fit(X, y)
    assert (model.converged_, model.n_iter_) == (False, 1)
    assert model.gap_ > 1e-4
    monkeypatch.setattr("maxdisc.discriminative.AUTO_SWEEPS", 1)
    model = DiscriminativeMaxEnt().fit(X, y)
    assert (model.solver_, model.converged_) == ("lbfgs", True)


def test_a_warm_start_of_the_dual_goes_on():
    X, y = sparse_rows()
    model = DiscriminativeMaxEnt(warm_start=True, tol=1e-6).fit(X, y)
    cold = model.n_iter_
    assert model.solver_ == "dual"
    assert model.fit(X, y).n_iter_ < cold
    assert model.fit(X, np.roll(y, 1)).gap_ <= 1e-6


def test_the_dual_takes_cells_in_any_order_and_adds_those_of_one_place():
    X, y = sparse_rows()
    cells, rng = X.tocoo(), np.random.default_rng(0)
    where = np.tile(rng.permutation(X.nnz), 2)
    row, column, half = cells.row[where], cells.col[where], cells.data[where] / 2
    by_row = np.argsort(row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(y)))])
    halves = sp.csr_array((half[by_row], column[by_row], starts), shape=X.shape)
    assert halves.nnz == 2 * X.nnz
    model, other = (DiscriminativeMaxEnt("dual", tol=1e-14).fit(rows, y) for rows in (X, halves))
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-6)
    assert halves.nnz == 2 * X.nnz
