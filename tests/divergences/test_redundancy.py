"""Re-ranking by what features add to each other."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from maxdisc import MaxDiscClassifier, Smoothing
from maxdisc.divergences import js_gm
from maxdisc.divergences import redundancy as redundancy_module
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.divergences.redundancy import MOST, MOST_VARIED, Overlap, Redundancy
from maxdisc.families import FAMILIES
from maxdisc.fitting.cross_validation import fold_plans
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows, FixedFolds
from maxdisc.selection.fold_models import FoldModels


def repeated(n=400, seed=0, noise=0.1):
    """Two things that tell the classes apart, the better of which comes five times."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    strong, weak = rng.normal(size=(2, n)) + codes * np.array([[1.5], [1.2]])
    copies = strong[:, None] + noise * rng.normal(size=(n, 5))
    return np.column_stack([copies, weak, rng.normal(size=(n, 4))]), codes


def overlap_of(X, codes):
    """Straight from the rows."""
    share = np.bincount(codes) / len(codes)
    means = np.stack([X[codes == c].mean(axis=0) for c in range(len(share))])
    return Overlap(np.cov(X.T, bias=True), (np.sqrt(share)[:, None] * (means - X.mean(axis=0))).T)


def by_the_definition(scores, overlap, strength, pool):
    """Greedy: what is left of a feature by least squares on those chosen, solved anew at every step."""
    plain = np.array(sorted(range(len(scores)), key=lambda j: (-scores[j], j)))
    first, rest = plain[:pool], plain[pool:]
    score, apart = scores[first], overlap.apart[first]
    covariance = overlap.covariance[np.ix_(first, first)]
    between, own = (apart**2).sum(axis=1), np.diag(covariance)
    usual = np.median(own * score / between)
    unit = np.sqrt(np.maximum(between / score, own / (MOST_VARIED * usual)))
    points = apart / unit[:, None]
    beside = score - (points**2).sum(axis=1)
    ridge = np.eye(len(first)) + strength / usual * covariance / np.outer(unit, unit)
    chosen, left = [], list(range(len(first)))
    while left:
        solved = np.linalg.solve(ridge[np.ix_(chosen, chosen)], ridge[np.ix_(chosen, left)])
        points_left = points[left] - solved.T @ points[chosen]
        own_left = np.diag(ridge)[left] - (ridge[np.ix_(chosen, left)] * solved).sum(axis=0)
        worth = ((points_left**2).sum(axis=1) + beside[left]) / own_left
        chosen.append(left.pop(int(np.argmax(worth))))
    return [*first[chosen], *rest]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_overlap_is_covariance_and_distance_of_means(form):
    X, codes = repeated(300)
    codes[:50] = 2
    found = Overlap.of(ArrayRows(form(X), codes, 3).products(np.arange(10))[0])
    due = overlap_of(X, codes)
    np.testing.assert_allclose(found.covariance, due.covariance, atol=1e-12)
    np.testing.assert_allclose(found.apart, due.apart, atol=1e-12)


@pytest.mark.parametrize("batch", [500, 100, 37])
@pytest.mark.parametrize(("kind", "gaps"), [(np.asarray, 0.0), (np.asarray, 0.2), (sp.csr_array, 0.0)])
def test_what_is_constant_shares_nothing_whatever_rounding_does(batch, kind, gaps):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 500)
    constants = np.tile([0.1, 1 / 3, 1e9 + 0.1, 1e7 / 3], (500, 1))
    X = np.column_stack([constants, codes, rng.normal(size=(500, 2)) @ [[1.0, 0.9], [0.0, 0.1]]])
    X[rng.random(X.shape) < gaps] = np.nan
    parts = [(kind(X[i : i + batch]), codes[i : i + batch]) for i in range(0, 500, batch)]
    found = Overlap.of(BatchRows(lambda: parts, 3).products(np.arange(7))[0])
    np.testing.assert_array_equal(found.covariance[:4], 0.0)
    np.testing.assert_array_equal(found.apart[:4], 0.0)
    assert found.covariance[4, 4] > 0.5  # constant within classes, and all the more apart
    correlation = found.covariance[5, 6] / np.sqrt(found.covariance[5, 5] * found.covariance[6, 6])
    assert correlation > 0.6


def test_extreme_values_and_unseen_classes_are_finite():
    X, codes = repeated(60)
    X[:, 3] *= 1e200
    X[codes == 1, 4] = np.nan
    with np.errstate(over="ignore"):
        found = Overlap.of(ArrayRows(X, codes, 2).products(np.arange(10))[0])
    assert np.isfinite(found.covariance).all()
    assert np.isfinite(found.apart).all()
    assert (found.covariance[3] == 0).all()
    assert (found.apart[4] == 0).all()  # nothing tells where the other class would be
    assert found.covariance[0, 0] > 0
    order = Redundancy(1.0).reranked(FeatureRanking.of(np.arange(1.0, 11)), np.arange(10), found).order
    np.testing.assert_array_equal(np.sort(order), np.arange(10))


