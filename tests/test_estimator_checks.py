"""scikit-learn's checks of every setting that a user may have; `make test-all` runs all but four of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils.estimator_checks import check_estimator

from maxdisc import (
    DiscriminativeMaxEnt,
    Joint,
    MaxDiscClassifier,
    MaxDiscSearchCV,
    Smoothing,
    TermFrequencyVectorizer,
)
from maxdisc.families import FAMILIES, Bernoulli, Beta, Gamma, Support
from maxdisc.numerics.matrices import is_sparse
from maxdisc.words import CountScaler

# How much is chosen, and on how many folds, makes no difference to a check but its time.
FAST = {"cv": 2, "smoothing": 1.0}


class Moved:
    """A family of any numbers, as the checks give them: they are moved into its support."""

    support = Support()
    preserves_zero = integral = False

    def statistics(self, X):
        if is_sparse(X):
            return tuple(map(sp.csr_array, self.statistics(X.toarray())))
        return super().statistics(self.into_support(X))


class MovedBernoulli(Moved, Bernoulli):
    def into_support(self, X):
        return (X > 0).astype(float)


class MovedBeta(Moved, Beta):
    def into_support(self, X):
        return expit(X / 10)


class MovedGamma(Moved, Gamma):
    def into_support(self, X):
        return np.logaddexp(X, 0.0) + 0.01


SETTINGS = {
    "default": MaxDiscClassifier(),
    "raw": MaxDiscClassifier(evidence="raw", **FAST),
    "calibrated": MaxDiscClassifier(evidence="calibrated", **FAST),
    "refined": MaxDiscClassifier(evidence="refined", cv=3, smoothing=1.0),
    "joint": MaxDiscClassifier(structure="joint", cv=2),
    "joint, raw": MaxDiscClassifier(structure="joint", evidence="raw", cv=2),
    "joint, calibrated": MaxDiscClassifier(structure="joint", evidence="calibrated", cv=2),
    "joint, refined": MaxDiscClassifier(structure="joint", evidence="refined", cv=2),
    "joint, per class": MaxDiscClassifier(structure=Joint(covariance="per_class"), evidence="raw", cv=2),
    "joint, greedy": MaxDiscClassifier(structure=Joint(search="greedy"), evidence="raw", cv=2),
    "independent": MaxDiscClassifier(structure="independent", **FAST),
    "redundancy": MaxDiscClassifier(redundancy=1.0, **FAST),
    "redundancy, raw": MaxDiscClassifier(redundancy=1.0, evidence="raw", **FAST),
    "categories": MaxDiscClassifier("categorical", **FAST),
    "one column of categories": MaxDiscClassifier(categorical_features=[0], **FAST),
    "families of columns": MaxDiscClassifier({0: "gaussian"}, **FAST),
    "missing cells tell": MaxDiscClassifier(missing="informative", **FAST),
    "missing cells tell, gaussian": MaxDiscClassifier("gaussian", missing="informative", **FAST),
    "balanced": MaxDiscClassifier(class_weight="balanced", **FAST),
    "hash": MaxDiscClassifier(cv="hash", smoothing=1.0),
    "holdout": MaxDiscClassifier(cv="holdout", smoothing=1.0),
    "shuffled": MaxDiscClassifier(random_state=0, **FAST),
    "one feature": MaxDiscClassifier(n_features=1, **FAST),
    "half of the features": MaxDiscClassifier(n_features=0.5, **FAST),
    "all features": MaxDiscClassifier(n_features="all", evidence="raw", smoothing=Smoothing(1.0)),
    "one_se": MaxDiscClassifier(rule="one_se", **FAST),
    "small": MaxDiscClassifier(rule="small", **FAST),
    "unlabelled": MaxDiscClassifier(unlabelled=-99, **FAST),
    "two threads": MaxDiscClassifier(n_jobs=2, **FAST),
    "vectorizer": MaxDiscClassifier(vectorizer=TermFrequencyVectorizer(), **FAST),
    **{
        f"{divergence}": MaxDiscClassifier(divergence=divergence, **FAST)
        for divergence in ("jeffreys", "kl", "jensen_shannon", "rao")
    },
    **{
        f"{name}, {evidence}": MaxDiscClassifier(name, evidence=evidence, **FAST)
        for name in ("gaussian", "exponential", "geometric", "poisson", "hurdle")
        for evidence in ("raw", "calibrated")
    },
    **{
        f"{family.name}, {evidence}": MaxDiscClassifier(family, n_features=1.0, evidence=evidence, **FAST)
        for family in (MovedBernoulli(), MovedBeta(), MovedGamma())
        for evidence in ("raw", "calibrated")
    },
    "search": MaxDiscSearchCV(cv=3),
    "search in a list": MaxDiscSearchCV([{"smoothing": 1.0}, {"n_features": "all"}], cv=3),
    "search among scales": MaxDiscSearchCV([{"scale": None}, {"scale": "log"}], cv=3),
    "discriminative": DiscriminativeMaxEnt(),
    "discriminative, gis": DiscriminativeMaxEnt("gis", max_iter=30),
    "discriminative, iis": DiscriminativeMaxEnt("iis", max_iter=30),
    "discriminative, dual": DiscriminativeMaxEnt("dual", tol=1e-16),
    "discriminative, early": DiscriminativeMaxEnt(early_stopping=True, validation_fraction=0.3),
    "scaler": CountScaler(),
    "words": TermFrequencyVectorizer(),
}
QUICK = ("default", "joint, raw", "poisson, calibrated", "search in a list")

#: Its rows are negative, whatever the tags say of those that an estimator takes.
NEGATIVE = {"check_class_weight_classifiers": "negative rows"}
#: Families of columns are chosen on folds of their own, which know rows, not weights.
CHOSEN = {"check_sample_weight_equivalence_on_dense_data": "families are chosen on folds of their own"}
#: Which rows stop the solver is a matter of luck, and of how many there are.
STOPPED = dict.fromkeys(
    [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")], "rows are held out"
)
EXPECTED = {
    **{
        f"{name}, {evidence}": NEGATIVE
        for name in ("exponential", "geometric", "poisson", "hurdle")
        for evidence in ("raw", "calibrated")
    },
    "discriminative, early": STOPPED,
    **dict.fromkeys(("one column of categories", "families of columns", "missing cells tell"), CHOSEN),
}


# Of few rows much is said.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one in QUICK else pytest.mark.whole) for one in SETTINGS]
)
def test_scikit_learn_has_no_complaints(name):
    expected = EXPECTED.get(name, {})
    given = {"expected_failed_checks": expected, "on_skip": None, "on_fail": None}
    results = check_estimator(SETTINGS[name], **given)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)


def test_every_family_is_checked():
    assert {name.split(",")[0] for name in SETTINGS} >= FAMILIES.keys()
