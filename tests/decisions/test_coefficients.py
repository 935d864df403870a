"""Coefficients have the probabilities of the decision, wherever it is linear in X."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel

from maxdisc import Joint, MaxDiscClassifier
from maxdisc.decisions.by_length import LengthDecision, scale_selected
from maxdisc.decisions.coefficients import coefficients
from maxdisc.decisions.linear import LinearDecision
from maxdisc.families import NumericFamily, Poisson
from maxdisc.families.functions import Power
from maxdisc.families.support import Support
from tests.conftest import examples


def require_law(model, X):
    """The law that the docstring of ``coef_`` states."""
    scores = X @ model.coef_.T + model.intercept_
    n_classes = len(model.classes_)
    n_rows = 1 if n_classes == 2 else n_classes
    assert model.coef_.shape == (n_rows, X.shape[1])
    assert model.intercept_.shape == (n_rows,)
    expected = model.predict_proba(X)
    found = np.hstack([1 - expit(scores), expit(scores)]) if n_classes == 2 else softmax(scores, axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert not model.coef_[:, ~model.get_support()].any()


def rows(family, n_classes, seed, n=60, d=7):
    rng, y = np.random.default_rng(seed), np.arange(n) % n_classes
    level = 0.3 + rng.random((n_classes, d))[y]
    draws = {
        "poisson": lambda: rng.poisson(3 * level),
        "geometric": lambda: rng.geometric(1 / (1 + 3 * level)) - 1,
        "bernoulli": lambda: rng.random((n, d)) < level / 1.5,
        "exponential": lambda: rng.exponential(3 * level),
    }
    return draws[family]().astype(float), y


@examples(60)
@given(
    st.sampled_from(["poisson", "geometric", "bernoulli", "exponential"]),
    st.sampled_from([2, 3]),
    st.sampled_from(["raw", "calibrated"]),
    st.sampled_from([3, "all"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_families_whose_statistic_is_x_are_linear(family, n_classes, evidence, size, sparse, seed):
    X, y = rows(family, n_classes, seed)
    X = sp.csr_array(X) if sparse else X
    model = MaxDiscClassifier(family, evidence=evidence, n_features=size, structure="independent", cv=2)
    require_law(model.fit(X, y), X)


def test_refined_evidence_of_sparse_rows_is_linear():
    X, y = rows("poisson", 3, 0)
    require_law(
        MaxDiscClassifier("poisson", evidence="refined", cv=3).fit(sp.csr_array(X), y), sp.csr_array(X)
    )


@pytest.mark.parametrize("evidence", ["raw", "calibrated"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_joint_densities_with_one_covariance_are_linear(evidence, n_classes):
    rng, y = np.random.default_rng(3), np.arange(60) % n_classes
    X = 5 + rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6)) + y[:, None]
    X[:, 2] = 4.0
    joint = Joint("shared", transform=None)
    model = MaxDiscClassifier(structure=joint, evidence=evidence, cv=3).fit(X, y)
    require_law(model, X)


def test_a_family_of_ones_own_is_linear_if_its_statistic_is_x():
    rng = np.random.default_rng(1)
    weights, baseline, X = rng.normal(size=(1, 3, 2)), rng.normal(size=(3, 2)), rng.random((5, 4))
    for order in (1, 2):
        family = NumericFamily(Support(0.0, np.inf), [Power(order)])
        given = (np.array([3, 0]), np.array([0.5, 0.2]), weights, baseline, np.log([0.2, 0.3, 0.5]))
        decision = LinearDecision(family, *given)
        if order == 2:
            with pytest.raises(AttributeError, match="scores of numeric densities are not linear in X"):
                coefficients(decision, 4)
            continue
        coef, intercept = coefficients(decision, 4)
        np.testing.assert_allclose(X @ coef.T + intercept, decision.scores(X), atol=1e-12)


def test_evidence_of_the_longest_documents_is_linear():
    rng, y = np.random.default_rng(5), np.arange(90) % 3
    words = np.array([f"w{k}" for k in range(30)])
    shares = rng.dirichlet(np.ones(30), 3)
    documents = [" ".join(rng.choice(words, rng.integers(4, 60), p=shares[c])) for c in y]
    model = MaxDiscClassifier(evidence="refined", cv=3).fit(documents, y)
    decision = model.decision_
    assert isinstance(decision, LengthDecision)
    X = model.vectorizer_.transform(documents)
    scaled = scale_selected(X, decision.columns, decision.lengths.length)
    longest = np.diff(scaled.indptr) >= decision.lengths.counts[-1]
    assert longest.any()
    found = (scaled @ model.coef_.T + model.intercept_)[longest]
    np.testing.assert_allclose(found, decision.scores(X)[longest], atol=1e-9)


CANCER = load_breast_cancer(as_frame=True)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (
            MaxDiscClassifier("gaussian", structure="independent"),
            "scores of gaussian densities are not linear",
        ),
        (MaxDiscClassifier(structure="independent"), "columns have families of their own"),
        (MaxDiscClassifier(structure=Joint("per_class")), "needs classes with one covariance"),
        (MaxDiscClassifier(structure=Joint("shared", transform="log")), "linear in the logs of X"),
    ],
)
def test_what_is_not_linear_says_why_in_one_line(model, why):
    model.fit(CANCER.data.iloc[:, :4], CANCER.target)
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match=why) as error:
            getattr(model, name)
        assert "\n" not in str(error.value)
    assert not hasattr(model, "coef_")


def test_an_unfitted_model_has_none():
    with pytest.raises(NotFittedError):
        _ = MaxDiscClassifier().coef_


def test_selection_by_coefficients_keeps_what_the_model_selected():
    X, y = rows("poisson", 3, 2)
    selector = SelectFromModel(MaxDiscClassifier(Poisson(), n_features=2, evidence="raw"), threshold=1e-12)
    assert selector.fit(X, y).get_support().sum() == 2