def test_copies_are_worth_less_and_a_difference_in_spread_is_kept():
    """The best feature, a copy of it, one that differs in its variance only, and a weak one."""
    rng = np.random.default_rng(0)
    codes = np.arange(2000) % 2
    strong, weak = rng.normal(size=(2, 2000)) + codes * np.array([[2.0], [0.7]])
    spread = rng.normal(size=2000) * np.where(codes == 1, 3.0, 1.0)
    X = np.column_stack([strong, strong + 0.05 * rng.normal(size=2000), spread, weak])
    plain = MaxDiscClassifier("gaussian", n_features="all", smoothing=1.0).fit(X, codes)
    assert set(plain.ranking_[:3]) == {0, 1, 2}
    model = MaxDiscClassifier("gaussian", n_features="all", smoothing=1.0, redundancy=10.0).fit(X, codes)
    assert model.ranking_[-1] in (0, 1)
    assert set(model.ranking_[:3]) in ({0, 2, 3}, {1, 2, 3})


def test_negative_scores_are_refused_and_each_column_is_chosen_once():
    X, codes = repeated(40)

    def downhill(densities):
        return -1.0 * np.arange(densities.natural.shape[2])

    for strength in (0.0, 1.0):
        model = MaxDiscClassifier(divergence=downhill, redundancy=strength)
        with pytest.raises(ValueError, match=r"'downhill' must give one finite score of at least 0 .* -9\.$"):
            model.fit(X, codes)
    ranking = FeatureRanking(-np.arange(4.0), np.arange(4), np.empty(0, np.intp))
    again = Redundancy(1.0).reranked(ranking, np.arange(4), Overlap(np.ones((4, 4)), np.ones((4, 2))))
    np.testing.assert_array_equal(np.sort(again.order), np.arange(4))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_folds_that_differ_in_their_first_columns_too_much_are_left_as_they_are(kind, monkeypatch):
    monkeypatch.setattr(redundancy_module, "MOST_BYTES", 8)
    redundancy = Redundancy(1.0)
    orders = [np.roll(np.arange(5), shift) for shift in range(4)]
    assert len(redundancy.candidates(orders, 100)) == 0
    X, codes = np.random.default_rng(0).poisson(3.0, size=(60, 8)), np.arange(60) % 2
    fold_of = np.arange(60) // 5
    splits = [(np.flatnonzero(fold_of != f), np.flatnonzero(fold_of == f)) for f in range(12)]
    model = MaxDiscClassifier("poisson", redundancy=1.0, cv=splits, smoothing=1.0).fit(kind(X), codes)
    firsts = {MaxDiscClassifier("poisson", smoothing=1.0).fit(X[a], codes[a]).ranking_[0] for a, _ in splits}
    assert len(firsts) > 2
    assert model.path_ is not None
    ranking = FeatureRanking.of(np.array([0.1, 0.3, 0.2]))
    none = np.empty(0, np.intp)
    np.testing.assert_array_equal(redundancy.reranked(ranking, none, Overlap.none()).order, ranking.order)


@given(st.integers(0, 1000), st.integers(1, 12), st.floats(0.01, 20))
def test_the_order_is_that_of_the_definition(seed, pool, strength):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 12)) @ rng.normal(size=(12, 12))
    codes, scores = np.arange(30) % 3, rng.random(12) + 0.01
    ranking = FeatureRanking.of(scores)
    redundancy = Redundancy(strength, pool)
    columns = redundancy.candidates([ranking.order])
    assert len(columns) == pool
    rows = ArrayRows(X, codes, 3)
    again = redundancy.reranked(ranking, columns, Overlap.of(rows.products(columns)[0]))
    np.testing.assert_array_equal(
        again.order, by_the_definition(scores, overlap_of(X, codes), strength, pool)
    )
    np.testing.assert_array_equal(again.scores, scores)


def test_without_overlap_nothing_changes():
    scores = np.array([0.1, 0.4, 0.4, 0.0, 0.2])
    ranking = FeatureRanking.of(scores)
    again = Redundancy(5.0).reranked(ranking, np.arange(5), Overlap(np.zeros((5, 5)), np.zeros((5, 2))))
    np.testing.assert_array_equal(again.order, ranking.order)


def test_only_so_many_are_chosen_in_turn(monkeypatch):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 20)), np.arange(50) % 2
    scores = rng.random(20) + 0.1
    given = (FeatureRanking.of(scores), np.arange(20), overlap_of(X, codes))
    whole = Redundancy(3.0).reranked(*given).order
    monkeypatch.setattr(redundancy_module, "MOST_CHOSEN", 4)
    few = Redundancy(3.0).reranked(*given).order
    np.testing.assert_array_equal(few[:4], whole[:4])
    assert (np.diff(scores[few[4:]]) <= 0).all()


