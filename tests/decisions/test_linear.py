"""The linear decision, and every K in one sweep."""

from __future__ import annotations

import pickle
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import Smoothing
from maxdisc.decisions.linear import LinearDecision, ranked_decision, ranked_decisions, sweep
from maxdisc.densities.class_densities import estimate
from maxdisc.divergences import js_gm
from maxdisc.divergences.class_divergences import DIVERGENCES
from maxdisc.families import FAMILIES, Gaussian, Poisson
from maxdisc.moments.counting import class_moments
from maxdisc.numerics.threads import limited_threads
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.testing import batches_of, random_data, taking

families = pytest.mark.parametrize("name", FAMILIES)


def fitted(name, X, codes, n_classes, columns=None, prior=None):
    family = FAMILIES[name]
    moments = class_moments(family.statistics, X, codes, n_classes, powers=family.translates)
    columns = np.arange(X.shape[1]) if columns is None else columns
    return moments, LinearDecision.of(family, moments, Smoothing(1.0), columns, prior)


@families
def test_scores_are_log_prior_plus_log_densities(name):
    family = FAMILIES[name]
    X, codes = random_data(name, 60, 3, 5, seed=1)
    columns = np.array([4, 0, 2])
    moments, decision = fitted(name, X, codes, 3, columns)
    densities = estimate(family, moments, Smoothing(1.0))
    each = family.log_density(X[:, None] - densities.origin, densities.natural)
    base = family.log_base(X)
    expected = np.log(1 / 3) + (each - base[:, None])[:, :, columns].sum(axis=2)
    np.testing.assert_allclose(decision.scores(X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(decision.log_base(X), base[:, columns].sum(axis=1))


@families
@pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=DIVERGENCES)
def test_models_of_several_smoothings_at_once_are_those_of_each(name, divergence):
    X, codes = random_data(name, 60, 3, 6, seed=1)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    moments, _ = fitted(name, X, codes, 3)
    smoothings = [Smoothing(0.0), Smoothing(0.3), Smoothing(20.0)]
    together = ranked_decisions(FAMILIES[name], moments, smoothings, divergence, None, 4)
    for smoothing, (ranking, decision) in zip(smoothings, together, strict=True):
        due, due_decision = ranked_decision(FAMILIES[name], moments, smoothing, divergence, None, 4)
        np.testing.assert_allclose(ranking.scores, due.scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(ranking.order, due.order)
        np.testing.assert_array_equal(decision.columns, due_decision.columns)
        np.testing.assert_allclose(decision.scores(X), due_decision.scores(X), rtol=1e-9, atol=1e-9)


@families
def test_contributions_sum_to_scores(name):
    X, codes = random_data(name, 30, 3, 5, seed=2)
    X[3, 1] = np.nan
    _, decision = fitted(name, X, codes, 3, np.array([3, 1, 0]))
    total = decision.log_prior + decision.contributions(X).sum(axis=2)
    np.testing.assert_allclose(total, decision.scores(X), rtol=1e-12, atol=1e-9)
    assert (decision.contributions(X)[3, :, 1] == 0).all()


@families
def test_a_missing_cell_is_as_if_the_feature_were_not_kept(name):
    X, codes = random_data(name, 60, 3, 4, seed=3)
    _, decision = fitted(name, X, codes, 3)
    _, without = fitted(name, X, codes, 3, np.array([0, 1, 3]))
    holes = X.copy()
    holes[:, 2] = np.nan
    np.testing.assert_allclose(decision.scores(holes), without.scores(X), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(decision.log_base(holes), without.log_base(X))


@pytest.mark.parametrize("name", [n for n, f in FAMILIES.items() if f.preserves_zero])
def test_sparse_rows_score_as_dense_ones(name):
    X, codes = random_data(name, 60, 3, 6, seed=4)
    X[::2, :3] = 0
    _, dense = fitted(name, X, codes, 3)
    _, sparse = fitted(name, sp.csr_array(X), codes, 3)
    for decision in (dense, sparse):
        for container in (sp.csr_array, sp.csr_matrix, sp.csc_array):
            np.testing.assert_allclose(
                decision.scores(container(X).tocsr()), dense.scores(X), rtol=1e-9, atol=1e-9
            )


def test_predictions_keep_their_digits_at_a_million_sd():
    rng = np.random.default_rng(0)
    codes = np.arange(200) % 2
    small = rng.normal(size=(200, 3)) + 0.3 * codes[:, None]
    _, near = fitted("gaussian", small, codes, 2)
    _, far = fitted("gaussian", small + 1e6, codes, 2)
    # The shift itself rounds the data to 1e-10; nothing more may be lost.
    np.testing.assert_allclose(far.scores(small + 1e6), near.scores(small), atol=1e-8)


def exact_task(seed, n_rows=40, n_classes=3, n_features=7):
    """Weights and baselines that are small dyadic numbers: sums are exact in any order, so ties are ties."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-2, 3, size=(1, n_classes, n_features)) / 4
    baseline = rng.integers(-1, 2, size=(n_classes, n_features)) / 4
    columns = rng.permutation(n_features)
    decision = LinearDecision(
        Poisson(), columns, np.zeros(n_features), weights, baseline, np.zeros(n_classes)
    )
    return (
        decision,
        rng.integers(0, 3, size=(n_rows, n_features)).astype(float),
        rng.integers(0, n_classes, n_rows),
    )


@given(st.integers(0, 10_000))
def test_the_path_is_predicting_again_for_each_size_ties_included(seed):
    decision, X, codes = exact_task(seed)
    sizes = np.arange(1, 8)
    weights = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float)
    for data in (X, sp.csr_array(X)):
        swept = sweep(decision, data, codes, weights, sizes)
        for s, size in enumerate(sizes):
            scores = decision.first(int(size)).scores(data)
            assert swept.correct[s] == weights @ (scores.argmax(axis=1) == codes)
            log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
            np.testing.assert_allclose(swept.loss[s], -weights @ log_p[np.arange(len(X)), codes])


def test_there_are_ties_in_the_tie_test():
    tied = 0
    for seed in range(20):
        decision, X, _ = exact_task(seed)
        scores = decision.first(2).scores(X)
        tied += int(((scores == scores.max(axis=1, keepdims=True)).sum(axis=1) > 1).sum())
    assert tied > 50


@families
def test_the_path_on_real_densities(name):
    X, codes = random_data(name, 90, 3, 12, seed=5)
    X[4, 3] = np.nan
    _, decision = fitted(name, X, codes, 3, np.random.default_rng(0).permutation(12))
    sizes = np.array([1, 2, 5, 12])
    swept = sweep(decision, X, codes, np.ones(90), sizes)
    for s, size in enumerate(sizes):
        assert swept.correct[s] == (decision.first(int(size)).scores(X).argmax(axis=1) == codes).sum()


def test_soft_labels_in_the_sweep_are_expected_counts():
    X, codes = random_data("poisson", 40, 3, 4, seed=6)
    _, decision = fitted("poisson", X, codes, 3)
    sizes = np.array([1, 4])
    hard = sweep(decision, X, codes, np.ones(40), sizes)
    soft = sweep(decision, X, np.eye(3)[codes], np.ones(40), sizes)
    np.testing.assert_allclose(soft.correct, hard.correct)
    np.testing.assert_allclose(soft.loss, hard.loss)


def test_a_class_that_cannot_be_is_never_predicted_and_its_loss_is_finite():
    X, codes = random_data("gaussian", 40, 2, 3, seed=7)
    _, decision = fitted("gaussian", X, codes, 3)
    assert np.isneginf(decision.scores(X)[:, 2]).all()
    swept = sweep(decision, X, np.full(40, 2), np.ones(40), np.array([3]))
    assert swept.correct[0] == 0
    assert np.isfinite(swept.loss).all()


def test_row_blocks_do_not_show():
    X, codes = random_data("gaussian", 50, 3, 4, seed=8)
    _, decision = fitted("gaussian", X, codes, 3)
    whole = decision.scores(X), sweep(decision, X, codes, np.ones(50), np.array([2, 4]))
    with batches_of(7):
        np.testing.assert_allclose(decision.scores(X), whole[0], rtol=1e-12)
        swept = sweep(decision, X, codes, np.ones(50), np.array([2, 4]))
        np.testing.assert_allclose(decision.scores(sp.csr_array(X)), whole[0], rtol=1e-9)
    np.testing.assert_array_equal(swept.correct, whole[1].correct)
    np.testing.assert_allclose(swept.loss, whole[1].loss)


def test_columns_far_from_zero_have_an_origin_and_sparse_rows_know_it():
    rng = np.random.default_rng(9)
    codes = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + codes[:, None] + np.array([0.0, 1e3, 0.0, 1e6])
    X[::2, 0] = 0.0
    _, decision = fitted("gaussian", X, codes, 3)
    assert (decision.origin != 0).tolist() == [False, True, False, True]
    np.testing.assert_allclose(decision.scores(sp.csr_array(X)), decision.scores(X), rtol=1e-12, atol=1e-9)
    swept = [sweep(decision, data, codes, np.ones(60), np.arange(1, 5)) for data in (X, sp.csr_array(X))]
    np.testing.assert_allclose(swept[0].loss, swept[1].loss, rtol=1e-9)
    total = decision.log_prior + decision.contributions(X).sum(axis=2)
    np.testing.assert_allclose(total, decision.scores(sp.csr_array(X)), rtol=1e-9, atol=1e-9)


def test_far_classes_are_scored_directly_with_missing_cells_and_in_segments():
    rng = np.random.default_rng(10)
    codes = np.arange(90) % 3
    far = np.array([0.0, 1.0, 1e7])[codes]
    X = np.column_stack([far, rng.normal(size=90), -far, codes]) + rng.normal(size=(90, 4))
    X[5, 0] = X[7, 3] = np.nan
    _, decision = fitted("gaussian", X, codes, 3)
    assert decision.apart(sparse=False).tolist() == [True, False, True, False]
    total = decision.log_prior + decision.contributions(X).sum(axis=2)
    np.testing.assert_allclose(total, decision.scores(X), rtol=1e-12)
    swept = sweep(decision, X, codes, np.ones(90), np.arange(1, 5))
    for size in range(1, 5):
        scores = decision.first(size).scores(X)
        assert swept.correct[size - 1] == (scores.argmax(axis=1) == codes).sum()
    own = decision.contributions(X)[np.arange(90), codes]
    assert np.nanmin(own) > -30, "the own class of a row is always near"


def test_many_sparse_columns_that_are_constant_within_classes_stay_sparse():
    # 2,000 rows of 12,500 columns, 250 of them stored in each row: as a dense block 200 MB.
    n_classes, per_class, n_rows = 50, 250, 2000
    codes = np.arange(n_rows) % n_classes
    columns = (codes[:, None] * per_class + np.arange(per_class)).ravel()
    X = sp.csr_array(
        (np.ones(columns.size), columns, np.arange(0, columns.size + 1, per_class)),
        shape=(n_rows, n_classes * per_class),
    )
    _, decision = fitted("gaussian", X, codes, n_classes)
    assert not decision.apart(sparse=True).any()
    assert (decision.scores(X[:100]).argmax(axis=1) == codes[:100]).all()


def sparse_case(rng, name, n, n_features, n_kept, dtype, indices, share=0.3):
    """A decision and sparse rows, some of them empty; some columns are nearly full and far from 0."""
    X = np.where(rng.random((n, n_features)) < share, rng.integers(1, 5, (n, n_features)), 0).astype(float)
    if name == "bernoulli":
        X = np.minimum(X, 1.0)
    X[rng.random(n) < 0.1] = 0.0
    if name == "gaussian":
        X[:, :2] += 1000.0  # has an origin, so it is scored apart
    codes = np.arange(n) % 3
    _, decision = fitted(name, X, codes, 3, rng.permutation(n_features)[:n_kept])
    rows = sp.csr_array(X.astype(dtype))
    parts = (rows.data, rows.indices.astype(indices), rows.indptr.astype(indices))
    return decision, sp.csr_array(parts, shape=X.shape)


def compiled(decision, X, threads=1):
    """Scores by compiled code, however few the cells are."""
    with taking("compiled"), batches_of(37), limited_threads(threads):
        return decision.scores(X)


def plain(decision, X):
    """Scores by products, however many the cells are; compiled code cannot even be loaded."""
    with taking("plain"), unloadable("scores"):
        return decision.scores(X)


@contextmanager
def unloadable(kernels):
    """Have imports of these kernels fail: what needs them raises an ImportError."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, f"maxdisc.decisions.compiled_{kernels}", None)
        yield


linear = pytest.mark.parametrize("name", ["poisson", "exponential", "geometric", "bernoulli", "gaussian"])


@linear
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 60), n_kept=st.integers(0, 12), data=st.data())
def test_compiled_scores_of_sparse_rows_are_those_of_products(name, seed, n, n_kept, data):
    rng = np.random.default_rng(seed)
    dtype = data.draw(st.sampled_from([np.float64, np.float32, np.int64]))
    indices = data.draw(st.sampled_from([np.int32, np.int64]))
    decision, X = sparse_case(rng, name, 60, 12, n_kept, dtype, indices)
    X = X[:n]
    X.resize(n, data.draw(st.sampled_from([12, 2**14])))  # small tables are scored dense
    one, two = compiled(decision, X), compiled(decision, X, threads=2)
    np.testing.assert_allclose(one, plain(decision, X), rtol=1e-12, atol=1e-10)
    np.testing.assert_array_equal(one, two)
    weighed = decision.weighed(rng.uniform(0, 1, n_kept), rng.normal(size=3))
    np.testing.assert_allclose(compiled(weighed, X), plain(weighed, X), rtol=1e-12, atol=1e-10)
    with unloadable("scores"), pytest.raises(ImportError):
        compiled(decision, X)


def test_compiled_scores_of_arrays_that_may_not_be_written_and_of_other_formats():
    decision, X = sparse_case(np.random.default_rng(0), "gaussian", 80, 9, 6, np.float64, np.int32)
    assert decision.apart(sparse=True).any()
    due = plain(decision, X)
    for array in (X.data, X.indices, X.indptr, decision.weights, decision.baseline):
        array.flags.writeable = False
    np.testing.assert_allclose(compiled(decision, X), due, rtol=1e-12)
    np.testing.assert_array_equal(compiled(decision, X.tocsc()), compiled(decision, X))
    impossible = LinearDecision(
        decision.family,
        decision.columns,
        decision.origin,
        decision.weights,
        decision.baseline,
        np.array([0.0, -np.inf, -1.0]),
    )
    assert np.isneginf(compiled(impossible, X)[:, 1]).all()


def test_what_scores_compute_on_the_way_is_not_pickled():
    decision, X = sparse_case(np.random.default_rng(0), "poisson", 80, 9, 6, np.float64, np.int32)
    before, scores = pickle.dumps(decision), compiled(decision, X)
    assert len(pickle.dumps(decision)) == len(before)
    np.testing.assert_array_equal(compiled(pickle.loads(before), X), scores)


def test_without_compiled_code_sparse_rows_are_scored_all_the_same():
    decision, X = sparse_case(np.random.default_rng(0), "poisson", 80, 9, 6, np.float64, np.int32)
    np.testing.assert_array_equal(plain(decision, X), decision.scores(X))


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("amount", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("given_prior", [False, True])
def test_compiled_scores_of_gaussians_are_those_of_their_densities(gaps, amount, given_prior):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 200)
    X = rng.normal(rng.normal(size=(4, 300))[codes], rng.uniform(0.5, 2, (4, 300))[codes])
    X[:, :50] += 1e6
    X[:, 50:55] = 3.0  # constant
    X[:, 55:60] = codes[:, None]  # constant within classes
    X[codes == 1, 60:65] = 7.0  # constant in one
    X[rng.random(X.shape) < gaps] = np.nan
    if gaps:
        X[:, 65], X[codes == 2, 66] = np.nan, np.nan
    codes[codes == 3] = 4  # a class without rows
    halves = [class_moments(Gaussian().statistics, X[i::2], codes[i::2], 5, powers=True) for i in (0, 1)]
    moments = halves[0] + halves[1]  # whose sums are not about the means
    prior = rng.dirichlet(np.ones(5)) if given_prior else None
    given = (Gaussian(), moments, Smoothing(amount), js_gm, prior, 40)
    with taking("plain"), unloadable("parameters"):
        ranking, decision = ranked_decision(*given)
    with taking("compiled"), unloadable("parameters"), pytest.raises(ImportError):
        ranked_decision(*given)
    for threads in (1, 2):
        with taking("compiled"), batches_of(20), limited_threads(threads):
            found, by_found = ranked_decision(*given)
        np.testing.assert_allclose(found.scores, ranking.scores, rtol=1e-11)
        np.testing.assert_array_equal(found.scores == 0, ranking.scores == 0)
        np.testing.assert_array_equal(found.order, ranking.order)
        np.testing.assert_array_equal(by_found.columns, decision.columns)
        for one, other in zip(
            (by_found.weights, by_found.baseline, by_found.origin),
            (decision.weights, decision.baseline, decision.origin),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["poisson", "exponential", "geometric", "bernoulli"])
def test_the_compiled_sweep_is_the_general_one(name, threads):
    rng = np.random.default_rng(0)
    dense = rng.gamma(0.3, 2.0, (200, 30)) if name == "exponential" else rng.poisson(0.5, (200, 30))
    dense = dense * (rng.random((200, 30)) < 0.5)
    X = sp.csr_array(np.minimum(dense, 1) if name == "bernoulli" else dense).astype(float)
    codes, weights = rng.integers(0, 4, 200), rng.random(200)
    codes[codes == 1] = 2  # a class that is not trained on, but held out
    moments = ArrayRows(X, codes, 4).moments(FAMILIES[name])[0]
    codes[:5] = 1
    decision = ranked_decision(FAMILIES[name], moments, Smoothing(0.5), js_gm, size=25)[1]
    rows, sizes = np.r_[0:3, np.flatnonzero(rng.random(200) < 0.7)], np.array([1, 2, 7, 25])
    with taking("plain"), unloadable("sweep"):
        general = sweep(decision, X, codes, weights, sizes, rows)
    with taking("compiled"), batches_of(64):
        with limited_threads(threads):
            compiled = sweep(decision, X, codes, weights, sizes, rows)
        with limited_threads(1):
            alone = sweep(decision, X, codes, weights, sizes, rows)
        with unloadable("sweep"), pytest.raises(ImportError):
            sweep(decision, X, codes, weights, sizes, rows)
    np.testing.assert_allclose(compiled.correct, general.correct, rtol=1e-12)
    np.testing.assert_allclose(compiled.loss, general.loss, rtol=1e-6)
    np.testing.assert_allclose((compiled.weight, compiled.squares), (general.weight, general.squares))
    np.testing.assert_array_equal(compiled.correct, alone.correct)
    np.testing.assert_array_equal(compiled.loss, alone.loss)


def test_no_rows_are_swept_in_no_parts():
    X, codes = sp.csr_array(np.eye(4)), np.array([0, 0, 1, 1])
    moments = ArrayRows(X, codes, 2).moments(FAMILIES["poisson"])[0]
    decision = ranked_decision(FAMILIES["poisson"], moments, Smoothing(0.5), js_gm)[1]
    with taking("compiled"):
        none = sweep(decision, X, codes, np.ones(4), np.array([4]), np.zeros(0, dtype=int))
    assert (none.weight, none.correct.tolist()) == (0.0, [0.0])
