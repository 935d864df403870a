"""Compiled fold models against the general ones, which are their oracle."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import MaxDiscClassifier, Smoothing
from maxdisc.decisions.linear import ranked_decision
from maxdisc.decisions.sweep import Bucketed, sweep_tasks
from maxdisc.divergences import js_gm, kl, rao
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.families import FAMILIES, Poisson
from maxdisc.numerics import compiled_elementary as elementary
from maxdisc.numerics.compiling import kernel
from maxdisc.numerics.threads import limited_threads
from maxdisc.rows.row_sources import ALWAYS_TRAINING, LEFT_OUT, ArrayRows, FixedFolds, HashFolds
from maxdisc.selection import fold_models as selection
from maxdisc.selection import sparse_fold_models as sparse_folds
from maxdisc.selection.fold_models import FoldModels, choose, size_grid
from maxdisc.selection.sparse_fold_models import SparseFoldModels, _by_columns, suits
from maxdisc.testing import batches_of, taking
from tests.conftest import examples

NAMES = ["poisson", "exponential", "geometric", "bernoulli"]
DIVERGENCES = st.sampled_from([js_gm, rao])
SMOOTHINGS = st.builds(Smoothing, st.sampled_from([0.0, 0.03, 1.0, 50.0]), st.sampled_from(["own", "flat"]))


def sparse_data(name, n_rows, n_classes, n_features, seed):
    """Rows with many zeros, some empty columns, classes of unequal size, one of which may be missing."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.4, n_rows) - 1, n_classes - 1)
    rate = rng.gamma(0.3, 1.0, (n_classes, n_features)) * (rng.random(n_features) < 0.8)
    X = rng.poisson(rate[codes]).astype(float)
    X = np.minimum(X, 1.0) if name == "bernoulli" else X * rng.choice([1.0, 0.37], size=(n_rows, 1))
    return sp.csr_array(X), codes


@st.composite
def problems(draw):
    name = draw(st.sampled_from(NAMES))
    n_rows, n_classes = draw(st.integers(6, 60)), draw(st.integers(2, 7))
    X, codes = sparse_data(name, n_rows, n_classes, draw(st.integers(1, 30)), draw(st.integers(0, 10**6)))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    some = (rng.random(n_rows) + 0.1) * (rng.random(n_rows) < 0.7)
    weights = draw(st.sampled_from([None, rng.random(n_rows) + 0.1, some]))
    marks = draw(st.sampled_from([[0, 1, 2], [0, ALWAYS_TRAINING], [0, 1, LEFT_OUT]]))
    plans = [FixedFolds(rng.choice(marks, n_rows), 3), HashFolds(2)][: draw(st.integers(1, 2))]
    prior = draw(st.sampled_from([None, rng.dirichlet(np.ones(n_classes))]))
    return FAMILIES[name], ArrayRows(X, codes, n_classes, weights), prior, plans


@given(
    problems(), DIVERGENCES, SMOOTHINGS, st.sampled_from([None, range(1), range(3), range(1, 5), range(2, 4)])
)
@examples(150)
def test_paths_are_those_of_the_general_way(problem, divergence, smoothing, chosen):
    family, rows, prior, plans = problem
    # In general position: where scores tie, of features or of classes, rounding decides. Cells that are only
    # 0 or 1 tie all the time, so for those it is the loss of all features together that is compared; classes
    # tie where rows have no weights, and then it is the loss, which does not jump.
    binary = family.name == "bernoulli"
    if not binary:
        rows.X.data *= 1 + np.random.default_rng(rows.X.nnz).random(rows.X.nnz)
    if family.name == "exponential" and smoothing.amount == 0:
        smoothing = Smoothing(0.01, smoothing.target)  # without any, its parameters are infinite
    sizes = size_grid(rows.X.shape[1], n_small=4, ratio=1.7)[-1 if binary else 0 :]
    compiled = SparseFoldModels(rows, family, prior, plans, divergence)
    general = FoldModels.of(rows, family, divergence, prior, plans)
    try:
        expected = general.path(sizes, smoothing, chosen)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)):
            compiled.paths(sizes, [smoothing], chosen)
        return
    (path,) = compiled.paths(sizes, [smoothing], chosen)
    np.testing.assert_allclose(path.weight, expected.weight)
    np.testing.assert_allclose(path.n_rows, expected.n_rows)
    if not binary and rows.weights is not None:
        np.testing.assert_allclose(path.accuracy, expected.accuracy, atol=1e-12)
    # Without smoothing, how far the mean of a class is from its limit may be a matter of rounding.
    rtol = 1e-6 if smoothing.amount else 1e-4
    np.testing.assert_allclose(path.log_loss, expected.log_loss, rtol=rtol, atol=1e-9)


