from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxdisc import MaxDiscClassifier, ModelFileError, load, save
from maxdisc.families import Gamma, Gaussian, Hurdle, NumericFamily, Poisson, Support, moments
from maxdisc.families.functions import (
    Cosine,
    Deviation,
    Indicator,
    LogAbove,
    LogBelow,
    Power,
    Sine,
    Spline,
    Table,
)
from maxdisc.model_file import describe
from maxdisc.testing import check_divergence, check_family, check_moments, random_data


def log_factorial(x):
    return -gammaln(np.asarray(x) + 1.0)


def positive(x):
    return (np.asarray(x) > 0).astype(float)


FAMILIES = {
    "interval": NumericFamily(Support(0.0, 1.0), moments(4)),
    "half-line": NumericFamily(Support(0.0), moments(2)),
    "line": NumericFamily(Support(), moments(2)),
    "line, four": NumericFamily(Support(), moments(4)),
    "counts": NumericFamily(Support(0.0, lattice=True), moments(1)),
    "dice": NumericFamily(Support(1.0, 6.0, lattice=True), moments(2)),
    "gamma": NumericFamily(Support(0.0, open_low=True), (Power(1), LogAbove())),
    "beta": NumericFamily(Support(0.0, 1.0, open_low=True, open_high=True), (LogAbove(), LogBelow())),
    "laplace": NumericFamily(Support(), (Deviation(),)),
    "circle": NumericFamily(Support(0.0, 2 * np.pi), (Cosine(), Sine())),
    "shares": NumericFamily(Support(0.0, 1.0), (Indicator(0.0, 0.3), Power(1))),
    "splines": NumericFamily(Support(-1.0, 2.0), (Power(1), Power(2), Spline(0.5))),
    "base": NumericFamily(Support(0.0, lattice=True), moments(1), base=log_factorial),
    "table": NumericFamily(Support(0.0, 3.0, lattice=True), moments(1), base=[0.0, 1.0, 1.0, 0.0]),
    "atom": NumericFamily(Support(0.0, atoms=(0.0,)), (positive, Power(1))),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_laws_of_families_hold(name):
    check_family(FAMILIES[name])
    check_moments(FAMILIES[name])


def test_divergences_hold_on_it():
    from maxdisc.divergences import jeffreys, js_gm

    check_divergence(js_gm, FAMILIES["interval"])
    check_divergence(jeffreys, FAMILIES["gamma"])


@pytest.mark.parametrize(
    ("closed", "numeric"),
    [(Gaussian(), "line"), (Gamma(), "gamma"), (Poisson(), "base"), (Hurdle(), "atom")],
    ids=str,
)
def test_a_classifier_is_the_same_with_the_closed_form(closed, numeric):
    X, y = random_data(closed, 90, 3, 4)
    smoothing, family = 1.0, FAMILIES[numeric]
    a = MaxDiscClassifier(closed, smoothing=smoothing, cv=3).fit(X, y)
    b = MaxDiscClassifier(family, smoothing=smoothing, cv=3).fit(X, y)
    np.testing.assert_allclose(b.scores_, a.scores_, rtol=1e-6)
    np.testing.assert_array_equal(b.ranking_, a.ranking_)
    np.testing.assert_allclose(b.path_.accuracy, a.path_.accuracy)
    np.testing.assert_allclose(b.predict_proba(X), a.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(b.score_samples(X), a.score_samples(X), rtol=1e-6)
    if closed.preserves_zero and closed.support.contains(0.0):
        sparse = sp.csr_array(np.where(np.median(X) > X, 0.0, X))
        again = clone(b).set_params(n_features="all").fit(sparse, y)
        dense = clone(b).set_params(n_features="all").fit(sparse.toarray(), y)
        np.testing.assert_allclose(
            again.predict_proba(sparse), dense.predict_proba(sparse.toarray()), atol=1e-7
        )


@pytest.mark.parametrize("name", ["interval", "line, four", "splines", "circle", "table", "shares"])
def test_classify_explain_sample_and_save(name, tmp_path):
    family = FAMILIES[name]
    X, y = random_data(family, 60, 2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MaxDiscClassifier(family, smoothing=1.0, n_features=2, random_state=0).fit(X, y)
    explanation = model.explain(X[:5])
    np.testing.assert_allclose(
        explanation.prior + explanation.contributions.sum(axis=2), model.predict_joint_log_proba(X[:5])
    )
    drawn, _ = model.sample(200)
    assert family.support.contains(drawn, family.integral).all()
    save(model, tmp_path / "numeric.maxdisc", moments=True)
    again = load(tmp_path / "numeric.maxdisc")
    assert again.family == family
    assert hash(again.family) == hash(family)
    np.testing.assert_array_equal(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    assert describe(tmp_path / "numeric.maxdisc")["format"] == 3


def test_functions_of_the_users_own_go_by_name(tmp_path):
    family = FAMILIES["atom"]
    X, y = random_data(family, 60, 2, 3)
    model = MaxDiscClassifier(family, smoothing=1.0).fit(X, y)
    path = tmp_path / "own.maxdisc"
    with pytest.raises(ModelFileError, match="positive cannot be saved: pass functions="):
        save(model, path)
    save(model, path, functions={"positive": positive})
    with pytest.raises(ModelFileError, match="called 'positive'"):
        load(path)
    again = load(path, functions={"positive": positive})
    np.testing.assert_array_equal(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))


HOSTILE = [
    [],
    ["n", ["inf", 1.0, False, False, False, []], [{"call": ["Power", 1]}], None],
    ["n", [0.0, 1.0, False, False, False, []], [], None],
    ["n", [0.0, 1.0, False, False, False, []], [{"call": ["Power", 10**9]}], None],
    ["n", [0.0, 1.0, False, False, False, []], [{"call": ["Power", 1.0]}], None],
    ["n", [0.0, 1.0, False, False, False, []], [{"call": ["eval", 1]}], None],
    ["n", [0.0, 1.0, False, False, False, []], [{"call": ["LogAbove", 0.5]}], None],
    ["n", [0.0, 1.0, False, False, False, []], [{"call": ["Table", 0.0, []]}], None],
    ["n", [0.0, 1.0, False, False, False, []], ["x"], None],
    ["n", [0.0, 1.0, False, False, False, []], [{"call": ["Power", 1]}], 5],
    ["n", [0.0, 1.0, 1, False, False, []], [{"call": ["Power", 1]}], None],
    ["n", ["-inf", "inf", False, False, False, []], [{"call": ["Power", 1]}], None],
    ["n", ["-inf", "inf", True, False, False, []], [{"call": ["Power", 2]}], None],
    [5, [0.0, 1.0, False, False, False, []], [{"call": ["Power", 1]}], None],
]


@pytest.mark.parametrize("content", HOSTILE, ids=str)
def test_hostile_descriptions_are_refused(content):
    from maxdisc.model_file.values import decoded

    with pytest.raises(ModelFileError, match="does not know"):
        decoded({"numeric": content}, {})


def test_features_without_a_density_are_named():
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(80, 3)))
    X[:, 1] = np.where(rng.random(80) < 0.05, 30.0, rng.random(80))  # far too heavy a tail
    y = np.arange(80) % 2
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "heavy", "c"])
    model = MaxDiscClassifier(NumericFamily(Support(0.0), moments(2)), smoothing=1.0, n_features="all")
    with pytest.warns(ConvergenceWarning, match=r"for 1 features, first column 'heavy'"):
        model.fit(frame, y)
    assert np.isfinite(model.predict_proba(frame)).all()


