"""Evidence of held-out rows: bands that add up, samples that no order changes, models that agree."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import MaxDiscClassifier, Smoothing
from maxdisc.decisions.linear import LinearDecision, ranked_decision
from maxdisc.divergences import js_gm
from maxdisc.families import FAMILIES
from maxdisc.moments.counting import class_moments
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ALWAYS_TRAINING, LEFT_OUT, ArrayRows, FixedFolds, HashFolds
from maxdisc.rows.sampling import content_hashes, sampled
from maxdisc.selection.fold_models import FoldModels
from maxdisc.selection.held_out import (
    MOST_BANDS,
    BandTrial,
    HeldOut,
    band_edges,
    enough_rows,
)
from maxdisc.selection.sparse_fold_models import SparseFoldModels
from maxdisc.testing import random_data, taking
from tests.conftest import examples

ONE = Smoothing(1.0)


@given(st.integers(1, 10**9))
def test_bands_end_at_growing_numbers_up_to_all(n_features):
    edges = band_edges(n_features)
    assert 1 <= len(edges) <= MOST_BANDS
    assert edges[-1] == n_features
    assert (np.diff(edges, prepend=0) > 0).all()
    assert edges[0] <= np.ceil(n_features ** (1 / 3))
    assert edges.dtype == np.intp


def test_edges_are_powers():
    edges = band_edges(10**6)
    ratios = np.diff(np.log(edges))
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-2)


@given(st.integers(1, 10**5), st.integers(1, 100))
def test_rows_of_all_folds_are_enough(n_classes, n_folds):
    rows = enough_rows(n_classes, n_folds)
    assert rows >= 1
    assert rows * n_folds >= min(1000, 2**17 // n_classes)


# ------------------------------------------------------------------ bands of a decision


def a_decision(name="poisson", sparse=False, size=None, seed=0):
    X, codes = random_data(name, 60, 3, 20, seed)
    X = sp.csr_array(X) if sparse else X
    moments = ArrayRows(X, codes, 3).moments(FAMILIES[name])[0]
    return ranked_decision(FAMILIES[name], moments, ONE, js_gm, size=size)[1], X, codes


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("edges", [[20], [1, 20], [2, 5, 11, 20], list(range(1, 21))])
def test_bands_sum_to_the_scores(name, edges):
    made, X, _ = a_decision(name)
    by_bands = made.by_bands(X, np.array(edges))
    assert by_bands.shape == (60, 3, len(edges))
    np.testing.assert_allclose(by_bands.sum(axis=2) + made.log_prior, made.scores(X), rtol=1e-9, atol=1e-8)
    first = made.first(edges[0])
    np.testing.assert_allclose(by_bands[:, :, 0] + made.log_prior, first.scores(X), rtol=1e-9, atol=1e-8)


def test_bands_of_sparse_rows_of_missing_cells_and_of_far_features():
    made, X, _ = a_decision(sparse=True)
    edges = np.array([3, 20])
    np.testing.assert_allclose(made.by_bands(X, edges), made.by_bands(X.toarray(), edges), atol=1e-10)
    made, X, _ = a_decision("gaussian")
    X = X.copy()
    X[::3, 4] = np.nan
    parts = made.contributions(X)
    np.testing.assert_allclose(made.by_bands(X, edges)[:, :, 0], parts[:, :, :3].sum(axis=2), atol=1e-9)
    codes = np.arange(60) % 3
    X[:, 1] = 1e6 * codes + np.random.default_rng(0).normal(size=60)
    moments = ArrayRows(X, codes, 3).moments(FAMILIES["gaussian"])[0]
    _, made = ranked_decision(FAMILIES["gaussian"], moments, ONE, js_gm)
    assert made.apart(False).any()
    by_bands = made.by_bands(X, edges)
    np.testing.assert_allclose(by_bands.sum(axis=2) + made.log_prior, made.scores(X), rtol=1e-12)
    np.testing.assert_allclose(by_bands.sum(axis=2), made.contributions(X).sum(axis=2), rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "gamma", "poisson"])
def test_a_decision_of_weight_one_is_as_it_was(name):
    made, X, _ = a_decision(name)
    same = made.weighed(np.ones(20), np.zeros(3))
    np.testing.assert_array_equal(same.scores(X), made.scores(X))
    other = made.weighed(np.linspace(0, 2, 20), np.array([1.0, -2.0, 0.5]))
    expected = (made.contributions(X) * np.linspace(0, 2, 20)).sum(axis=2)
    np.testing.assert_allclose(other.scores(X) - other.log_prior, expected, atol=1e-8)
    np.testing.assert_allclose(other.log_prior - made.log_prior, [1.0, -2.0, 0.5])
    np.testing.assert_allclose(other.contributions(X).sum(axis=2), expected, atol=1e-8)


# ------------------------------------------------------------------ samples


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 40), st.data())
def test_the_smallest_hashes_do_not_depend_on_batches(values, most, data):
    hashes = np.array(values, dtype=np.uint64)
    kept, weights = sampled(hashes, np.ones(len(values)), most)
    counts = Counter(values)
    assert hashes[kept].tolist() == sorted(counts)[:most]
    assert weights.tolist() == [counts[h] for h in sorted(counts)[:most]]
    cut = data.draw(st.integers(0, len(values)))
    parts = [part for part in (hashes[:cut], hashes[cut:]) if len(part)]
    taken = [sampled(part, np.ones(len(part)), most) for part in parts]
    both = np.concatenate([part[at] for part, (at, _) in zip(parts, taken, strict=True)])
    again, sums = sampled(both, np.concatenate([w for _, w in taken]), most)
    np.testing.assert_array_equal(both[again], hashes[kept])
    np.testing.assert_array_equal(sums, weights)


@pytest.mark.parametrize("sparse", [False, True])
def test_any_order_and_any_batches_give_the_same_rows(sparse):
    made, X, codes = a_decision(sparse=sparse)
    twice = np.r_[np.arange(60), np.arange(0, 60, 2), np.arange(0, 60, 4)]
    X, codes = X[twice], codes[twice]
    trial, edges = BandTrial(made, 17), np.array([4, 20])
    weights = np.arange(1.0, len(twice) + 1)
    every = np.arange(len(twice))
    whole = trial.swept(X, codes, weights, edges, every)
    assert len(whole) == 17
    assert len(np.unique(X[whole.rows].toarray() if sparse else X[whole.rows], axis=0)) == 17

    def told(held, number):
        order = np.argsort(held.weights)
        return held.weights[order], held.codes[order], held.evidence[order], np.sort(number)

    rng = np.random.default_rng(0)
    for _ in range(5):
        order = rng.permutation(len(twice))
        cuts = [0, *np.sort(rng.choice(len(twice), 3)).tolist(), len(twice)]
        batches = [order[a:b] for a, b in itertools.pairwise(cuts) if b > a]
        parts = [trial.swept(X[b], codes[b], weights[b], edges, np.arange(len(b))) for b in batches]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        for a, b in zip(told(total, total.hashes), told(whole, whole.hashes), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-10)


def test_a_row_of_several_classes_counts_for_the_one_it_belongs_to_most():
    made, X, codes = a_decision()
    shares = np.full((60, 3), 0.1)
    shares[np.arange(60), codes] = 0.8
    held = BandTrial(made, 100).swept(X, shares, np.full(60, 2.0), np.array([20]), np.arange(60))
    np.testing.assert_array_equal(held.codes, codes)
    np.testing.assert_allclose(held.weights, 1.6)


def test_parts_with_and_without_hashes_are_put_together():
    """Folds that are small enough are taken as they are, and need no hashes."""
    made, X, codes = a_decision()
    sampled = BandTrial(made, 10).swept(X, codes, np.ones(60), np.array([20]), np.arange(60))
    whole = HeldOut(
        made.by_bands(X, np.array([20])), codes, np.ones(60), np.arange(60), np.empty(0, np.uint64), 10, 60
    )
    for parts in ([sampled, whole], [whole, sampled], [whole, whole], [sampled, sampled]):
        held = HeldOut.joined(parts)
        some = held.codes == 1
        assert len(held.select(some)) == some.sum()
        np.testing.assert_array_equal(held.select(some).evidence, held.evidence[some])


# ------------------------------------------------------------------ models of folds


def sparse_data(n_rows, n_classes, n_features, seed):
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.4, n_rows) - 1, n_classes - 1)
    rate = rng.gamma(0.3, 1.0, (n_classes, n_features)) * (rng.random(n_features) < 0.8)
    return sp.csr_array(rng.poisson(rate[codes]).astype(float)), codes


def both(name, X, codes, weights, prior, plans):
    rows = ArrayRows(X, codes, int(codes.max()) + 1, weights)
    family = FAMILIES[name]
    return FoldModels.of(rows, family, js_gm, prior, plans), SparseFoldModels(rows, family, prior, plans)


def agree(general, compiled):
    assert general.keys() == compiled.keys()
    for fold, a in general.items():
        b = compiled[fold]
        order, other = np.argsort(a.rows), np.argsort(b.rows)
        np.testing.assert_array_equal(a.rows[order], b.rows[other])
        np.testing.assert_array_equal(a.codes[order], b.codes[other])
        np.testing.assert_allclose(a.weights[order], b.weights[other])
        np.testing.assert_allclose(a.evidence[order], b.evidence[other], rtol=1e-8, atol=1e-8)


@given(
    st.sampled_from(["poisson", "exponential", "geometric", "bernoulli"]),
    st.integers(12, 60),
    st.integers(2, 5),
    st.integers(3, 30),
    st.sampled_from([3, 8, 1000]),
    st.integers(0, 10**6),
)
@examples(60)
def test_compiled_evidence_is_that_of_the_general_way(name, n_rows, n_classes, n_features, most, seed):
    X, codes = sparse_data(n_rows, n_classes, n_features, seed)
    if name == "bernoulli":
        X = (X > 0).astype(float)
    rng = np.random.default_rng(seed)
    weights = None if seed % 2 else rng.random(n_rows) + 0.1
    marks = [[0, 1, 2], [0, 1, ALWAYS_TRAINING], [0, 1, 2, LEFT_OUT]][seed % 3]
    plans = [FixedFolds(rng.choice(marks, n_rows), 3)]
    general, compiled = both(name, X, codes, weights, None, plans)
    edges = band_edges(n_features)
    for smoothing in (Smoothing(0.1), ONE):
        (a,) = general.held_out(edges, (smoothing,), most)
        (b,) = compiled.held_out(edges, (smoothing,), most)
        agree({f: held for f, held in a.items() if len(held)}, b)


@pytest.mark.parametrize("fold", [0, 1, 2])
def test_features_selected_in_a_fold_are_those_of_its_training_rows(fold):
    X, codes = sparse_data(90, 3, 25, seed=4)
    assignment = np.arange(90) % 3
    sizes, left = np.array([3, 8, 20]), np.flatnonzero(assignment != fold)
    alone = class_moments(FAMILIES["poisson"].statistics, X[left], codes[left], 3)
    ranking, _ = ranked_decision(FAMILIES["poisson"], alone, ONE, js_gm, None, 25)
    expected = np.empty(25, dtype=int)
    expected[ranking.order] = np.searchsorted(sizes, np.arange(25), side="right")
    for models in both("poisson", X, codes, None, None, [FixedFolds(assignment, 3)]):
        np.testing.assert_array_equal(models.places(fold, ONE, sizes), expected)


@pytest.mark.whole
def test_folds_of_about_the_size_of_a_sample():
    """Some folds are sampled, some are taken whole: 438 and 437 rows where 437 are enough."""
    rng = np.random.default_rng(0)
    n_classes = 60
    n_rows = enough_rows(n_classes, 5) * 5 + 1
    codes = np.arange(n_rows) % n_classes
    X = sp.csr_array(rng.poisson(rng.gamma(0.3, 1.0, (n_classes, 40))[codes]).astype(float))
    with taking("compiled"):
        compiled = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, codes)
    assert len(compiled.evidence_.edges) > 0
    with taking("plain"):
        general = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, codes)
    np.testing.assert_allclose(compiled.evidence_.weights, general.evidence_.weights, rtol=1e-3)


def test_batches_give_the_same_evidence():
    X, codes = random_data("poisson", 80, 3, 12, seed=1)
    edges = band_edges(12)

    def held(rows):
        models = FoldModels.of(rows, FAMILIES["poisson"], js_gm, None, [HashFolds(4)])
        (by_fold,) = models.held_out(edges, (ONE,), 9)
        return {
            f: (np.sort(h.hashes), h.evidence[np.argsort(h.hashes, kind="stable")])
            for f, h in by_fold.items()
        }

    whole = held(ArrayRows(X, codes, 3))
    for step in (1, 7, 33):
        batches = [(X[i : i + step], codes[i : i + step]) for i in range(0, 80, step)]
        parts = held(BatchRows(lambda batches=batches: batches, 3))
        assert parts.keys() == whole.keys()
        for fold, (hashes, evidence) in parts.items():
            np.testing.assert_array_equal(hashes, whole[fold][0])
            np.testing.assert_allclose(evidence, whole[fold][1], atol=1e-9)


def test_hashes_are_of_content_and_class():
    X, codes = random_data("poisson", 30, 3, 5)
    made = LinearDecision.of(
        FAMILIES["poisson"], ArrayRows(X, codes, 3).moments(FAMILIES["poisson"])[0], ONE, np.arange(5)
    )
    held = BandTrial(made, 8).swept(X, codes, np.ones(30), np.array([5]), np.arange(30))
    np.testing.assert_array_equal(held.hashes, content_hashes(X, codes)[held.rows])
    copies = content_hashes(np.vstack([X, X]), np.r_[codes, codes])
    assert len(np.unique(copies)) == len(np.unique(np.c_[X, codes], axis=0))
    others = content_hashes(np.vstack([X, X]), np.r_[codes, (codes + 1) % 3])
    assert (others[:30] != others[30:]).all()


def test_a_row_that_repeats_takes_one_place_and_a_hundredth_of_the_weight():
    made, X, codes = a_decision()
    often = np.r_[np.arange(60), np.full(5000, 7)]
    held = BandTrial(made, 40).swept(
        X[often], codes[often], np.ones(len(often)), np.array([20]), np.arange(5060)
    )
    assert len(held) == 40
    assert held.seen == 5060
    assert held.weights.max() in (1, 5001)
    even = held.levelled()
    assert even.weights.max() <= held.weights.sum() / 100
    few = BandTrial(made, 6000).swept(X, codes, np.ones(60), np.array([20]), np.arange(60))
    assert few.levelled() is few