def test_a_path_may_have_more_sizes_than_fit_beside_a_place_in_32_bits():
    X, codes = sparse_data("poisson", 80, 3, 400, 0)
    X.data *= 1 + np.random.default_rng(0).random(X.nnz)
    rows, plans, sizes = ArrayRows(X, codes, 3), [HashFolds(2)], np.arange(1, 401)
    (path,) = SparseFoldModels(rows, Poisson(), None, plans).paths(sizes, [Smoothing(0.1)])
    general = FoldModels.of(rows, Poisson(), js_gm, None, plans).path(sizes, Smoothing(0.1))
    np.testing.assert_array_equal(path.accuracy, general.accuracy)
    np.testing.assert_allclose(path.log_loss, general.log_loss, rtol=1e-6, atol=1e-9)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=1, max_size=30), st.data())
def test_a_bucket_is_the_first_size_that_has_the_feature(scores, data):
    sizes = np.unique(data.draw(st.lists(st.integers(1, len(scores)), min_size=1)))
    bucket = sparse_folds._buckets(np.array(scores), sizes)
    order = FeatureRanking.of(np.array(scores)).order
    for j, b in enumerate(bucket):
        rank = int(np.flatnonzero(order == j)[0])
        assert [b <= i for i in range(len(sizes))] == [rank < size for size in sizes]


@given(problems())
@examples(50)
def test_moments_of_all_rows_are_those_of_one_pass_over_them(problem):
    family, rows, prior, plans = problem
    found = SparseFoldModels(rows, family, prior, plans).total()
    expected = rows.moments(family)[0]
    for name in ("weight", "sums", "nonzero", "squares", "squared"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, err_msg=name)
    assert found.origin is None
    assert found.observed is None


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 3), st.sampled_from([np.int32, np.int64]))
def test_columns_are_those_of_scipy(n_rows, n_features, threads, index):
    X = sp.random_array((n_rows, n_features), density=0.3, rng=np.random.default_rng(n_rows), format="csr")
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    with taking("compiled"), limited_threads(threads):
        ours = _by_columns(X)
    theirs = sp.csc_array(X)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


@given(problems(), DIVERGENCES, SMOOTHINGS)
@examples(100)
def test_the_compiled_decision_is_the_general_one(problem, divergence, smoothing):
    family, rows, prior, _ = problem
    moments = rows.moments(family)[0]
    with taking("plain"):
        ranking, model = ranked_decision(family, moments, smoothing, divergence, prior)
    with taking("compiled"):
        ranking_2, model_2 = ranked_decision(family, moments, smoothing, divergence, prior)
    # The general way takes the derivative of rao by differences.
    rtol = 1e-9 if divergence is js_gm else 1e-6
    np.testing.assert_allclose(ranking_2.scores, ranking.scores, rtol=rtol, atol=1e-17)
    back, back_2 = np.argsort(model.columns), np.argsort(model_2.columns)
    np.testing.assert_allclose(model_2.weights[..., back_2], model.weights[..., back], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        model_2.baseline[..., back_2], model.baseline[..., back], rtol=1e-12, atol=1e-14
    )
    assert model_2.weights.flags.c_contiguous


@pytest.mark.parametrize("divergence", [js_gm, rao])
@pytest.mark.parametrize("name", NAMES)
def test_a_large_problem_takes_the_compiled_way_and_chooses_the_same(name, divergence):
    X, codes = sparse_data(name, 400, 5, 300, seed=1)
    with taking("plain"):
        assert not suits(ArrayRows(X, codes, 5), FAMILIES[name], divergence)
        general = MaxDiscClassifier(name, evidence="calibrated", divergence=divergence).fit(X, codes)
    with taking("compiled"):
        assert suits(ArrayRows(X, codes, 5), FAMILIES[name], divergence)
        compiled = MaxDiscClassifier(name, evidence="calibrated", divergence=divergence).fit(X, codes)
    assert compiled.smoothing_ == general.smoothing_
    assert compiled.n_selected_ == general.n_selected_
    np.testing.assert_array_equal(compiled.path_.accuracy, general.path_.accuracy)
    np.testing.assert_allclose(compiled.predict_proba(X), general.predict_proba(X), atol=1e-9)


