"""Ranges: who is in, who is refused and how, and integrals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import beta as beta_function
from scipy.special import gamma as gamma_function

from maxdisc.families import FAMILIES, Support

OUT_OF_RANGE = {
    "exponential": -0.5,
    "gaussian": np.inf,
    "bernoulli": 0.5,
    "geometric": -1.0,
    "poisson": -2.0,
    "gamma": 0.0,
    "beta": 1.0,
    "hurdle": -3.0,
}
INSIDE = {"bernoulli": 1.0, "beta": 0.5}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_value_out_of_range_is_named_with_its_column_and_row(name):
    X = np.full((5, 3), INSIDE.get(name, 2.0))
    FAMILIES[name].require(X)
    X[3, 1] = OUT_OF_RANGE[name]
    with pytest.raises(ValueError, match=rf"'weight' has {OUT_OF_RANGE[name]:g} in row 3") as error:
        FAMILIES[name].require(X, ["length", "weight", "age"])
    assert name in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="column 1 has"):
        FAMILIES[name].require(X)


def test_sparse_zeros_are_values():
    X = sp.csr_array(np.array([[1.0, 2.0], [3.0, 0.0]]))
    with pytest.raises(ValueError, match="column 1 has 0 in row 1"):
        FAMILIES["gamma"].require(X)
    FAMILIES["exponential"].require(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_sparse_values_out_of_range(bad):
    X = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 4.0]]))
    X.data[-1] = bad
    with pytest.raises(ValueError, match=rf"'c' has {bad:g} in row 1"):
        FAMILIES["poisson"].require(X, ["a", "b", "c"])


def test_nan_in_dense_data_is_a_missing_cell():
    FAMILIES["poisson"].require(np.array([[np.nan, 1.0]]))


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0])
def test_quadrature_copes_with_singular_ends_and_tails(shape):
    x, w = Support(0.0).quadrature()
    x, w = x[x < 1e3], w[x < 1e3]
    np.testing.assert_allclose(w @ (x ** (shape - 1) * np.exp(-x)), gamma_function(shape), rtol=1e-9)
    x, w = Support(0.0, 1.0).quadrature()
    np.testing.assert_allclose(w @ (x ** (shape - 1) * (1 - x)), beta_function(shape, 2), rtol=1e-9)
    x, w = Support(high=0.0).quadrature()
    x, w = x[x > -1e3], w[x > -1e3]
    np.testing.assert_allclose(w @ ((-x) ** (shape - 1) * np.exp(x)), gamma_function(shape), rtol=1e-9)


def test_quadrature_on_the_line_and_the_lattice():
    x, w = Support().quadrature(center=100.0, scale=2.0)
    np.testing.assert_allclose(w @ np.exp(-((x - 100) ** 2) / 8), np.sqrt(8 * np.pi), rtol=1e-9)
    x, w = Support(0.0, lattice=True).quadrature()
    np.testing.assert_allclose(w @ 0.5**x, 2.0)
    x, w = Support(0.0, atoms=(0.0,)).quadrature()
    np.testing.assert_allclose(w @ np.exp(-x), 2.0, rtol=1e-9)
    with pytest.raises(ValueError, match="lower end"):
        Support(lattice=True).quadrature()


@pytest.mark.parametrize(
    "support",
    [Support(), Support(0.0, lattice=True), Support(2.0), Support(high=2.0), Support(-1.0, 3.0)],
    ids=repr,
)
def test_places_on_the_axis_and_values_are_inverse(support):
    places = np.arange(0.0, 5.0) if support.lattice else np.linspace(-5.0, 5.0, 41)
    x, _ = support.at(places)
    np.testing.assert_allclose(support.place(x), places, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_missing_cells_hide_no_value_out_of_range(name, dtype):
    X = np.full((6, 3), INSIDE.get(name, 2.0), dtype=dtype)
    X[::2, 0], X[1, 2] = np.nan, np.nan
    FAMILIES[name].require(X)
    X[4, 2] = OUT_OF_RANGE[name]
    with pytest.raises(ValueError, match=rf"column 2 has {OUT_OF_RANGE[name]:g} in row 4"):
        FAMILIES[name].require(X)
    X[:] = np.nan
    FAMILIES[name].require(X)
