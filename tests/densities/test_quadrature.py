"""Nodes for several densities at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxdisc.densities.quadrature import ORDER, _sum_rule, class_nodes
from maxdisc.families import FAMILIES, Geometric, Support


@given(st.integers(1, 5000), st.integers(0, 2 * ORDER - 1))
def test_the_rule_for_sums_is_exact_for_polynomials(n, degree):
    place, weights = _sum_rule(float(n))
    assert len(place) == min(n, ORDER)
    x = np.arange(n) / max(n - 1, 1)
    found = weights @ (place / max(n - 1, 1)) ** degree
    assert found == pytest.approx((x**degree).sum(), rel=1e-10)


def test_the_rule_for_very_long_sums_is_that_of_integrals():
    place, weights = _sum_rule(2.0**200)
    unit, weight = np.polynomial.legendre.leggauss(ORDER)
    np.testing.assert_allclose(place / 2.0**200, (unit + 1) / 2, atol=1e-14)
    np.testing.assert_allclose(weights / 2.0**200, weight / 2, atol=1e-14)


def masses(family, natural, **options):
    out = np.zeros(natural.shape[1:])
    for atom in family.support.atoms:
        out += np.exp(family.log_density(np.full(out.shape, atom), natural))
    count = np.zeros(natural.shape[2])
    for features, place, weights in class_nodes(family, natural, **options):
        assert place.shape == weights.shape == (len(place), len(features))
        density = np.exp(family.log_density_at(place[:, None], natural[:, :, features]))
        for c, part in enumerate((weights[:, None] * density).sum(axis=0)):
            out[c] += np.bincount(features, part, out.shape[1])
        count += np.bincount(features, minlength=out.shape[1]) * len(place)
    return out, count


def wild(name, seed):
    """Parameters of five classes that have little to do with each other."""
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.normal(size=(2, 5, 40)) * 3)
    return {
        "exponential": lambda: -scale[:1],
        "gaussian": lambda: np.stack([rng.normal(size=(5, 40)) * 30, -scale[0]]),
        "bernoulli": lambda: np.log(scale[:1]),
        "geometric": lambda: FAMILIES["geometric"].natural(scale[:1] * 30),
        "poisson": lambda: np.log(scale[:1] * 30),
        "gamma": lambda: np.stack([-scale[0], scale[1] - 1]),
        "beta": lambda: scale - 1,
        "hurdle": lambda: FAMILIES["hurdle"].natural(np.stack([rng.random((5, 40)), scale[0]])),
    }[name]()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_all_the_mass_of_every_class_is_found(name, seed):
    mass, count = masses(FAMILIES[name], wild(name, seed))
    np.testing.assert_allclose(mass, 1.0, rtol=1e-7)
    assert count.max() < 8000


@pytest.mark.parametrize("name", ["poisson", "gamma", "beta"])
def test_parameters_of_any_size(name):
    size = 10.0 ** np.arange(-2, 13)[None, :, None]
    natural = {
        "poisson": lambda: np.log(size),
        "gamma": lambda: np.concatenate([-np.ones_like(size), size - 1]),
        "beta": lambda: np.concatenate([size - 1, size[:, ::-1] - 1]),
    }[name]()
    np.testing.assert_allclose(masses(FAMILIES[name], natural)[0], 1.0, rtol=1e-6)


def test_rare_counts_take_few_points():
    mass, count = masses(FAMILIES["poisson"], np.log(np.full((1, 5, 3), 0.01)))
    assert (count <= 12).all()
    np.testing.assert_allclose(mass, 1.0, rtol=1e-12)


class _Short(Geometric):
    """Counts up to 40, cut off."""

    support = Support(0.0, 40.0, lattice=True)

    def log_partition(self, natural):
        return np.log(-np.expm1(41 * natural[0])) - np.log(-np.expm1(natural[0]))


def test_a_lattice_with_an_end_is_summed_to_that_end():
    natural = np.log(np.array([0.2, 0.9, 0.99]))[None, :, None]
    np.testing.assert_allclose(masses(_Short(), natural)[0], 1.0, rtol=1e-12)


def test_shorter_panels_on_request():
    natural = wild("gaussian", 0)
    usual, more = (masses(FAMILIES["gaussian"], natural, width=width)[1].sum() for width in (3.0, 0.5))
    assert more > 1.5 * usual
