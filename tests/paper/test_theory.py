"""The paper's statements, each by itself, against quadrature or enumeration."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import logsumexp

from maxdisc.densities.class_densities import ClassDensities
from maxdisc.divergences import jeffreys, js_gm
from maxdisc.divergences.class_divergences import FeatureRanking, one_vs_rest, pairwise
from maxdisc.families import FAMILIES, Bernoulli, Family
from maxdisc.testing import nodes_for, random_densities

families = pytest.mark.parametrize("name", FAMILIES)


def log_densities(densities: ClassDensities, feature: int):
    """Nodes, weights and the log densities (C, n) of all classes there."""
    family, natural = densities.family, densities.natural[:, :, feature]
    # Nodes for the widest class serve the others too: the rule is far finer than it need be.
    widest = int(np.argmax(np.abs(densities.mean[-1, :, feature])))
    x, w = nodes_for(family, densities.mean[:, widest, feature])
    return x, w, np.stack([family.log_density(x, natural[:, c, None]) for c in range(natural.shape[1])])


@families
def test_theorem_1_greedy_choice_is_sorting(name):
    # The greedy step maximises J of the product densities of the chosen set and one more feature, and so
    # does the exhaustive search over sets of k: both pick the k largest marginal divergences.
    densities = random_densities(name, n_classes=2, n_features=6, seed=1)
    marginal = pairwise(densities)[:, 0, 1]

    def j_of_product(features):
        """J between joint densities on a set, by its definition: E_P - E_Q of the log ratio, which adds."""
        total = 0.0
        for j in features:
            _, w, log_p = log_densities(densities, j)
            p, q = np.exp(log_p)
            total += float(w @ ((p - q) * (log_p[0] - log_p[1])))
        return total

    chosen: list[int] = []
    for _ in range(6):
        rest = [j for j in range(6) if j not in chosen]
        chosen.append(max(rest, key=lambda j: j_of_product([*chosen, j])))
    assert chosen == FeatureRanking.of(marginal).order.tolist()
    for k in (1, 2, 3):
        best = max(combinations(range(6), k), key=j_of_product)
        assert set(best) == set(chosen[:k])


def test_theorem_1_on_joint_distributions_by_enumeration():
    # All 2^5 outcomes of five binary features: J of the joint tables is the sum of the marginal ones.
    densities = random_densities("bernoulli", n_classes=2, n_features=5, seed=3)
    outcomes = np.array(list(product([0.0, 1.0], repeat=5)))
    log_p = np.stack(
        [Bernoulli().log_density(outcomes, densities.natural[:, c]).sum(axis=1) for c in range(2)]
    )
    p = np.exp(log_p)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    joint = ((p[0] - p[1]) * (log_p[0] - log_p[1])).sum()
    np.testing.assert_allclose(joint, pairwise(densities)[:, 0, 1].sum(), rtol=1e-10)


@families
def test_remark_1_the_j_formula_is_the_integral(name):
    densities = random_densities(name, n_classes=3, n_features=4, seed=2)
    table = pairwise(densities)
    directed = pairwise(densities, symmetric=False)
    for j in range(4):
        _, w, log_p = log_densities(densities, j)
        for a, b in combinations(range(3), 2):
            p, q = np.exp(log_p[a]), np.exp(log_p[b])
            integral = float(w @ ((p - q) * (log_p[a] - log_p[b])))
            np.testing.assert_allclose(table[j, a, b], integral, rtol=1e-5, atol=1e-8)
            np.testing.assert_allclose(table[j, a, b], directed[j, a, b] + directed[j, b, a], rtol=1e-8)


def jensen_shannon(densities, feature):
    prior = densities.prior[:, 0]
    _, w, log_p = log_densities(densities, feature)
    mixture = logsumexp(log_p, axis=0, b=prior[:, None])
    return float(prior @ ((np.exp(log_p) * (log_p - mixture)) @ w))


@families
def test_js_is_the_mutual_information_of_class_and_feature(name):
    densities = random_densities(name, n_classes=3, n_features=4, seed=4)
    prior = densities.prior[:, 0]
    for j in range(4):
        _, w, log_p = log_densities(densities, j)
        joint = prior[:, None] * np.exp(log_p) * w
        independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        some = joint > 1e-200
        mutual = (joint[some] * np.log(joint[some] / independent[some])).sum()
        np.testing.assert_allclose(jensen_shannon(densities, j), mutual, rtol=1e-5, atol=1e-9)


@families
@pytest.mark.parametrize("seed", range(3))
def test_js_is_at_most_js_gm(name, seed):
    densities = random_densities(name, n_classes=4, n_features=5, seed=seed)
    upper = js_gm(densities)
    for j in range(5):
        assert jensen_shannon(densities, j) <= upper[j] * (1 + 1e-6) + 1e-9


@families
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_js_gm_is_the_pairwise_sum_is_the_covariance(name, n_classes):
    densities = random_densities(name, n_classes=n_classes, n_features=6, seed=5)
    prior = densities.prior[:, 0]
    weights = np.outer(prior, prior)
    by_kl = (weights * pairwise(densities, symmetric=False)).sum(axis=(1, 2))
    by_j = 0.5 * (weights * pairwise(densities)).sum(axis=(1, 2))
    covariance = (prior[:, None] * densities.natural * densities.mean).sum(axis=(0, 1)) - (
        (prior[:, None] * densities.natural).sum(axis=1) * (prior[:, None] * densities.mean).sum(axis=1)
    ).sum(axis=0)
    for other in (by_kl, by_j, covariance):
        np.testing.assert_allclose(js_gm(densities), other, rtol=1e-9, atol=1e-12)


@families
def test_js_gm_is_the_mean_kl_to_the_geometric_mean(name):
    densities = random_densities(name, n_classes=3, n_features=4, seed=6)
    prior = densities.prior[:, 0]
    for j in range(4):
        _, w, log_p = log_densities(densities, j)
        to_mean = np.where(np.exp(log_p) > 0, np.exp(log_p) * (log_p - prior @ log_p), 0.0)
        np.testing.assert_allclose(js_gm(densities)[j], prior @ (to_mean @ w), rtol=1e-4, atol=1e-8)


@families
def test_jeffreys_and_js_gm_rank_alike_for_two_classes(name):
    densities = random_densities(name, n_classes=2, n_features=40, seed=7)
    prior = densities.prior[:, 0]
    np.testing.assert_allclose(js_gm(densities), prior[0] * prior[1] * jeffreys(densities), rtol=1e-8)
    a, b = FeatureRanking.of(js_gm(densities)), FeatureRanking.of(jeffreys(densities))
    np.testing.assert_array_equal(a.order, b.order)


@families
def test_one_vs_rest_is_against_the_maximum_entropy_density_of_all_other_rows(name):
    densities = random_densities(name, n_classes=3, n_features=4, seed=8)
    family: Family = densities.family
    forward = family.kl(densities.natural, densities.rest.natural)
    backward = family.kl(densities.rest.natural, densities.natural)
    np.testing.assert_allclose(one_vs_rest(densities), forward + backward, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(
        jeffreys(densities), (densities.prior * (forward + backward)).sum(axis=0), rtol=1e-7, atol=1e-10
    )


def test_section_3_the_sum_of_margins_is_n_times_j():
    # Equal classes, unsmoothed moments: the sum of Bayes margins over the rows is N/2 * J of the densities.
    rng = np.random.default_rng(0)
    from maxdisc import Smoothing
    from maxdisc.decisions.linear import LinearDecision
    from maxdisc.densities.class_densities import estimate
    from maxdisc.families import Gaussian
    from maxdisc.moments.counting import class_moments

    X = rng.normal(size=(80, 3)) + np.repeat([[0.0], [1.0]], 40, axis=0)
    codes = np.repeat([0, 1], 40)
    moments = class_moments(Gaussian().statistics, X, codes, 2, powers=True)
    scores = LinearDecision.of(Gaussian(), moments, Smoothing(0.0), np.arange(3)).scores(X)
    margins = np.where(codes == 0, 1, -1) * (scores[:, 0] - scores[:, 1])
    j = pairwise(estimate(Gaussian(), moments, Smoothing(0.0)))[:, 0, 1].sum()
    np.testing.assert_allclose(margins.sum(), 40 * j, rtol=1e-8)
