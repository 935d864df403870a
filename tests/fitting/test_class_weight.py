"""Weights of classes: they multiply the weights of rows, and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.utils.class_weight import compute_sample_weight

from maxdisc import MaxDiscClassifier, load, save
from maxdisc.rows.row_sources import ArrayRows

NAMES = np.array(["common", "rare", "rarest"])


def skewed(n=240, d=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, size=n, p=[0.7, 0.2, 0.1])
    return np.eye(3, d)[codes] + rng.normal(size=(n, d)), NAMES[codes]


def same(first, second, X):
    np.testing.assert_allclose(first.class_prior_, second.class_prior_, rtol=1e-12)
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("class_weight", ["balanced", {"rare": 3.0, "rarest": 0.5}], ids=["balanced", "dict"])
@pytest.mark.parametrize("d", [4, 400], ids=["independent", "joint"])
def test_class_weights_multiply_the_weights_of_rows(class_weight, d):
    X, y = skewed(d=d)
    model = MaxDiscClassifier(class_weight=class_weight).fit(X, y)
    assert (model.joint_ is None) == (d == 4)
    same(model, MaxDiscClassifier().fit(X, y, sample_weight=compute_sample_weight(class_weight, y)), X)


def test_a_weight_of_two_repeats_the_rows_of_a_class():
    X, y = skewed()
    folds = np.arange(len(y)) % 5
    twice = np.concatenate([np.arange(len(y)), np.flatnonzero(y == "rare")])
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(5)]
    again = [(np.flatnonzero(folds[twice] != f), np.flatnonzero(folds[twice] == f)) for f in range(5)]
    weighed = MaxDiscClassifier(class_weight={"rare": 2.0}, cv=splits).fit(X, y)
    same(weighed, MaxDiscClassifier(cv=again).fit(X[twice], y[twice]), X)


def test_balanced_classes_have_the_same_prior_whatever_their_rows_weigh():
    X, y = skewed()
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)
    model = MaxDiscClassifier(class_weight="balanced").fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.class_prior_, 1 / 3, rtol=1e-12)
    kept = np.repeat(np.arange(len(y)), weights.astype(int))
    np.testing.assert_allclose(
        model.moments_.weight,
        MaxDiscClassifier(class_weight="balanced").fit(X[kept], y[kept]).moments_.weight,
    )


def test_batches_take_weights_by_label():
    X, y = skewed()
    model, plain = MaxDiscClassifier(class_weight={"rare": 4.0}), MaxDiscClassifier()
    for some in (slice(0, 100), slice(100, None)):
        model.partial_fit(X[some], y[some])
        plain.partial_fit(X[some], y[some], sample_weight=np.where(y[some] == "rare", 4.0, 1.0))
    same(model, plain, X)


def test_rows_without_a_label_keep_their_weight():
    X, y = skewed()
    partly = np.where(np.arange(len(y)) % 2, y.astype(object), None)
    weights = np.where(partly == "rare", 3.0, 1.0)
    model = MaxDiscClassifier(class_weight={"rare": 3.0}).fit(X, partly)
    same(model, MaxDiscClassifier().fit(X, partly, sample_weight=weights), X)


def test_columns_of_several_families():
    X, y = skewed()
    frame = pd.DataFrame(X).rename(columns=str).assign(word=np.where(X[:, 0] > 0, "a", "b"))
    weights = compute_sample_weight("balanced", y)
    model = MaxDiscClassifier(class_weight="balanced").fit(frame, y)
    same(model, MaxDiscClassifier().fit(frame, y, sample_weight=weights), frame)


def test_a_file_holds_them(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = MaxDiscClassifier(class_weight={0: 2.0, 1: 0.5}).fit(X, y)
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").class_weight == {0: 2.0, 1: 0.5}


@pytest.mark.parametrize(
    ("class_weight", "said"),
    [
        ("even", "class_weight must be None, 'balanced' or a dict"),
        ([1.0, 2.0], "class_weight must be None, 'balanced' or a dict"),
        ({"rare": -1.0}, "class_weight gives 'rare' the weight -1.0"),
        ({"rare": np.inf}, "class_weight gives 'rare' the weight inf"),
        ({"rear": 2.0}, "class_weight has 'rear', which is no label of y"),
        (dict.fromkeys(NAMES.tolist(), 0), "class_weight leaves no row any weight"),
    ],
    ids=str,
)
def test_what_is_none_is_refused(class_weight, said):
    X, y = skewed()
    with pytest.raises(ValueError, match=said):
        MaxDiscClassifier(class_weight=class_weight).fit(X, y)


def test_sources_of_rows_and_batches_do_not_tell_the_sizes_of_classes():
    X, y = skewed()
    codes = np.searchsorted(NAMES, y)
    with pytest.raises(ValueError, match="fit_rows does not support class_weight"):
        MaxDiscClassifier(class_weight="balanced").fit_rows(ArrayRows(X, codes, 3), NAMES)
    assert not hasattr(MaxDiscClassifier(class_weight="balanced"), "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as refused:
        MaxDiscClassifier(class_weight="balanced").partial_fit(X, y)
    assert str(refused.value.__cause__).startswith("partial_fit sees one batch at a time")