def test_candidates_of_many_folds_stay_bounded(monkeypatch):
    rng = np.random.default_rng(0)
    orders = [rng.permutation(5000) for _ in range(4)]
    assert len(Redundancy(1.0, 300).candidates(orders)) > 300
    monkeypatch.setattr(redundancy_module, "MOST_BYTES", 8 * 10 * 200**2)
    few = Redundancy(1.0, 300).candidates(orders, 10)
    assert 190 <= len(few) <= 200
    # Each ranking begins with candidates, and re-ranks as many of its features as begin it without a gap.
    ranking = FeatureRanking(np.linspace(1, 0, 5000)[np.argsort(orders[0])], orders[0], np.empty(0, np.intp))
    Z = rng.normal(size=(50, len(few)))
    again = Redundancy(1.0, 300).reranked(ranking, few, overlap_of(Z, np.arange(50) % 2))
    n = int(np.argmin(np.isin(orders[0], few)))
    assert n >= 45
    assert set(again.order[:n]) == set(orders[0][:n])
    np.testing.assert_array_equal(again.order[n:], orders[0][n:])


def test_the_products_of_all_folds_and_plans_stay_bounded(monkeypatch):
    X, codes = repeated()
    splits = [(np.arange(400) % 5 != f, np.arange(400) % 5 == f) for f in range(5)]
    splits = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in splits] * 3
    asked = []

    class Watched(ArrayRows):
        def products(self, columns, folds=None, per_class=False, means=None):
            asked.append((len(columns), folds.count))
            return super().products(columns, folds, per_class, means)

    monkeypatch.setattr(redundancy_module, "MOST_BYTES", 8 * 21 * 6**2)
    plans = fold_plans(splits, X, codes)
    models = FoldModels.of(Watched(X, codes, 2), FAMILIES["gaussian"], js_gm, None, plans, Redundancy(1.0))
    (path,) = models.paths(np.array([1, 10]), (Smoothing(1.0),))
    assert path.accuracy.shape == (15, 2)
    held = sum(count for _, count in asked) + max(count for _, count in asked) + 1
    assert max(width for width, _ in asked) ** 2 * 8 * held <= 8 * 21 * 6**2


def test_a_pool_is_a_few_times_the_size_and_never_large():
    assert Redundancy.of(0.0, 10) is None
    assert Redundancy.of(1.0, 10).pool == 50
    assert Redundancy.of(1.0, None).pool == Redundancy.of(1.0, 10**6).pool == MOST


def test_the_classifier_prefers_what_is_new():
    X, codes = repeated()
    plain = MaxDiscClassifier(n_features=2, smoothing=1.0).fit(X, codes)
    model = MaxDiscClassifier(n_features=2, smoothing=1.0, redundancy=1.0).fit(X, codes)
    assert 5 not in plain.ranking_[:2]
    assert 5 in model.ranking_[:2]
    np.testing.assert_array_equal(plain.scores_, model.scores_)
    np.testing.assert_array_equal(model.decision_.columns, model.ranking_[:2])
    assert model.score(X, codes) > plain.score(X, codes) + 0.02
    assert set(model.get_support(indices=True)) == set(model.ranking_[:2])
    rows = model.explain(X[:5])
    np.testing.assert_allclose(rows.total, model.predict_joint_log_proba(X[:5]))


@pytest.mark.parametrize("n_features", ["auto", "all", 3, 0.5])
def test_the_model_is_ranked_as_its_definition_says(n_features):
    X, codes = repeated(noise=0.5)
    model = MaxDiscClassifier(n_features=n_features, redundancy=1.0, smoothing=1.0).fit(X, codes)
    pool = Redundancy.of(1.0, {"auto": None, "all": 10, 3: 3, 0.5: 5}[n_features]).pool
    np.testing.assert_array_equal(
        model.ranking_, by_the_definition(model.scores_, overlap_of(X, codes), 1.0, min(pool, 10))
    )