def test_what_does_not_suit():
    X, codes = sparse_data("poisson", 20, 3, 10, seed=0)
    poisson = FAMILIES["poisson"]
    large = ArrayRows(sp.csr_array((20, 400_000)), codes, 3)
    assert suits(large, poisson, js_gm)
    assert suits(large, poisson, rao)
    assert not suits(large, poisson, kl)
    assert not suits(ArrayRows(X, codes, 3), poisson, js_gm)
    assert not suits(large, FAMILIES["gaussian"], js_gm)
    assert not suits(large, poisson, lambda d: js_gm(d))
    assert not suits(ArrayRows(large.X, np.full((20, 3), 1 / 3), 3), poisson, js_gm)


def test_smoothings_are_compared_on_as_many_folds_as_it_takes(monkeypatch):
    X, codes = sparse_data("poisson", 300, 3, 40, seed=3)
    rows, folds = ArrayRows(X, codes, 3), [FixedFolds(np.arange(300) % 5, 5)]
    for models in (
        SparseFoldModels(rows, FAMILIES["poisson"], None, folds),
        FoldModels.of(rows, FAMILIES["poisson"], js_gm, None, folds),
    ):
        np.testing.assert_allclose(models.held, 60)
        sizes, smoothings = size_grid(40), FAMILIES["poisson"].smoothings
        for enough, n_folds in ((1, 1), (60, 1), (61, 2), (10**6, 5)):
            monkeypatch.setattr(selection, "ENOUGH_ROWS", enough)
            found = choose(models, smoothings, sizes)
            first = models.paths(sizes, smoothings, range(n_folds))
            best = max(first, key=lambda path: path.mean_accuracy.max())
            assert found.smoothing == best.smoothing
            # ... and K on all folds, whichever of them were looked at first.
            (whole,) = models.paths(sizes, [best.smoothing])
            np.testing.assert_array_equal(found.path.accuracy, whole.accuracy)
            np.testing.assert_array_equal(found.path.log_loss, whole.log_loss)
            assert found.size == whole.best_size("best")


def test_a_fold_whose_rows_have_no_weight_does_not_count():
    X, codes = sparse_data("poisson", 300, 3, 40, seed=3)
    folds = np.arange(300) % 5
    rows = ArrayRows(X, codes, 3, np.where(folds == 0, 0.0, 1.0))
    family, plans = FAMILIES["poisson"], [FixedFolds(folds, 5)]
    compiled = SparseFoldModels(rows, family, None, plans)
    general = FoldModels.of(rows, family, js_gm, None, plans)
    np.testing.assert_allclose(compiled.held, general.held)
    choices = [choose(models, family.smoothings, size_grid(40)) for models in (compiled, general)]
    assert choices[0].smoothing == choices[1].smoothing
    assert choices[0].size == choices[1].size


def test_folds_are_taken_in_groups_where_memory_is_short():
    X, codes = sparse_data("poisson", 300, 3, 40, seed=3)
    rows, folds = ArrayRows(X, codes, 3), [FixedFolds(np.arange(300) % 7, 7)]
    sizes, smoothings = size_grid(40), FAMILIES["poisson"].smoothings
    paths = []
    for size, n_groups in ((2**29, 1), (2**13, 3), (1, 7)):
        with batches_of(size):
            models = SparseFoldModels(rows, FAMILIES["poisson"], None, folds)
            paths.append(choose(models, smoothings, sizes).path)
        assert len(models._groups) == n_groups
    for path in paths[1:]:
        np.testing.assert_array_equal(path.accuracy, paths[0].accuracy)
        np.testing.assert_allclose(path.log_loss, paths[0].log_loss, rtol=1e-12)


def test_threads_change_nothing(monkeypatch):
    X, codes = sparse_data("poisson", 500, 4, 80, seed=5)
    models = []
    for threads in ("1", "3"):
        monkeypatch.setenv("MAXDISC_NUM_THREADS", threads)
        with taking("compiled"):
            models.append(MaxDiscClassifier().fit(X, codes))
    np.testing.assert_array_equal(models[0].path_.log_loss, models[1].path_.log_loss)
    np.testing.assert_array_equal(models[0].decision_.weights, models[1].decision_.weights)


