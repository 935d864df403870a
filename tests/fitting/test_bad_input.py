"""Bad input ends in one line that names what is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from maxdisc import DiscriminativeMaxEnt, MaxDiscClassifier, MaxDiscSearchCV, Smoothing
from maxdisc.families import FAMILIES
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.testing import random_data

X, y = random_data("poisson", 30, 3, 4, seed=0)


def changed(value, row=7, column=2):
    bad = X.copy()
    bad[row, column] = value
    return bad


CASES = {
    "nan in sparse data": (
        lambda: MaxDiscClassifier().fit(sp.csr_array(changed(np.nan)), y),
        "column 2 has nan in row 7",
    ),
    "inf in sparse data": (
        lambda: MaxDiscClassifier().fit(sp.csr_array(changed(np.inf)), y),
        "column 2 has inf in row 7",
    ),
    "inf in dense data": (lambda: MaxDiscClassifier().fit(changed(np.inf), y), "column 2 has inf in row 7"),
    "negative counts": (
        lambda: MaxDiscClassifier("poisson").fit(changed(-4.0), y),
        "column 2 has -4 in row 7",
    ),
    "negative counts in a frame": (
        lambda: MaxDiscClassifier("geometric").fit(pd.DataFrame(changed(-4.0), columns=list("abcd")), y),
        "column 'c' has -4 in row 7",
    ),
    "one class": (lambda: MaxDiscClassifier().fit(X, np.zeros(30)), "only one class, .*two classes"),
    "one class by weight": (
        lambda: MaxDiscClassifier().fit(X, y, sample_weight=(y == 1).astype(float)),
        "only one class",
    ),
    "no rows": (lambda: MaxDiscClassifier().fit(np.empty((0, 4)), []), "0 sample"),
    "no columns": (lambda: MaxDiscClassifier().fit(np.empty((30, 0)), y), "0 feature"),
    "lengths": (lambda: MaxDiscClassifier().fit(X, y[:-1]), "inconsistent numbers of samples.*30, 29"),
    "length of weights": (
        lambda: MaxDiscClassifier().fit(X, y, sample_weight=np.ones(29)),
        "sample_weight.*30",
    ),
    "negative weights": (
        lambda: MaxDiscClassifier().fit(X, y, sample_weight=-np.ones(30)),
        "[Nn]egative values in.*sample_weight",
    ),
    "all-zero weights": (
        lambda: MaxDiscClassifier().fit(X, y, sample_weight=np.zeros(30)),
        "weights must contain at least one non-zero",
    ),
    "family": (
        lambda: MaxDiscClassifier("poison").fit(X, y),
        "unknown family 'poison': give one of .*'poisson'",
    ),
    "sparse categories": (
        lambda: MaxDiscClassifier("categorical").fit(sp.csr_array(X), y),
        "X is sparse, and family='categorical' needs a frame or a dense array: convert X",
    ),
    "sparse columns of several families": (
        lambda: MaxDiscClassifier({0: "gamma"}).fit(sp.csr_array(X), y),
        "X is sparse, and a dict of families needs a frame",
    ),
    "sparse columns of categories": (
        lambda: MaxDiscClassifier(categorical_features=[0]).fit(sp.csr_array(X), y),
        "X is sparse, and categorical_features needs a frame",
    ),
    "sparse rows without informative cells": (
        lambda: MaxDiscClassifier(missing="informative").fit(sp.csr_array(X), y),
        "X is sparse, and missing='informative' needs a frame",
    ),
    "categories in batches of arrays": (
        lambda: MaxDiscClassifier("categorical").fit_rows(BatchRows(lambda: [(X, y)], 3), range(3)),
        "these rows have one family, and family='categorical' needs a frame",
    ),
    "two columns of one name": (
        lambda: MaxDiscClassifier().fit(pd.DataFrame(X, columns=list("abab")), y),
        "column name 'a' is repeated, in columns 0, 2, and 1 more names are repeated: rename",
    ),
    "two columns of one name, one family": (
        lambda: MaxDiscClassifier("poisson").fit(pd.DataFrame(X, columns=list("abca")), y),
        "column name 'a' is repeated, in columns 0, 3: rename the columns",
    ),
    "two columns of one name in prediction": (
        lambda: MaxDiscClassifier("poisson").fit(X, y).predict(pd.DataFrame(X, columns=list("abca"))),
        "column name 'a' is repeated",
    ),
    "two columns of one name for the conditional model": (
        lambda: DiscriminativeMaxEnt().fit(pd.DataFrame(X, columns=list("abca")), y),
        "column name 'a' is repeated",
    ),
    "two columns of one name in a search": (
        lambda: MaxDiscSearchCV().fit(pd.DataFrame(X, columns=list("abca")), y),
        "column name 'a' is repeated",
    ),
    "a quantity": (
        lambda: MaxDiscClassifier().fit(X, np.arange(30)),
        "y holds 30 different numbers in 30 rows: is it a quantity",
    ),
    "a quantity that is not whole": (
        lambda: MaxDiscClassifier().fit(MEASURED, MEASURED[:, 0]),
        "Unknown label type: continuous. y holds 60 different numbers in 60 rows, not all of them whole: is",
    ),
    "a quantity among objects": (
        lambda: MaxDiscClassifier().fit(MEASURED, MEASURED[:, 0].astype(object)),
        "Unknown label type: continuous. y holds 60 different numbers in 60 rows, not all of them whole: is",
    ),
    "a quantity in the rows that have a label": (
        lambda: MaxDiscClassifier(unlabelled=-1).fit(np.vstack([X, X]), np.r_[np.arange(30), [-1] * 30]),
        "y holds 30 different numbers in 30 rows: is it a quantity",
    ),
    "divergence": (
        lambda: MaxDiscClassifier(divergence="js").fit(X, y),
        "unknown divergence 'js': give one of 'js_gm'",
    ),
    "a divergence of wrong shape": (
        lambda: MaxDiscClassifier(divergence=lambda d: d.mean).fit(X, y),
        "one finite score of at least 0 for each feature",
    ),
    "a divergence of nan": (
        lambda: MaxDiscClassifier(divergence=lambda d: d.mean[0, 0] * np.nan).fit(X, y),
        "NaN or infinity",
    ),
    "too many features": (
        lambda: MaxDiscClassifier(n_features=5).fit(X, y),
        "n_features=5 is more than the 4 features",
    ),
    "no features": (lambda: MaxDiscClassifier(n_features=0).fit(X, y), "n_features must be"),
    "a share above 1": (lambda: MaxDiscClassifier(n_features=1.5).fit(X, y), "n_features must be .*1.5"),
    "features by another word": (
        lambda: MaxDiscClassifier(n_features="most").fit(X, y),
        "n_features must be .*'most'",
    ),
    "features by truth": (lambda: MaxDiscClassifier(n_features=True).fit(X, y), "n_features must be .*True"),
    "smoothing": (lambda: MaxDiscClassifier(smoothing=-1).fit(X, y), "smoothing must be at least 0"),
    "smoothing by word": (
        lambda: MaxDiscClassifier(smoothing="some").fit(X, y),
        "smoothing must be .*'some'",
    ),
    "flat smoothing of measurements": (
        lambda: MaxDiscClassifier("gaussian", smoothing=Smoothing(1.0, "flat")).fit(X, y),
        "flat smoothing target",
    ),
    "structure": (
        lambda: MaxDiscClassifier(structure="both").fit(X, y),
        "structure must be 'auto', 'independent', 'joint' or a Joint",
    ),
    "evidence": (
        lambda: MaxDiscClassifier(evidence="doubted").fit(X, y),
        "evidence='doubted' is not available: use evidence='auto'",
    ),
    "redundancy": (
        lambda: MaxDiscClassifier(redundancy=-0.5).fit(X, y),
        "redundancy must be a number of at least 0, got -0.5",
    ),
    "unlabelled": (
        lambda: MaxDiscClassifier(unlabelled=[-1]).fit(X, y),
        "unlabelled must be None or a label",
    ),
    "rule": (
        lambda: MaxDiscClassifier(rule="two_se").fit(X, y),
        "rule='two_se' is not available: use rule='auto'",
    ),
    "one fold": (lambda: MaxDiscClassifier(cv=1).fit(X, y), "cv must be at least 2"),
    "cv by another word": (lambda: MaxDiscClassifier(cv="loo").fit(X, y), "cv must be .*'loo'"),
    "no splits": (lambda: MaxDiscClassifier(cv=[]).fit(X, y), "cv gave no splits"),
    "prior of another length": (
        lambda: MaxDiscClassifier(prior=[0.5, 0.5]).fit(X, y),
        "prior must hold 3 probabilities",
    ),
    "prior that does not sum to 1": (lambda: MaxDiscClassifier(prior=[0.5, 0.5, 0.5]).fit(X, y), "sum to 1"),
    "labels missing": (
        lambda: MaxDiscClassifier().partial_fit(X, [None, *y[1:]]),
        "no label .* in 1 rows, first in row 0: drop those rows, or use fit",
    ),
    "labels that are measurements": (lambda: MaxDiscClassifier().fit(X, y + 0.5), "[Uu]nknown label type"),
    "no labels": (lambda: MaxDiscClassifier().fit(X, None), "requires y to be passed"),
    "documents as rows": (
        lambda: MaxDiscClassifier().fit(np.full((30, 4), "word"), y),
        "X holds text: .*CountVectorizer",
    ),
    "a column of words": (
        lambda: MaxDiscClassifier(family="gaussian").fit(
            pd.DataFrame({"size": X[:, 0], "colour": ["red"] * 30}), y
        ),
        "column 'colour' holds text, such as 'red'",
    ),
    "a row in both parts of a split": (
        lambda: MaxDiscClassifier(cv=[([0, 1, 2], [2, 3])]).fit(X, y),
        "same row in its train and its test part",
    ),
    "one class to choose on": (
        lambda: MaxDiscClassifier().fit(X, y).choose_n_features(X[y == 0], y[y == 0]),
        "only one class",
    ),
    "dates that are not": (
        lambda: MaxDiscClassifier().fit(X, np.array(["NaT"] * 30, "M8[D]")),
        "no row has a label",
    ),
    "a first batch without all classes": (
        lambda: MaxDiscClassifier(prior=[0.2, 0.3, 0.5]).partial_fit(X[y == 0], y[y == 0]),
        "give partial_fit all of them as classes=",
    ),
    "rows that are a list": (lambda: ArrayRows([1.0, 2.0], [0, 1], 2), "table of numbers"),
    "rows of words": (lambda: ArrayRows(np.full((2, 2), "a"), [0, 1], 2), "table of numbers"),
    "a batch without codes": (
        lambda: BatchRows(lambda: [(X,)], 3).moments(FAMILIES["poisson"]),
        "got 1 parts",
    ),
    "a value in the second batch": (
        lambda: BatchRows(lambda: [(X, y), (changed(-1.0), y)], 3).moments(FAMILIES["poisson"]),
        "column 2 has -1 in row 37",
    ),
    "another width at predict": (
        lambda: MaxDiscClassifier().fit(X, y).predict(X[:, :3]),
        "3 features, but MaxDiscClassifier is expecting 4",
    ),
    "out of range at predict": (
        lambda: MaxDiscClassifier("poisson").fit(X, y).predict(changed(-2.0)),
        "column 2 has -2 in row 7",
    ),
    "zeros for gamma": (
        lambda: MaxDiscClassifier("gamma").fit(np.where(X.min() == X, 0.0, X + 1), y),
        "gamma family takes finite numbers greater than 0, but column",
    ),
    "splits that are not pairs": (lambda: MaxDiscClassifier(cv=[1, 2, 3]).fit(X, y), "pairs of row numbers"),
    "splits out of range": (lambda: MaxDiscClassifier(cv=[([0, 1], [99])]).fit(X, y), "below 30"),
    "a prior of words": (
        lambda: MaxDiscClassifier(prior="even").fit(X, y),
        "prior must hold 3 probabilities",
    ),
    "labels not available": (
        lambda: MaxDiscClassifier().partial_fit(X, pd.Series([pd.NA, *y[1:]])),
        "first in row 0",
    ),
    "labels not numbers": (
        lambda: MaxDiscClassifier().partial_fit(X, np.r_[np.nan, y[1:]]),
        "first in row 0",
    ),
    "codes out of range": (lambda: ArrayRows(X, y + 1, 3), "codes from 0 to 2"),
    "too few codes": (lambda: ArrayRows(X, y[:5], 3), "30 codes"),
    "weights of rows": (lambda: ArrayRows(X, y, 3, -np.ones(30)), "30 finite numbers"),
    "classes out of order": (
        lambda: MaxDiscClassifier().fit_rows(ArrayRows(X, y, 3), [2, 1, 0]),
        "sorted order",
    ),
    "rows without weight": (
        lambda: MaxDiscClassifier(smoothing=1.0, n_features=1).fit_rows(
            ArrayRows(X, y, 3, np.zeros(30)), [0, 1, 2]
        ),
        "no weight",
    ),
    "one fold of rows": (
        lambda: MaxDiscClassifier(cv=1).fit_rows(ArrayRows(X, y, 3), [0, 1, 2]),
        "cv='hash' or",
    ),
    "several labels to draw": (
        lambda: MaxDiscClassifier().fit(X, y).sample(2, y=[0, 1]),
        "y must be one label",
    ),
    "halves for bernoulli": (
        lambda: MaxDiscClassifier("bernoulli").fit(X * 0 + 0.5, y),
        "bernoulli family takes integers",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_clear_line(case):
    act, message = CASES[case]
    with pytest.raises(ValueError, match=message) as error:
        act()
    if "maxdisc" in str(error.traceback[-1].path):
        assert "\n" not in str(error.value)


def test_unfitted():
    from sklearn.exceptions import NotFittedError

    for name in (
        "predict",
        "predict_proba",
        "transform",
        "explain",
        "score_samples",
        "predict_joint_log_proba",
    ):
        with pytest.raises(NotFittedError):
            getattr(MaxDiscClassifier(), name)(X)
    with pytest.raises(NotFittedError):
        MaxDiscClassifier().sample(3)


def test_numbers_that_are_names_are_labels_as_strings():
    model = MaxDiscClassifier("gaussian", smoothing=1.0, n_features="all", evidence="raw")
    numbers = np.arange(30)
    assert len(model.fit(np.diag(numbers + 1.0), numbers.astype(str)).classes_) == 30
    assert len(model.fit(np.vstack([X, X]), np.tile(numbers, 2)).classes_) == 30


MEASURED = np.random.default_rng(3).normal(size=(60, 4)) + np.arange(60)[:, None] % 3


@pytest.mark.parametrize("settings", [{}, {"structure": "joint"}, {"family": "gaussian", "evidence": "raw"}])
def test_an_offset_that_takes_the_digits_is_said(settings):
    labels = np.arange(60) % 3
    model = MaxDiscClassifier(cv=2, **settings)
    with pytest.warns(UserWarning, match=r"column 2 varies by less than 1,000 times the rounding error"):
        model.fit(MEASURED + np.array([0.0, 0.0, 1e14, 0.0]), labels)
    for offset in (1e14, 1e15):
        frame = pd.DataFrame(MEASURED + np.array([offset, 0.0, 0.0, -offset]), columns=list("abcd"))
        with pytest.warns(UserWarning, match=r"column 'a' \(and 1 more\) varies"):
            model.fit(frame, labels)


def test_an_offset_that_takes_the_digits_is_said_of_batches():
    with pytest.warns(UserWarning, match=r"column 2 varies by less than 1,000 times the rounding error"):
        MaxDiscClassifier("gaussian").partial_fit(
            MEASURED + np.array([0.0, 0.0, 1e14, 0.0]), np.arange(60) % 3, classes=range(3)
        )


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e11])
def test_offsets_that_leave_digits_are_not_warned_of(offset):
    model = MaxDiscClassifier(cv=2).fit(MEASURED + offset, np.arange(60) % 3)
    assert model.score(MEASURED + offset, np.arange(60) % 3) > 0.6
    # What is constant has no digits to lose, whatever the rounding of its mean.
    constants = np.array([7.0, 0.1, -1 / 3, 1e15 / 7, 3e-30, np.pi * 1e100])
    for n_rows in (7, 60):
        X = np.hstack([MEASURED[:n_rows], np.tile(constants, (n_rows, 1))])
        MaxDiscClassifier(evidence="raw", smoothing=1.0).fit(X, np.arange(n_rows) % 3)


@pytest.mark.parametrize("settings", [{}, {"structure": "joint"}])
def test_a_class_of_one_row_that_is_lost_is_said(settings):
    labels = np.append(np.arange(60) % 3, 7)
    inside = np.vstack([MEASURED, MEASURED.mean(axis=0)])
    with pytest.warns(UserWarning, match="class 7 has a single row, and even this row is predicted as"):
        model = MaxDiscClassifier(cv=2, **settings).fit(inside, labels)
    assert model.predict(inside[-1:]) != [7]
    outside = np.vstack([MEASURED, np.full(4, 30.0)])
    model = MaxDiscClassifier(cv=2, evidence="raw", **settings).fit(outside, labels)
    assert model.predict(outside[-1:]) == [7]
