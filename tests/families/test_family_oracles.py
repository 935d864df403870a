"""Closed forms against scipy.stats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from maxdisc.families import (
    FAMILIES,
    Bernoulli,
    Beta,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    Hurdle,
    Poisson,
)

scale = st.floats(1e-3, 1e3)
shape = st.floats(0.3, 50.0)
share = st.floats(1e-3, 1 - 1e-3)
REAL = np.array([1e-3, 0.1, 0.5, 1.0, 3.0, 40.0])
COUNTS = np.array([0.0, 1.0, 2.0, 7.0, 30.0])
UNIT = np.array([1e-3, 0.2, 0.5, 0.9, 0.999])


def agree(family, mean, frozen, x, entropy=True):
    natural = family.natural(np.asarray(mean, dtype=float)[:, None])
    expected = frozen.logpmf(x) if hasattr(frozen.dist, "pmf") else frozen.logpdf(x)
    np.testing.assert_allclose(family.log_density(x, natural), expected, rtol=1e-8, atol=1e-8)
    if entropy:
        np.testing.assert_allclose(family.entropy(natural), frozen.entropy(), rtol=1e-7, atol=1e-7)


@given(scale)
def test_exponential(mean):
    agree(Exponential(), [mean], stats.expon(scale=mean), REAL)


@given(st.floats(-50, 50), st.floats(1e-2, 1e2))
def test_gaussian(mean, sd):
    x = mean + sd * np.linspace(-3, 3, 7)
    agree(Gaussian(), [mean, mean**2 + sd**2], stats.norm(mean, sd), x)


@given(share)
def test_bernoulli(mean):
    agree(Bernoulli(), [mean], stats.bernoulli(mean), np.array([0.0, 1.0]))


@given(scale)
def test_geometric(mean):
    agree(Geometric(), [mean], stats.geom(1 / (1 + mean), loc=-1), COUNTS)


@given(st.floats(1e-3, 300.0))
def test_poisson(mean):
    agree(Poisson(), [mean], stats.poisson(mean), COUNTS)


@given(st.floats(0.05, 1e4))
def test_poisson_entropy_by_summation(rate):
    x = np.arange(stats.poisson.ppf(1 - 1e-15, rate) + 50)
    p = stats.poisson.pmf(x, rate)
    expected = -(p[p > 0] * np.log(p[p > 0])).sum()
    np.testing.assert_allclose(Poisson().entropy(np.log([[rate]])), expected, rtol=1e-10)


@given(shape, scale)
def test_gamma(a, theta):
    frozen = stats.gamma(a, scale=theta)
    natural = Gamma().natural(Gamma().mean(np.array([[-1 / theta], [a - 1]])))
    np.testing.assert_allclose(natural[:, 0], [-1 / theta, a - 1], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(Gamma().mean(natural)[0], frozen.mean(), rtol=1e-10)
    agree(Gamma(), Gamma().mean(natural)[:, 0], frozen, theta * REAL)


@given(shape, shape)
def test_beta(a, b):
    natural = Beta().natural(Beta().mean(np.array([[a - 1], [b - 1]])))
    np.testing.assert_allclose(natural[:, 0] + 1, [a, b], rtol=1e-7)
    agree(Beta(), Beta().mean(natural)[:, 0], stats.beta(a, b), UNIT)


@given(share, scale)
def test_hurdle(p, tail):
    natural = Hurdle().natural(np.array([[p], [p * tail]]))
    np.testing.assert_allclose(Hurdle().log_density(0.0, natural), np.log1p(-p), rtol=1e-9)
    expected = np.log(p) + stats.expon(scale=tail).logpdf(REAL)
    np.testing.assert_allclose(Hurdle().log_density(REAL, natural), expected, rtol=1e-8, atol=1e-8)
    bits = -(p * np.log(p) + (1 - p) * np.log1p(-p)) + p * (1 + np.log(tail))
    np.testing.assert_allclose(Hurdle().entropy(natural), bits, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("gap", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 30.0, 500.0])
def test_gamma_is_solved_from_nearly_constant_to_wildly_spread(gap):
    mean = np.array([[1.0], [-gap]])
    natural = Gamma().natural(mean)
    assert np.isfinite(natural).all()
    np.testing.assert_allclose(Gamma().mean(natural), mean, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("sd", [1e-5, 1e-3, 0.1, 0.3])
@pytest.mark.parametrize("center", [0.02, 0.5, 0.97])
def test_beta_is_solved_for_narrow_and_lopsided_data(center, sd):
    rng = np.random.default_rng(0)
    x = np.clip(rng.normal(center, sd, 2000), 1e-4, 1 - 1e-4)
    mean = np.array([[np.log(x).mean()], [np.log1p(-x).mean()]])
    natural = Beta().natural(mean)
    assert Beta().solved(natural, mean).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_kl_of_near_densities_is_near_zero_and_finite(name):
    family = FAMILIES[name]
    mean = np.asarray(family.neutral)[:, None]
    p = family.natural(mean)
    assert np.isfinite(family.kl(p, p * (1 + 1e-9))).all()
