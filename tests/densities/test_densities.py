"""Smoothing and the densities it leads to: defined and finite whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxdisc import Smoothing
from maxdisc.decisions.linear import ranked_decision
from maxdisc.densities.class_densities import density_blocks, estimate, translated
from maxdisc.divergences import jeffreys, js_gm, kl
from maxdisc.divergences.class_divergences import DIVERGENCES, one_vs_rest
from maxdisc.families import FAMILIES, Gaussian, Poisson
from maxdisc.moments.counting import class_moments
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.testing import batches_of, random_data

families = pytest.mark.parametrize("name", FAMILIES)


def moments_of(name, X, codes, n_classes, weights=None):
    family = FAMILIES[name]
    return class_moments(family.statistics, X, codes, n_classes, weights, powers=family.translates)


@families
@pytest.mark.parametrize("amount", [0.0, 0.1, 1.0, 1e6])
def test_the_mean_is_the_gradient_of_the_log_partition(name, amount):
    family = FAMILIES[name]
    X, codes = random_data(name, 40, 3, 5, seed=1)
    densities = estimate(family, moments_of(name, X, codes, 3), Smoothing(amount))
    np.testing.assert_allclose(densities.mean, family.mean(densities.natural), rtol=1e-12)
    np.testing.assert_allclose(densities.log_partition, family.log_partition(densities.natural))
    assert densities.solved.all()


def test_smoothing_adds_pseudo_rows_of_the_features_own_mean():
    X = np.array([[2.0, 0.0], [0.0, 3.0], [4.0, 0.0], [0.0, 0.0]])
    codes = np.array([0, 0, 1, 1])
    densities = estimate(Poisson(), moments_of("poisson", X, codes, 2), Smoothing(0.5))
    share = np.array([2 / 4, 1 / 4])
    k, m = 0.5 / share, X.mean(axis=0)
    expected = np.array([(X[codes == c].sum(axis=0) + k * m) / (2 + k) for c in range(2)])
    np.testing.assert_allclose(densities.mean[0], expected)


def test_flat_smoothing_has_one_mean_for_all_features():
    X = np.array([[2.0, 0.0], [0.0, 3.0], [4.0, 0.0], [0.0, 0.0]])
    codes = np.array([0, 0, 1, 1])
    densities = estimate(Poisson(), moments_of("poisson", X, codes, 2), Smoothing(0.5, "flat"))
    k, m = 0.5 / (3 / 8), X.mean()
    expected = np.array([(X[codes == c].sum(axis=0) + k * m) / (2 + k) for c in range(2)])
    np.testing.assert_allclose(densities.mean[0], expected)


def test_gaussian_variance_is_drawn_to_the_features_own_within_class_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1.0, 1e-6, 1e6] + np.arange(30)[:, None] % 2 * 5
    codes = np.arange(30) % 2
    within = np.mean([X[codes == c].var(axis=0) for c in range(2)], axis=0)
    densities = estimate(Gaussian(), moments_of("gaussian", X, codes, 2), Smoothing(4.0))
    for c in range(2):
        expected = (15 * X[codes == c].var(axis=0) + 4 * within) / 19
        np.testing.assert_allclose(-0.5 / densities.natural[1, c], expected, rtol=1e-10)
        mean = densities.mean[0, c] + densities.origin
        np.testing.assert_allclose(mean, X[codes == c].mean(axis=0), rtol=1e-10)


@pytest.mark.parametrize("name", ["exponential", "gaussian", "gamma", "hurdle"])
def test_the_unit_of_a_feature_does_not_matter(name):
    X, codes = random_data(name, 60, 3, 4, seed=2)
    scale = np.array([1e-6, 1.0, 1e3, 1e6])
    scores = [
        js_gm(estimate(FAMILIES[name], moments_of(name, data, codes, 3), Smoothing(1.0)))
        for data in (X, X * scale)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)


@families
def test_a_feature_without_mass_or_variation_scores_zero(name):
    X, codes = random_data(name, 30, 3, 4, seed=3)
    X[:, 1] = 0.0 if FAMILIES[name].preserves_zero else 0.5
    for divergence in DIVERGENCES.values():
        densities = estimate(FAMILIES[name], moments_of(name, X, codes, 3), Smoothing(1.0))
        scores = divergence(densities)
        assert scores[1] == 0.0
        assert (scores[[0, 2, 3]] > 0).all()
        assert (one_vs_rest(densities)[:, 1] == 0.0).all()
    assert np.isfinite(densities.natural).all()
    assert np.isfinite(densities.log_partition).all()


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, -7e-5])
@pytest.mark.parametrize("container", ["dense", "sparse"])
def test_a_constant_is_recognised_through_rounding(value, container):
    import scipy.sparse as sp

    X = np.full((37, 1), value)
    data = X if container == "dense" else sp.csr_array(X)
    densities = estimate(Gaussian(), moments_of("gaussian", data, np.arange(37) % 3, 3), Smoothing(0.1))
    assert not densities.informative.any()


def test_constant_within_classes_but_not_between_is_very_telling_and_finite():
    codes = np.arange(20) % 2
    X = np.column_stack([codes * 1.0, codes + np.random.default_rng(0).normal(size=20)])
    for amount in (0.0, 1.0, 100.0):
        scores = js_gm(estimate(Gaussian(), moments_of("gaussian", X, codes, 2), Smoothing(amount)))
        assert np.isfinite(scores).all()
        assert scores[0] > 1000 * scores[1]


@families
def test_a_class_with_one_row_or_none(name):
    X, codes = random_data(name, 30, 2, 4, seed=4)
    codes[:] = 0
    codes[0] = 1
    densities = estimate(FAMILIES[name], moments_of(name, X, codes, 3), Smoothing(1.0))
    assert np.isfinite(densities.natural).all()
    # A class without rows is described by all the others.
    total = moments_of(name, X, np.zeros(30, dtype=np.intp), 1)
    if name != "gaussian":
        pooled = total.sums[:, 0] / 30
        np.testing.assert_allclose(densities.mean[:, 2], pooled, rtol=1e-6)


@given(st.data())
def test_anything_in_range_gives_finite_densities_and_scores(data):
    name = data.draw(st.sampled_from(list(FAMILIES)))
    elements = {
        "gaussian": st.floats(-1e100, 1e100),
        "bernoulli": st.sampled_from([0.0, 1.0]),
        "gamma": st.floats(1e-100, 1e100),
        "beta": st.floats(1e-9, 1 - 1e-9),
    }.get(name, st.floats(0, 1e100, allow_subnormal=False))
    X = data.draw(
        hnp.arrays(
            np.float64,
            (8, 2),
            elements=elements | st.sampled_from([0.5, 1.0])
            if name not in ("bernoulli", "beta")
            else elements,
        )
    )
    codes = data.draw(hnp.arrays(np.intp, 8, elements=st.integers(0, 2)))
    smoothing = Smoothing(data.draw(st.sampled_from([0.0, 0.1, 1.0, 100.0])))
    densities = estimate(FAMILIES[name], moments_of(name, X, codes, 3), smoothing)
    for values in (densities.natural, densities.mean, densities.log_partition):
        assert np.isfinite(values).all()
    for divergence in DIVERGENCES.values():
        scores = divergence(densities)
        assert (scores >= 0).all()


def test_missing_cells_scale_the_score_by_how_often_a_feature_is_seen():
    rng = np.random.default_rng(0)
    codes = np.arange(400) % 2
    X = np.column_stack([codes + rng.normal(size=400)] * 2)
    X[::4, 1] = np.nan
    X[1::4, 1] = np.nan
    full = moments_of("gaussian", X[~np.isnan(X[:, 1])][:, [1]], codes[~np.isnan(X[:, 1])], 2)
    alone = js_gm(estimate(Gaussian(), full, Smoothing(1.0)))
    both = js_gm(estimate(Gaussian(), moments_of("gaussian", X, codes, 2), Smoothing(1.0)))
    np.testing.assert_allclose(both[1], 0.5 * alone[0], rtol=1e-10)


def test_a_given_prior_mixes_the_rest():
    X, codes = random_data("poisson", 60, 3, 4, seed=5)
    prior = np.array([0.7, 0.2, 0.1])
    densities = estimate(Poisson(), moments_of("poisson", X, codes, 3), Smoothing(0.0), prior)
    own = densities.mean[0]
    expected = (prior[1] * own[1] + prior[2] * own[2]) / (prior[1] + prior[2])
    np.testing.assert_allclose(densities.rest.mean[0, 0], expected, rtol=1e-6)
    # Reweighting the rows to that prior is the same thing.
    weights = (prior / np.bincount(codes))[codes] * 60
    weighted = estimate(Poisson(), moments_of("poisson", X, codes, 3, weights), Smoothing(0.0))
    np.testing.assert_allclose(densities.rest.mean, weighted.rest.mean, rtol=1e-6)
    for divergence in DIVERGENCES.values():
        np.testing.assert_allclose(divergence(densities), divergence(weighted), rtol=1e-6)


@families
def test_blocks_of_features_agree_with_all_at_once(name):
    X, codes = random_data(name, 60, 3, 7, seed=6)
    moments = moments_of(name, X, codes, 3)
    whole = estimate(FAMILIES[name], moments, Smoothing(1.0))
    columns = np.array([6, 0, 3, 2, 5])
    due = js_gm(whole)
    with batches_of(2):
        parts = list(density_blocks(FAMILIES[name], moments, Smoothing(1.0), columns=columns))
        ranking, _ = ranked_decision(FAMILIES[name], moments, Smoothing(1.0), js_gm)
    assert [block.stop - block.start for block, _ in parts] == [2, 2, 1]
    for block, part in parts:
        np.testing.assert_array_equal(part.natural, whole.natural[:, :, columns[block]])
    np.testing.assert_array_equal(ranking.scores, due)


@given(hnp.arrays(np.float64, (3, 1), elements=st.floats(-3, 3)), st.floats(-3, 3), st.floats(-3, 3))
def test_translation_moves_a_polynomial(natural, shift, x):
    moved = translated(natural, np.array([shift]))
    value = sum(natural[k, 0] * x ** (k + 1) for k in range(3))
    constant = sum(natural[k, 0] * shift ** (k + 1) for k in range(3))
    again = sum(moved[k, 0] * (x - shift) ** (k + 1) for k in range(3))
    np.testing.assert_allclose(again + constant, value, atol=1e-8)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_smoothing_refuses_nonsense(bad):
    with pytest.raises(ValueError, match="smoothing must be at least 0"):
        Smoothing(bad)
    with pytest.raises(ValueError, match="'own' or 'flat'"):
        Smoothing(1.0, "mine")


@pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma"])
def test_one_vs_rest_with_missing_cells_is_feature_by_feature_without_them(name):
    X, codes = random_data(name, 90, 3, 4, seed=9)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    densities = estimate(FAMILIES[name], moments_of(name, X, codes, 3), Smoothing(1.0))
    for j in range(4):
        seen = ~np.isnan(X[:, j])
        alone = estimate(FAMILIES[name], moments_of(name, X[seen][:, [j]], codes[seen], 3), Smoothing(1.0))
        for divergence in DIVERGENCES.values():
            np.testing.assert_allclose(
                divergence(densities)[j],
                seen.mean() * divergence(alone)[0],
                rtol=1e-9,
                err_msg=str(divergence),
            )


def test_equal_values_everywhere_score_exactly_zero_with_any_weights():
    rng = np.random.default_rng(0)
    for name in ("poisson", "exponential", "geometric", "hurdle"):
        for _ in range(5):
            X = np.tile(rng.random(6) * 5 + 0.1, (300, 1))
            moments = moments_of(name, X, rng.integers(0, 3, 300), 3, rng.random(300))
            densities = estimate(FAMILIES[name], moments, Smoothing(0.3))
            assert (js_gm(densities) == 0).all(), name
            assert (jeffreys(densities) == 0).all(), name
            np.testing.assert_allclose(kl(densities), 0.0, atol=1e-12)


def test_a_column_never_seen_has_no_level():
    X, codes = random_data("beta", 30, 2, 2, seed=10)
    X[:, 1] = np.nan
    densities = estimate(FAMILIES["beta"], moments_of("beta", X, codes, 2), Smoothing(1.0))
    assert np.isnan(densities.level).tolist() == [False, True]
    assert not densities.informative[1]


def test_a_given_prior_with_missing_cells_is_a_reweighting_of_the_rows():
    X, codes = random_data("poisson", 90, 3, 4, seed=11)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    prior = np.array([0.6, 0.3, 0.1])
    weights = (prior / np.bincount(codes))[codes] * 90
    given_prior = estimate(Poisson(), moments_of("poisson", X, codes, 3), Smoothing(0.0), prior)
    weighted = estimate(Poisson(), moments_of("poisson", X, codes, 3, weights), Smoothing(0.0))
    np.testing.assert_allclose(given_prior.coverage, weighted.coverage, rtol=1e-9)
    np.testing.assert_allclose(given_prior.prior, weighted.prior, rtol=1e-9)
    for divergence in DIVERGENCES.values():
        np.testing.assert_allclose(divergence(given_prior), divergence(weighted), rtol=1e-6)


@given(st.integers(0, 10**6))
def test_a_column_of_ones_says_nothing_whatever_the_weights(seed):
    rng = np.random.default_rng(seed)
    codes, weights = rng.integers(0, 3, 40), rng.random(40) + 0.1
    order = rng.permutation(40)
    moments = ArrayRows(np.ones((40, 1)), codes[order], 3, weights[order]).moments(FAMILIES["bernoulli"])[0]
    for smoothing in (Smoothing(1.0), Smoothing(1.0, "flat")):
        assert not estimate(FAMILIES["bernoulli"], moments, smoothing).informative.any()
