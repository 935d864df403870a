"""What rows do not tell does not matter: labels' names, orders, repetition, frames and units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import get_tags

from maxdisc import DiscriminativeMaxEnt, Joint, MaxDiscClassifier, MaxDiscSearchCV, Smoothing
from maxdisc.families import FAMILIES
from maxdisc.fitting.cross_validation import fold_plans
from maxdisc.fitting.invariances import EXCEPTIONS
from maxdisc.rows.family_choice import chosen_families
from maxdisc.testing import check_invariances, random_data, taking

ROOT = Path(__file__).parents[1]
whole = pytest.mark.whole
SPARSE = ("exponential", "bernoulli", "geometric", "poisson", "hurdle")
#: Conditional models of few rows are solved in double precision, by scipy.
DOUBLE = 1e-5
evidences = pytest.mark.parametrize(
    ("evidence", "tolerance"),
    [
        pytest.param("raw", None, marks=whole),
        ("calibrated", None),
        pytest.param("refined", DOUBLE, marks=whole),
    ],
)


def drawn(name, n_rows=90, seed=0):
    """Rows of three classes in a random order."""
    X, y = random_data(name, n_rows, 3, 6, seed)
    order = np.random.default_rng(seed).permutation(n_rows)
    return X[order], y[order]


def shuffled(load, n_rows=None):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))[:n_rows]
    return X[order], y[order]


def table():
    """A frame of numbers of several kinds, and of words; some cells are missing."""
    X, y = shuffled(load_wine)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X[:, [0, 6, 12]], columns=["alcohol", "flavanoids", "proline"])
    frame["cases"] = rng.poisson(2.0 + y)
    frame["taste"] = np.where(rng.random(len(y)) < 0.3, "dry", np.where(y == 0, "sweet", "bitter"))
    return frame.mask(rng.random(frame.shape) < 0.05), y


@evidences
@pytest.mark.parametrize("name", FAMILIES)
def test_families(name, evidence, tolerance):
    check_invariances(MaxDiscClassifier(name, evidence=evidence), *drawn(name), tolerance)


@evidences
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows(name, evidence, tolerance):
    X, y = drawn(name)
    check_invariances(MaxDiscClassifier(name, evidence=evidence), sp.csr_array(X), y, tolerance)


SETTINGS = {
    "default": MaxDiscClassifier(),
    "independent": MaxDiscClassifier(structure="independent"),
    "refined": MaxDiscClassifier(structure="independent", evidence="refined"),
    "joint": MaxDiscClassifier(structure="joint"),
    "joint raw": MaxDiscClassifier(structure="joint", evidence="raw"),
    "joint refined": MaxDiscClassifier(structure="joint", evidence="refined"),
    "joint greedy": MaxDiscClassifier(structure=Joint(search="greedy"), evidence="raw", n_features=4),
    "joint per class": MaxDiscClassifier(structure=Joint(covariance="per_class"), evidence="raw"),
    "redundancy": MaxDiscClassifier(redundancy=1.0),
    "balanced": MaxDiscClassifier(class_weight="balanced", structure="independent"),
    "weights of classes": MaxDiscClassifier(class_weight={0: 2.0, 2: 0.5}, structure="independent"),
    "prior": MaxDiscClassifier(prior=[0.2, 0.3, 0.5], structure="independent"),
    "shuffled": MaxDiscClassifier(random_state=0, structure="independent"),
    "holdout": MaxDiscClassifier(cv="holdout", structure="independent"),
    "hash": MaxDiscClassifier(cv="hash", structure="independent"),
    "splitter": MaxDiscClassifier(cv=StratifiedKFold(3), structure="independent"),
    "few": MaxDiscClassifier(rule="one_se", structure="independent", divergence="jeffreys"),
    "settled": MaxDiscClassifier(n_features=5, evidence="raw", smoothing=Smoothing(1.0)),
    "search": MaxDiscSearchCV(),
    "listed": MaxDiscSearchCV([{"smoothing": 1.0}, {"n_features": "all", "evidence": "raw"}]),
}
QUICK = ("default", "joint raw", "redundancy", "balanced", "prior", "shuffled", "hash", "settled")


@pytest.mark.parametrize("name", [pytest.param(one, marks=[] if one in QUICK else whole) for one in SETTINGS])
def test_settings(name):
    model = SETTINGS[name]
    is_solved = "solver" in get_tags(model).invariance_exceptions
    check_invariances(model, *shuffled(load_wine, 90), DOUBLE if is_solved else None)


@whole
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("name", ["default", "refined", "redundancy"])
def test_settings_on_whole_tables(name, load):
    with taking("plain"):
        check_invariances(SETTINGS[name], *shuffled(load))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"cv": "hash"},
        *(
            pytest.param(given, marks=whole)
            for given in (
                {"missing": "informative"},
                {"family": "categorical"},
                {"family": {"cases": "poisson", "alcohol": "gaussian"}},
                {"categorical_features": ["cases"], "evidence": "raw"},
            )
        ),
    ],
    ids=str,
)
def test_frames(given):
    frame, y = table()
    if given.get("family") == "categorical":
        frame = frame[["cases", "taste"]]
    check_invariances(MaxDiscClassifier(**given), frame, y, 1e-8)


@whole
def test_missing_cells():
    X, y = shuffled(load_wine)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    check_invariances(MaxDiscClassifier(structure="independent"), X, y)
    check_invariances(MaxDiscClassifier(structure="joint", evidence="calibrated"), X, y)


@pytest.mark.parametrize("solver", ["auto", pytest.param("dual", marks=whole)])
def test_discriminative_models(solver):
    X, y = shuffled(load_iris)
    check_invariances(DiscriminativeMaxEnt(solver, tol=1e-10), X, y, DOUBLE)


def test_columns_that_are_tied_stay_in_their_order():
    X, y = shuffled(load_wine)
    check_invariances(MaxDiscClassifier(structure="independent", n_features=7), np.hstack([X, X[:, ::-1]]), y)


# ---------------------------------------------------------------- the laws can fail


class DealsByLabel(MaxDiscClassifier):
    def fit(self, X, y, sample_weight=None):
        fold = np.empty(len(y), dtype=int)
        fold[np.argsort(y, kind="stable")] = np.arange(len(y)) % 5
        self.cv = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(5)]
        return super().fit(X, y, sample_weight)


class KnowsPlaces(MaxDiscClassifier):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X * (np.arange(X.shape[1]) > 0), y, sample_weight)


class ReadsHalf(MaxDiscClassifier):
    def fit(self, X, y, sample_weight=None):
        half = len(y) // 2
        return super().fit(X[:half], y[:half], None if sample_weight is None else sample_weight[:half])


class IgnoresWeights(MaxDiscClassifier):
    def fit(self, X, y, sample_weight=None):  # noqa: ARG002
        return super().fit(X, y)


class RoundsArrays(MaxDiscClassifier):
    def fit(self, X, y, sample_weight=None):
        return super().fit(np.rint(X) if isinstance(X, np.ndarray) else X, y, sample_weight)


class KnowsUnits(MaxDiscClassifier):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X + 1.0, y, sample_weight)


class PrefersTheFirst(MaxDiscClassifier):
    def predict(self, X):
        return self.classes_[np.zeros(len(X), dtype=int)]


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (DealsByLabel, "labels sort the other way"),
        (KnowsPlaces, "columns have another order"),
        (ReadsHalf, "rows have another order"),
        (IgnoresWeights, "rows of weight 2"),
        (RoundsArrays, "an array is a frame"),
        (KnowsUnits, "units are others"),
        (PrefersTheFirst, "labels sort the other way, and another class"),
    ],
)
def test_the_laws_can_fail(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_invariances(broken("gaussian", evidence="calibrated"), *shuffled(load_wine))


# ---------------------------------------------------------------- where it went wrong


labels_that_sort_otherwise = pytest.mark.parametrize("names", [["c", "b", "a"], [2, 10, 1], ["a", "b", "c"]])


@labels_that_sort_otherwise
@pytest.mark.parametrize("cv", [2, 3, 5, "holdout"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("random_state", [None, 3])
def test_folds_do_not_depend_on_what_labels_are_called(names, cv, grouped, random_state):
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=100, p=[0.62, 0.27, 0.11])
    X, groups = np.arange(100.0)[:, None], np.arange(100) // 4 if grouped else None
    given = {"groups": groups, "random_state": random_state}
    (expected,) = fold_plans(cv, X, y, **given)
    (found,) = fold_plans(cv, X, np.array(names)[y], **given)
    np.testing.assert_array_equal(found.of(X, 0), expected.of(X, 0))


@labels_that_sort_otherwise
def test_families_of_columns_do_not_depend_on_how_labels_sort(names):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=150)
    numbers = np.exp(0.25 * y[:, None] + rng.normal(size=(150, 40)) * rng.uniform(0.2, 1.0, size=40))
    _, codes = np.unique(np.array(names)[y], return_inverse=True)
    every, weights = np.arange(40), np.ones(150)
    expected, found = (
        {str(family): at.tolist() for family, at in chosen_families(numbers, every, one, 3, weights)}
        for one in (y, codes)
    )
    assert found == expected


def test_each_exception_is_one_sentence_and_in_some_tags():
    models = [MaxDiscClassifier(), MaxDiscSearchCV(), DiscriminativeMaxEnt()]
    made = {name: told for model in models for name, told in get_tags(model).invariance_exceptions.items()}
    assert made == EXCEPTIONS
    assert len(EXCEPTIONS) <= 3
    assert all(told.endswith(".") and ". " not in told for told in EXCEPTIONS.values())
    page = " ".join((ROOT / "docs/api/maxdisc.testing.md").read_text(encoding="utf-8").split())
    assert all(f"- `{name}`: {told}" in page for name, told in EXCEPTIONS.items())
    assert not get_tags(MaxDiscClassifier(evidence="raw")).invariance_exceptions.keys() - {"hashes"}
