"""True Jensen-Shannon: against integrals and sums by other means, and the bounds it must keep."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.stats as ss
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betaln, gammaln
from sklearn.feature_selection import chi2

from maxdisc import MaxDiscClassifier, Smoothing
from maxdisc.densities.class_densities import ClassDensities, estimate
from maxdisc.divergences import jensen_shannon, js_gm, rao
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.families import FAMILIES, Gaussian
from maxdisc.moments.counting import class_moments
from maxdisc.testing import batches_of, random_data, random_densities

families = pytest.mark.parametrize("name", FAMILIES)


def densities_of(family, natural, prior):
    """Densities as they are given, all features observed."""
    shape = natural.shape[1:]
    ones, zeros = np.ones(shape[1]), np.zeros(shape[1])
    prior = np.broadcast_to(prior, shape) if np.ndim(prior) == 2 else np.asarray(prior)[:, None]
    solved, adjusted = np.ones(shape, bool), np.zeros(shape, bool)
    return ClassDensities(family, natural, prior, ones, ones > 0, zeros, zeros, solved, adjusted)


def entropy(prior):
    prior = np.asarray(prior)
    return float(-(prior[prior > 0] * np.log(prior[prior > 0])).sum())


def information(prior, log_p, weights):
    """By the textbook formula: entropy of the mixture minus mean entropy, at given nodes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_m = np.log(prior @ np.exp(log_p))
        terms = np.where(np.exp(log_p) > 1e-250, np.exp(log_p) * (log_p - log_m), 0.0)
    return float(prior @ (terms @ weights))


def by_quad(prior, laws, ends):
    """scipy's adaptive integral of the mean KL to the mixture, between the quantiles of every law."""

    def integrand(x):
        p = np.array([law.pdf(x) for law in laws])
        m = prior @ p
        return float(sum(w * q * np.log(q / m) for w, q in zip(prior, p, strict=True) if q > 0 and m > 0))

    cuts = np.unique(np.r_[ends, np.concatenate([law.ppf([1e-12, 0.01, 0.3, 0.7, 0.99]) for law in laws])])
    cuts = cuts[(cuts >= ends[0]) & (cuts <= ends[1])]
    pieces = [quad(integrand, a, b, epsabs=1e-12, epsrel=1e-10, limit=200)[0] for a, b in pairwise(cuts)]
    return sum(pieces)


PRIOR = np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_gaussian_is_the_integral(spread):
    mean, sd = np.array([0.0, spread, -2 * spread]), np.array([1.0, 0.3, 4.0])
    natural = Gaussian().natural(np.stack([mean, sd**2 + mean**2])[:, :, None])
    laws = [ss.norm(m, s) for m, s in zip(mean, sd, strict=True)]
    ends = (min(mean - 40 * sd), max(mean + 40 * sd))
    expected = by_quad(PRIOR, laws, ends)
    assert jensen_shannon(densities_of(Gaussian(), natural, PRIOR))[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("shapes", [(0.2, 0.9, 0.5), (1.0, 1.0, 1.0), (3.0, 0.4, 50.0)])
def test_gamma_is_the_integral_with_singular_ends_too(shapes):
    shape, rate = np.array(shapes), np.array([1.0, 0.1, 7.0])
    natural = np.stack([-rate, shape - 1])[:, :, None]
    # In log x nothing is singular; scipy's loggamma is the law of log of a gamma.
    laws = [ss.loggamma(k, loc=-np.log(r)) for k, r in zip(shape, rate, strict=True)]
    expected = by_quad(PRIOR, laws, (-250.0, 10.0))
    assert jensen_shannon(densities_of(FAMILIES["gamma"], natural, PRIOR))[0] == pytest.approx(
        expected, rel=1e-6
    )


@pytest.mark.parametrize("shapes", [((2, 3), (5, 1), (1, 1)), ((0.5, 0.5), (2, 0.7), (9, 4))])
def test_beta_is_the_integral(shapes):
    a, b = np.array(shapes, dtype=float).T
    natural = np.stack([a - 1, b - 1])[:, :, None]

    def integrand(t):
        log_p = a * -np.logaddexp(0, -t) + b * -np.logaddexp(0, t) - FAMILIES["beta"].log_partition(natural).T
        p = np.exp(log_p[0])
        return float(PRIOR @ (p * np.log(p / (PRIOR @ p))))

    expected = sum(quad(integrand, c, c + 5, epsabs=1e-13)[0] for c in range(-60, 60, 5))
    assert jensen_shannon(densities_of(FAMILIES["beta"], natural, PRIOR))[0] == pytest.approx(
        expected, rel=1e-6
    )


def on_a_fine_grid(laws, longest):
    """Jensen-Shannon of two equally probable laws on a line, given as log densities of extended precision."""
    far = np.geomspace(20, longest, 800)
    cuts = np.unique(np.r_[-far, np.linspace(-20, 20, 801), far]).astype(np.longdouble)
    unit, weight = np.polynomial.legendre.leggauss(20)
    half = np.diff(cuts)[:, None] / 2
    with np.errstate(over="ignore", under="ignore"):
        p = np.exp([law(cuts[:-1, None] + half * (1 + unit)) for law in laws])
    mixture = p.mean(axis=0)
    r = np.where(mixture > 0, p / np.where(mixture > 0, mixture, 1), 1)
    terms = np.where(r > 0, r * np.log(np.where(r > 0, r, 1)), 0) - r + 1
    assert abs(float((half * weight * mixture).sum()) - 1) < 1e-10
    return float((half * weight * mixture * terms.mean(axis=0)).sum())


@pytest.mark.parametrize("shape", [1e-2, 1e-4, 1e-5])
def test_slopes_a_million_long_hide_no_bend(shape):
    # Nearly all that these classes tell is in a hundred-thousandth of their mass.
    def gamma(scale):
        return lambda u: shape * (u - np.log(scale)) - np.exp(u) / scale - gammaln(shape)

    def beta(other):
        return lambda u: -shape * np.logaddexp(0, -u) - other * np.logaddexp(0, u) - betaln(shape, other)

    cases = {
        "gamma": ([gamma(1.0), gamma(2.0)], [[-1.0, -0.5], [shape - 1, shape - 1]]),
        "beta": ([beta(30.0), beta(60.0)], [[shape - 1, shape - 1], [29.0, 59.0]]),
    }
    for name, (laws, natural) in cases.items():
        found = jensen_shannon(densities_of(FAMILIES[name], np.array(natural)[:, :, None], [0.5, 0.5]))[0]
        assert found == pytest.approx(on_a_fine_grid(laws, 40 / shape), rel=1e-8)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.9, 0.1], [0.01, 0.99]])