def test_constant_features_say_nothing():
    X = np.random.default_rng(0).random((40, 3))
    X[:, 1] = 0.25
    y = (X[:, 0] > 0.5).astype(int)
    model = MaxDiscClassifier(
        NumericFamily(Support(0.0, 1.0), moments(2)), smoothing=1.0, n_features="all"
    ).fit(X, y)
    assert model.scores_[1] == 0
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.sample(5)[0][:, 1], 0.25)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: NumericFamily((0, 1), moments(2)), "must be a Support"),
        (lambda: NumericFamily(Support(0.0, 1.0), [1, 2]), "must be functions"),
        (lambda: NumericFamily(Support(0.0, 1.0), np.log), "must be functions"),
        (lambda: NumericFamily(Support(0.0, 1.0), (np.sum,)), "one number for each value"),
        (lambda: NumericFamily(Support(-1.0, 1.0), (LogAbove(),)), "not finite at"),
        (lambda: NumericFamily(Support(0.0, 1.0), (Power(1), Power(1))), "the same twice"),
        (lambda: NumericFamily(Support(0.0, 1.0, lattice=True), moments(2)), "the same twice"),
        (lambda: NumericFamily(Support(0.0, 1.0), (lambda _: 1 / 0,)), "fails on an array"),
        (lambda: NumericFamily(Support(0.0, 3.0, lattice=True), moments(1), base=[1.0, 2.0]), "2 points"),
        (lambda: NumericFamily(Support(0.0), moments(1), name=""), "name of a family"),
    ],
)
def test_bad_families_are_refused(make, complaint):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=complaint):
        make()


def test_values_out_of_the_support_are_refused_by_column():
    with pytest.raises(ValueError, match="column 1 has 2 in row 0"):
        FAMILIES["interval"].require(np.array([[0.5, 2.0]]))


def test_equal_families_are_equal():
    again = NumericFamily(Support(0.0, 1.0), moments(4))
    assert again == FAMILIES["interval"]
    assert again != NumericFamily(Support(0.0, 1.0), moments(3))
    assert "Power(order=4)" in repr(again)
    assert Table(0.0, (1.0,)) == Table(0.0, (1.0,))