@pytest.mark.parametrize(
    ("value", "weight"), [(1e-300, 1e-30), (5e-324, 1e-12), (1e-300, 1.0), (1e200, 1e12)]
)
@pytest.mark.parametrize("divergence", ["js_gm", "rao"])
@pytest.mark.parametrize("name", ["poisson", "exponential", "geometric"])
def test_products_that_vanish_or_nearly_overflow(name, divergence, value, weight):
    X, codes = sp.csr_array(np.full((2000, 2), value)), np.arange(2000) % 2
    with taking("compiled"):
        model = MaxDiscClassifier(name, divergence=divergence)
        model.fit(X, codes, sample_weight=np.full(2000, weight))
        assert np.isfinite(model.predict_proba(X[:1])).all()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["poisson", "exponential"])
# Held-out log-odds have no digits left where one row outweighs another by more than double precision holds.
@pytest.mark.parametrize(("evidence", "span"), [("raw", 12), ("calibrated", 3)])
def test_weights_of_any_size_choose_the_same(name, evidence, span, seed):
    rng = np.random.default_rng(seed + 130)
    X, codes = sp.csr_array(rng.poisson(0.4, (10, 20)).astype(float)), np.arange(10) % 3
    weights = 10.0 ** rng.uniform(-span, span, 10)
    models = []
    for way in ("compiled", "plain"):
        with taking(way):
            models.append(MaxDiscClassifier(name, evidence=evidence).fit(X, codes, sample_weight=weights))
    assert models[0].n_selected_ == models[1].n_selected_
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


class TestElementaryFunctions:
    """The ones that vectorise, against numpy's."""

    x = np.r_[10.0 ** np.linspace(-300, 300, 4001), 1 + np.linspace(-0.5, 1, 4001), 1 - 1e-12, 1.0, 1 + 1e-12]

    @staticmethod
    def of(function, x):
        @kernel
        def each(x, out):
            for i in range(x.size):
                out[i] = function(x[i])

        out = np.empty(x.shape)
        each(x, out)
        return out

    def test_log(self):
        np.testing.assert_array_max_ulp(self.of(elementary.log, self.x), np.log(self.x), 1)

    def test_log1p(self):
        x = np.r_[self.x, -self.x[self.x < 0.999], 1e-18]
        np.testing.assert_allclose(self.of(elementary.log1p, x), np.log1p(x), rtol=1e-15)

    def test_exp2(self):
        x = -np.r_[0.0, 10.0 ** np.linspace(-20, 2.09, 1000)].astype(np.float32)
        np.testing.assert_allclose(self.of(elementary.exp2, x), np.exp2(x.astype(float)), rtol=2e-7)
        far = self.of(elementary.exp2, np.array([-1e30, -np.inf]))
        assert ((far >= 0) & (far < 1e-37)).all()


def test_odds_beyond_single_precision_are_counted_and_lost_as_far_as_numbers_go():
    # One feature that says ever more; the last row has no cell, and its classes tie: the first one wins.
    X = sp.csr_array(np.array([[1.0], [1e-30], [1e200], [0.0]]))
    model = Bucketed(
        np.array([[0.0, 30.0, -1e100]]),
        np.zeros(1, dtype=np.int32),
        np.zeros(1, dtype=np.int32),
        np.zeros((1, 3)),
        np.zeros(3),
    )
    for truth, correct in ((0, 1.0), (1, 3.0), (2, 0.0)):
        labels, weights = np.full(4, truth), np.ones(4)
        swept = [task() for task in sweep_tasks(X, labels, weights, np.arange(4), model)]
        assert sum(part.correct[0] for part in swept) == correct
        loss = sum(part.loss[0] for part in swept)
        assert np.isfinite(loss)
        assert loss >= 2 * np.log(2)
    # A loss far below the last digit of 1 is still one.
    swept = [task() for task in sweep_tasks(X[:1], np.array([1]), np.ones(1), np.arange(1), model)]
    np.testing.assert_allclose(swept[0].loss[0], np.exp(-30.0), rtol=3e-6)