def test_fold_models_re_rank_by_their_own_training_rows():
    X, codes = repeated(noise=0.4)
    (folds,) = fold_plans(3, X, codes)
    fold_of = folds.of(X, 0)
    seen = []

    class Watched(ArrayRows):
        def sweep(self, decision_of, sizes, folds):
            seen.extend(decision_of(f).columns for f in range(folds.count))
            return super().sweep(decision_of, sizes, folds)

    rows = Watched(X, codes, 2)
    redundancy = Redundancy(1.0)
    models = FoldModels.of(rows, FAMILIES["gaussian"], js_gm, None, [folds], redundancy)
    models.paths(np.array([10]), (Smoothing(1.0),))
    for fold, columns in enumerate(seen):
        training = fold_of != fold
        alone = MaxDiscClassifier("gaussian", n_features="all", smoothing=1.0, redundancy=1.0)
        np.testing.assert_array_equal(columns, alone.fit(X[training], codes[training]).ranking_)
    # The held-out rows play no part: turn them into nonsense, and the columns stay.
    first, seen[:] = seen[0], []
    nonsense = np.where((fold_of == 0)[:, None], np.random.default_rng(9).normal(size=X.shape) * 100, X)
    again = FoldModels.of(Watched(nonsense, codes, 2), FAMILIES["gaussian"], js_gm, None, [folds], redundancy)
    again.paths(np.array([10]), (Smoothing(1.0),))
    np.testing.assert_array_equal(seen[0], first)


def test_overlapping_splits_and_left_out_rows_are_taken():
    X, codes = repeated()
    splits = [(np.arange(0, 200), np.arange(200, 300)), (np.arange(100, 300), np.arange(0, 100))]
    model = MaxDiscClassifier(redundancy=1.0, cv=splits).fit(X, codes)
    assert model.path_ is not None
    assert model.score(X, codes) > 0.8
    folds = FixedFolds(np.arange(400) % 4 - 1, 3)
    assert len(ArrayRows(X, codes, 2).products(np.arange(3), folds)) == 4


def test_sparse_batches_weights_and_missing_cells():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=300)
    X = rng.poisson(0.3 + 0.5 * (codes[:, None] == np.arange(20) % 3), size=(300, 20)).astype(float)
    settings = {"family": "poisson", "redundancy": 1.0, "cv": "hash"}
    dense = MaxDiscClassifier(**settings).fit(X, codes)
    sparse = MaxDiscClassifier(**settings).fit(sp.csr_array(X), codes)
    parts = [(X[i : i + 70], codes[i : i + 70]) for i in range(0, 300, 70)]
    streamed = MaxDiscClassifier(**settings).fit_rows(BatchRows(lambda: parts, 3), np.arange(3))
    for other in (sparse, streamed):
        np.testing.assert_array_equal(other.ranking_, dense.ranking_)
        assert other.n_selected_ == dense.n_selected_
        np.testing.assert_allclose(other.path_.accuracy, dense.path_.accuracy)
    times = rng.integers(1, 3, size=300)
    again = np.repeat(np.arange(300), times)
    settings = {"family": "poisson", "redundancy": 1.0, "n_features": 5, "smoothing": 1.0}
    weighted = MaxDiscClassifier(**settings).fit(X, codes, sample_weight=times)
    np.testing.assert_array_equal(
        weighted.ranking_, MaxDiscClassifier(**settings).fit(X[again], codes[again]).ranking_
    )
    X[rng.random(X.shape) < 0.2] = np.nan
    assert MaxDiscClassifier(**settings).fit(X, codes).n_selected_ == 5


def test_a_stream_is_refused_in_one_line():
    X, codes = repeated()
    why = r"redundancy=0\.7 needs those of pairs: use fit"
    for model in (MaxDiscClassifier(redundancy=0.7), MaxDiscClassifier(redundancy=0.7).fit(X, codes)):
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as refused:
            model.partial_fit(X, codes)
        assert re.search(why, str(refused.value.__cause__))
    with pytest.raises(ValueError, match=why):
        model.choose_n_features(X, codes)
    # A model goes on as a stream once redundancy is given up.
    model = MaxDiscClassifier(redundancy=0.7).fit(X, codes).set_params(redundancy=0.0)
    assert model.partial_fit(X, codes).ranking_.shape == (10,)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, "much", None, True])
def test_nonsense_is_refused(bad):
    X, codes = repeated(40)
    with pytest.raises(ValueError, match="redundancy must be a number of at least 0"):
        MaxDiscClassifier(redundancy=bad).fit(X, codes)


def test_a_strength_of_zero_is_the_plain_model():
    X, codes = repeated()
    model = MaxDiscClassifier()
    np.testing.assert_array_equal(
        clone(model).set_params(redundancy=0).fit(X, codes).ranking_, model.fit(X, codes).ranking_
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
def test_a_frame_of_numbers_is_learnt_as_an_array(frame):
    X, codes = repeated(60)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    table = table if frame is pd.DataFrame else frame(table)
    model = MaxDiscClassifier(redundancy=1.0).fit(table, codes)
    same = MaxDiscClassifier(redundancy=1.0).fit(X, codes)
    np.testing.assert_array_equal(model.predict_proba(table), same.predict_proba(X))
    np.testing.assert_array_equal(model.ranking_, same.ranking_)
