"""K and smoothing, chosen on folds without a second fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

from maxdisc import MaxDiscClassifier, Smoothing
from maxdisc.divergences import js_gm
from maxdisc.families import FAMILIES
from maxdisc.fitting.cross_validation import dealt, fold_plans
from maxdisc.rows.row_sources import ArrayRows, HashFolds
from maxdisc.selection.fold_models import FoldModels, SelectionPath, choose, share_of_folds, size_grid
from maxdisc.testing import random_data


@given(st.integers(1, 200_000))
def test_the_grid_has_every_small_size_then_few_large_ones(n_features):
    sizes = size_grid(n_features)
    assert sizes[0] == 1
    assert sizes[-1] == n_features
    assert (np.diff(sizes) > 0).all()
    assert set(range(1, min(8, n_features) + 1)) <= set(sizes.tolist())
    assert len(sizes) < 9 + max(np.log(n_features / 8), 0.0) / np.log(1.25) + 1
    large = sizes[sizes >= 8]
    assert (large[1:] / large[:-1] < 1.3).all()


def splits_of(plans, X):
    """The (train, test) pairs of plans, as scikit-learn would have them."""
    for folds in plans:
        assignment = folds.of(X, 0)
        for f in range(folds.count):
            yield np.flatnonzero((assignment != f) & (assignment >= -1)), np.flatnonzero(assignment == f)


@pytest.mark.parametrize("name", ["gaussian", "poisson", "bernoulli", "gamma"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "cv",
    [
        3,
        "holdout",
        "hash",
        KFold(4),
        ShuffleSplit(3, random_state=0),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    ],
    ids=["3", "holdout", "hash", "KFold", "ShuffleSplit", "Repeated"],
)
def test_the_path_is_fitting_again_on_each_fold_with_each_size(name, container, cv):
    if container is sp.csr_array and not FAMILIES[name].preserves_zero:
        return
    X, codes = random_data(name, 60, 3, 8, seed=1)
    X = container(X)
    raw = MaxDiscClassifier(name, evidence="raw", smoothing=0.7)
    model = clone(raw).set_params(cv=cv).fit(X, codes)
    plans = fold_plans(cv, X, codes)
    for v, (train, test) in enumerate(splits_of(plans, X)):
        for s, size in enumerate(model.path_.sizes):
            again = clone(raw).set_params(n_features=int(size)).fit(X[train], codes[train])
            assert model.path_.accuracy[v, s] == pytest.approx(again.score(X[test], codes[test]))
            loss = -again.predict_log_proba(X[test])[np.arange(len(test)), codes[test]].mean()
            assert model.path_.log_loss[v, s] == pytest.approx(loss, rel=1e-8)


def test_the_ranking_comes_from_all_rows():
    X, codes = random_data("gaussian", 80, 3, 10, seed=2)
    chosen = MaxDiscClassifier("gaussian", smoothing=1.0).fit(X, codes)
    fixed = MaxDiscClassifier("gaussian", smoothing=1.0, n_features=chosen.n_selected_).fit(X, codes)
    np.testing.assert_allclose(chosen.scores_, fixed.scores_, rtol=1e-9)
    np.testing.assert_array_equal(chosen.ranking_, fixed.ranking_)
    np.testing.assert_array_equal(chosen.predict(X), fixed.predict(X))


def test_smoothing_is_chosen_among_the_familys():
    X, codes = random_data("poisson", 90, 3, 10, seed=3)
    model = MaxDiscClassifier("poisson", evidence="raw").fit(X, codes)
    assert model.smoothing_ in FAMILIES["poisson"].smoothings
    models = FoldModels.of(ArrayRows(X, codes, 3), FAMILIES["poisson"], js_gm, None, fold_plans(5, X, codes))
    sizes = size_grid(10)
    best = {s: models.path(sizes[::4], s).mean_accuracy.max() for s in FAMILIES["poisson"].smoothings}
    assert best[model.smoothing_] == max(best.values())


def test_a_fixed_size_with_automatic_smoothing_is_tried_at_that_size():
    X, codes = random_data("gaussian", 60, 3, 9, seed=4)
    model = MaxDiscClassifier("gaussian", n_features=4).fit(X, codes)
    np.testing.assert_array_equal(model.path_.sizes, [4])
    assert model.n_selected_ == 4


def path(accuracy):
    accuracy = np.asarray(accuracy, dtype=float)
    return SelectionPath(
        np.arange(1, accuracy.shape[1] + 1),
        accuracy,
        1 - accuracy,
        np.ones(len(accuracy)),
        np.ones(len(accuracy)),
        Smoothing(1.0),
    )


def test_rules():
    assert path([[0.5, 0.9, 0.9, 0.8]]).best_size("best") == 2
    two = path([[0.70, 0.80, 0.84], [0.70, 0.80, 0.90]])
    assert two.best_size("best") == 3
    # The standard error at the best is 0.03: 0.80 lies outside, with a wider spread it would not.
    assert two.best_size("one_se") == 3
    assert path([[0.70, 0.80, 0.80], [0.70, 0.80, 0.90]]).best_size("one_se") == 2
    ten = np.array([10.0])
    single = SelectionPath(
        np.array([1, 2]), np.array([[0.8, 0.9]]), np.zeros((1, 2)), ten, ten, Smoothing(1.0)
    )
    np.testing.assert_allclose(single.standard_error, np.sqrt([0.16 / 10, 0.09 / 10]))
    assert single.best_size("one_se") == 2


def test_rounding_does_not_break_ties():
    third = np.full((3, 2), 1 / 3)
    third[0, 1] += 1e-16
    assert path(third).best_size() == 1


@given(st.lists(st.integers(0, 4), min_size=10, max_size=80), st.integers(2, 7))
def test_dealt_folds_are_alike_in_size_and_in_classes(labels, count):
    codes = np.array(labels)
    fold = dealt(codes, count)
    sizes = np.bincount(fold, minlength=count)
    assert sizes.max() - sizes.min() <= 1
    for c in np.unique(codes):
        sizes = np.bincount(fold[codes == c], minlength=count)
        assert sizes.max() - sizes.min() <= 1


def test_plans_share_moments_where_they_can():
    X, codes = random_data("gaussian", 30, 3, 2)
    groups = np.arange(30) // 3
    one = [
        5,
        "holdout",
        "hash",
        KFold(3),
        LeaveOneOut(),
        PredefinedSplit(np.arange(30) % 3 - 1),
        StratifiedKFold(3),
    ]
    for cv in one:
        assert len(fold_plans(cv, X, codes)) == 1
    assert len(fold_plans(GroupKFold(4), X, codes, groups)) == 1
    assert len(fold_plans(ShuffleSplit(3, test_size=0.5), X, codes)) == 3
    assert len(fold_plans(list(KFold(3).split(X)), X, codes)) == 1
    assert len(fold_plans(KFold(3).split(X), X, codes)) == 1
    (folds,) = fold_plans(3, X, codes, groups)
    for g in np.unique(groups):
        assert len(np.unique(folds.of(X, 0)[groups == g])) == 1


def test_the_holdout_is_a_fifth_of_each_class():
    codes = np.repeat([0, 1], [50, 25])
    (folds,) = fold_plans("holdout", np.zeros((75, 1)), codes)
    held = folds.of(np.zeros((75, 1)), 0) == 0
    np.testing.assert_array_equal(np.bincount(codes[held]), [10, 5])


def test_random_state_shuffles_and_is_reproducible():
    codes = np.repeat([0, 1], 20)
    X = np.zeros((40, 1))
    a, b, c = (fold_plans(4, X, codes, random_state=r)[0].of(X, 0) for r in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_splits_that_leave_rows_out_still_learn_from_all():
    X, codes = random_data("poisson", 40, 2, 4, seed=5)
    splits = [(np.arange(0, 20), np.arange(20, 30))]
    model = MaxDiscClassifier("poisson", cv=splits).fit(X, codes)
    assert model.moments_.weight.sum() == 40


def test_the_order_of_rows_does_not_matter_with_hash_folds():
    X, codes = random_data("poisson", 120, 3, 12, seed=6)
    order = np.random.default_rng(0).permutation(120)
    a = MaxDiscClassifier("poisson", cv="hash").fit(X, codes)
    b = MaxDiscClassifier("poisson", cv="hash").fit(X[order], codes[order])
    assert a.n_selected_ == b.n_selected_
    assert a.smoothing_ == b.smoothing_
    np.testing.assert_array_equal(a.path_.accuracy, b.path_.accuracy)
    np.testing.assert_array_equal(a.scores_, b.scores_)


def test_empty_folds_are_left_out():
    X = np.repeat([[1.0, 2.0], [3.0, 5.0]], 10, axis=0)
    codes = np.repeat([0, 1], 10)
    assert len(np.unique(HashFolds(5).of(X, 0))) <= 2
    model = MaxDiscClassifier("poisson", cv="hash").fit(X, codes)
    assert len(model.path_.weight) <= 2
    assert model.score(X, codes) == 1.0


def test_choose_prefers_fewer_features_at_equal_accuracy():
    rng = np.random.default_rng(0)
    codes = np.arange(100) % 2
    X = np.column_stack([10.0 * codes + rng.normal(size=100), rng.normal(size=(100, 30))])
    models = FoldModels.of(ArrayRows(X, codes, 2), FAMILIES["gaussian"], js_gm, None, fold_plans(5, X, codes))
    assert choose(models, (Smoothing(1.0),), size_grid(31)).size == 1


def test_sizes_and_shares_of_folds():
    assert size_grid(40, n_small=4, ratio=2.0).tolist() == [1, 2, 3, 4, 8, 16, 32, 40]
    assert share_of_folds([np.array([0, 1]), np.array([1, 2])], 4).tolist() == [0.5, 1.0, 0.5, 0.0]