@pytest.mark.parametrize("origin", [0.0, 1 / 3])
def test_gaussian_classes_far_apart_say_the_entropy_of_the_prior(prior, origin):
    for apart in (1e6, 1e8, 1e10):
        natural = np.array([[origin * apart, (1 + origin) * apart], [-0.5, -0.5]])[:, :, None]
        found = jensen_shannon(densities_of(Gaussian(), natural, prior))[0]
        assert found == pytest.approx(entropy(prior), rel=1e-6)


@pytest.mark.parametrize("means", [(0.01, 0.02, 3.0), (5.0, 40.0, 4.0), (1e4, 1.02e4, 0.3)])
@pytest.mark.parametrize("name", ["poisson", "geometric"])
def test_lattices_are_sums(name, means):
    mean = np.array(means)
    natural = FAMILIES[name].natural(mean[None, :, None])
    x = np.arange(400 + 45 * mean.max())
    laws = [ss.poisson(m) if name == "poisson" else ss.geom(1 / (1 + m), loc=-1) for m in mean]
    expected = information(PRIOR, np.stack([law.logpmf(x) for law in laws]), np.ones_like(x))
    assert jensen_shannon(densities_of(FAMILIES[name], natural, PRIOR))[0] == pytest.approx(
        expected, rel=1e-7
    )


def test_bernoulli_is_two_terms():
    p = np.array([[0.1, 1e-6], [0.7, 2e-6], [0.5, 0.9999]])
    log_p = np.log(np.stack([1 - p, p], axis=-1))
    expected = [information(PRIOR, log_p[:, j], np.ones(2)) for j in range(2)]
    natural = FAMILIES["bernoulli"].natural(p[None])
    scores = jensen_shannon(densities_of(FAMILIES["bernoulli"], natural, PRIOR))
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


def test_hurdle_is_the_atom_and_the_rest():
    share, tail = np.array([0.2, 0.5, 0.9]), np.array([1.0, 3.0, 0.2])
    natural = FAMILIES["hurdle"].natural(np.stack([share, share * tail])[:, :, None])
    # Whether there is anything, and, given that there is, how much.
    present = PRIOR @ share
    first = information(PRIOR, np.log(np.stack([1 - share, share], axis=1)), np.ones(2))
    among = PRIOR * share / present
    second = by_quad(among, [ss.expon(scale=t) for t in tail], (0.0, 200.0))
    assert jensen_shannon(densities_of(FAMILIES["hurdle"], natural, PRIOR))[0] == pytest.approx(
        first + present * second, rel=1e-7
    )


@families
@pytest.mark.parametrize("n_classes", [2, 7])
def test_it_is_at_most_js_gm_and_the_entropy_of_the_prior(name, n_classes):
    densities = random_densities(name, n_classes, 40, seed=8)
    scores = jensen_shannon(densities)
    assert ((scores > 0) == (js_gm(densities) > 0)).all()
    assert (scores <= js_gm(densities) * (1 + 1e-6)).all()
    assert (scores <= entropy(densities.prior[:, 0])).all()


def test_a_feature_that_settles_the_class_says_the_entropy_of_the_prior():
    mean = np.array([0.0, 1e3, -1e3, 1e6])[:, None]
    natural = Gaussian().natural(np.stack([mean, np.array([1.0, 1e-4, 1.0, 1e2])[:, None] + mean**2]))
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    scores = jensen_shannon(densities_of(Gaussian(), natural, prior))
    np.testing.assert_allclose(scores, entropy(prior), rtol=1e-9)
    counts = FAMILIES["poisson"].natural(np.array([1e4, 1e9, 1e15, 1e80])[None, :, None])
    scores = jensen_shannon(densities_of(FAMILIES["poisson"], counts, prior))
    np.testing.assert_allclose(scores, entropy(prior), rtol=1e-6)


def test_large_counts_are_as_gaussian_as_they_should_be():
    mean = np.array([1e8, 1e8 + 1e4, 1e8 + 3e4])
    counts = densities_of(FAMILIES["poisson"], np.log(mean)[None, :, None], PRIOR)
    centred = mean - 1e8
    normal = Gaussian().natural(np.stack([centred, mean + centred**2])[:, :, None])
    expected = jensen_shannon(densities_of(Gaussian(), normal, PRIOR))
    np.testing.assert_allclose(jensen_shannon(counts), expected, rtol=1e-4)


@given(st.floats(1e-7, 1e-2), st.sampled_from(["gaussian", "poisson", "geometric", "exponential", "gamma"]))
def test_classes_that_hardly_differ_keep_their_digits(step, name):
    """Near the null the information is half the Fisher information times the square of the step."""
    family = FAMILIES[name]
    middle = family.natural(np.asarray(family.neutral)[:, None, None] * np.ones((family.n_statistics, 2, 1)))
    natural = middle.copy()
    natural[0, 0] -= step / 2
    natural[0, 1] += step / 2
    h = 1e-4
    slope = [family.mean(middle + np.array([[[s]]] + [[[0.0]]] * (family.n_statistics - 1))) for s in (h, -h)]
    fisher = float((slope[0] - slope[1])[0, 0, 0]) / (2 * h)
    score = jensen_shannon(densities_of(family, natural, [0.5, 0.5]))[0]
    assert score == pytest.approx(fisher * step**2 / 8, rel=max(1e-3, 30 * step))


@families
def test_equal_densities_say_nothing_at_all(name):
    densities = random_densities(name, 2, 30, seed=3)
    same = densities_of(densities.family, np.repeat(densities.natural[:, :1], 5, axis=1), np.full(5, 0.2))
    np.testing.assert_allclose(jensen_shannon(same), 0.0, atol=1e-15)


def test_a_class_without_probability_does_not_count():
    densities = random_densities("gaussian", 3, 6, seed=1)
    natural = densities.natural.copy()
    natural[:, 2] = Gaussian().natural(np.array([1e5, 1e10 + 1e-3])[:, None])
    without = jensen_shannon(densities_of(Gaussian(), natural[:, :2], [0.4, 0.6]))
    np.testing.assert_allclose(
        jensen_shannon(densities_of(Gaussian(), natural, [0.4, 0.6, 0.0])), without, rtol=1e-9
    )
    some = np.array([[0.4] * 6, [0.6] * 6, [0.0] * 6])
    np.testing.assert_allclose(jensen_shannon(densities_of(Gaussian(), natural, some)), without, rtol=1e-9)


@families
def test_threads_and_other_features_change_nothing(name, monkeypatch):
    densities = random_densities(name, 3, 50, seed=5)
    whole = jensen_shannon(densities)
    monkeypatch.setenv("MAXDISC_NUM_THREADS", "3")
    with batches_of(4):
        np.testing.assert_allclose(jensen_shannon(densities), whole, rtol=1e-13)


def test_missing_cells_scale_it_by_how_often_a_feature_is_seen():
    X, codes = random_data("gaussian", 400, 2, 1, seed=0)
    X = np.column_stack([X, X])
    X[np.random.default_rng(0).random(400) < 0.5, 1] = np.nan
    moments = class_moments(Gaussian().statistics, X, codes, 2, powers=True)
    seen = ~np.isnan(X[:, 1])
    alone = class_moments(Gaussian().statistics, X[seen][:, [1]], codes[seen], 2, powers=True)
    both, one = (jensen_shannon(estimate(Gaussian(), m, Smoothing(1.0))) for m in (moments, alone))
    assert both[1] == pytest.approx(seen.mean() * one[0], rel=1e-9)


class _Sliver(Gaussian):
    """Says that its peaks are where they are not."""

    def peak(self, natural):
        center, scale = super().peak(natural)
        return center + 1e6, scale * 1e6


def test_nodes_that_miss_the_mass_are_reported():
    natural = Gaussian().natural(np.array([[0.0, 1.0], [1e-9, 1.0 + 1e-9]])[:, :, None])
    with pytest.warns(RuntimeWarning, match="1 features is not exact"):
        jensen_shannon(densities_of(_Sliver(), natural, [0.5, 0.5]))


class _Plain(Gaussian):
    """A family that knows nothing of its peaks."""

    def peak(self, natural):
        return super(Gaussian, self).peak(natural)


def test_a_family_need_not_know_its_peaks():
    natural = Gaussian().natural(np.array([[0.0, 3.0, -40.0], [1.0, 9.3, 1602.0]])[:, :, None])
    known = jensen_shannon(densities_of(Gaussian(), natural, PRIOR))
    np.testing.assert_allclose(jensen_shannon(densities_of(_Plain(), natural, PRIOR)), known, rtol=1e-7)


@families
def test_default_peaks_find_what_the_family_knows(name):
    family = FAMILIES[name]
    densities = random_densities(name, 3, 4, seed=2)

    class Plain(type(family)):
        peak = FAMILIES["poisson"].__class__.__mro__[1].peak
        log_density_at = FAMILIES["poisson"].__class__.__mro__[1].log_density_at

    plain = densities_of(Plain(), densities.natural, densities.prior[:, 0])
    np.testing.assert_allclose(jensen_shannon(plain), jensen_shannon(densities), rtol=1e-6)


def test_the_classifier_ranks_by_it():
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    model = MaxDiscClassifier(divergence="jensen_shannon").fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.scores_.max() <= entropy(model.class_prior_)
    assert (np.diff(model.scores_[model.ranking_]) <= 1e-9).all()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_rao_of_counts_is_the_statistic_of_chi_square(n_classes):
    rng = np.random.default_rng(n_classes)
    codes = rng.choice(n_classes, p=np.arange(1, n_classes + 1) / sum(range(n_classes + 1)), size=300)
    X = rng.poisson(0.3 + rng.random((n_classes, 8))[codes] * 4)
    X[:, 7] = (codes == 0) & (np.arange(300) % 3 == 0)  # in one class alone
    moments = class_moments(FAMILIES["poisson"].statistics, X, codes, n_classes)
    scores = rao(estimate(FAMILIES["poisson"], moments, Smoothing(1e-9)))
    np.testing.assert_allclose(scores, chi2(X, codes)[0] / 300, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_rao_is_what_js_gm_becomes_when_classes_are_near(name):
    densities = random_densities(name, n_classes=3, n_features=6, seed=3)
    family, prior = densities.family, np.array([0.2, 0.5, 0.3])
    far = densities_of(family, densities.natural, prior)
    middle = (prior[:, None] * far.mean).sum(axis=1, keepdims=True)
    near = densities_of(family, family.natural(middle + 1e-3 * (far.mean - middle)), prior)
    np.testing.assert_allclose(rao(far), js_gm(near) * 1e6, rtol=2e-2)
    np.testing.assert_allclose(rao(near), js_gm(near), rtol=2e-2)


def test_rao_of_gaussian_classes_of_one_variance():
    means, prior = np.array([-1.0, 0.5, 2.0]), np.array([0.2, 0.5, 0.3])
    natural = np.stack([means / 4, np.full(3, -0.5 / 4)])[:, :, None]
    middle = prior @ means
    between = prior @ (means - middle) ** 2
    variance = 4 + between
    # Means, and second moments about the middle, whose differences are those of squared means.
    square = (means - middle) ** 2 + 4 - variance
    expected = between / variance + prior @ square**2 / (2 * variance**2)
    assert rao(densities_of(Gaussian(), natural, prior))[0] == pytest.approx(expected, rel=1e-5)


def test_a_ranking_names_unsolved_and_adjusted_features():
    scores, masks = np.array([0.1, 0.3, 0.2]), np.array([[True, True, False], [False, True, True]])
    ranking = FeatureRanking.of(scores, *masks)
    assert ranking.order.tolist() == [1, 2, 0]
    assert ranking.unsolved.tolist() == [2]
    assert ranking.adjusted.tolist() == [1, 2]
    plain = FeatureRanking.of(scores)
    assert (plain.unsolved.size, plain.adjusted.size) == (0, 0)
