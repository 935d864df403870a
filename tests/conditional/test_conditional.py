"""The conditional maximum-entropy model against its definition, its theorems and other solvers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, brentq, minimize
from scipy.special import logsumexp

from maxdisc.conditional.model import (
    LONGEST_STEP,
    ClassFeatures,
    Examples,
    Prior,
    SharedFeatures,
    _expectation,
    _levels,
    _Problem,
    _scaling_step,
    fit,
    log_posterior,
)
from tests.conftest import examples

SCALINGS = ("gis", "iis")


def shared(seed=0, n=60, d=5, c=3, negative=False, sparse=False, whole=False):
    """Rows with some signal; ``whole`` ones are small counts, so that many sums of features coincide."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    X = rng.poisson(1 + 0.5 * (codes[:, None] == np.arange(d) % c), size=(n, d)).astype(float)
    if not whole:
        X *= rng.uniform(0.5, 1.5, size=(n, d))
    if negative:
        X -= rng.uniform(0, 2, size=d) * (X > 0 if sparse else 1)
    return Examples(SharedFeatures(sp.csr_array(X) if sparse else X, c), codes, rng.uniform(0.2, 2.0, n))


def classwise(seed=0, n=80, c=4, g=3):
    """Evidence that favours the right class, more or less, band by band."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, c, n)
    tensor = rng.normal(scale=2.0, size=(n, c, g)) - 5.0
    tensor[np.arange(n), codes] += np.array([2.0, 0.5, -0.5])[:g]
    return Examples(ClassFeatures(tensor), codes, rng.uniform(0.2, 2.0, n))


CASES = {
    "dense": shared(),
    "sparse": shared(sparse=True),
    "negative": shared(negative=True),
    "negative sparse": shared(negative=True, sparse=True),
    "whole": shared(whole=True),
    "two classes": shared(c=2),
    "class features": classwise(),
}
cases = pytest.mark.parametrize("name", CASES)


def objective(examples, prior, weights, bias):
    """By the definition, feature by feature."""
    features = examples.features
    total = 0.0
    for i, code in enumerate(examples.codes):
        if isinstance(features, SharedFeatures):
            row = features.X[[i]].toarray()[0] if sp.issparse(features.X) else features.X[i]
            scores = np.array([w @ row for w in weights]) + bias
        else:
            scores = np.array([f @ weights for f in features.tensor[i]]) + bias
        total += examples.weight[i] * (scores[code] - logsumexp(scores))
    penalty = 0.5 * (prior.precision * (weights - np.asarray(prior.center)) ** 2).sum()
    return total - penalty - 0.5 * (prior.bias_precision * (bias - np.asarray(prior.bias_center)) ** 2).sum()


def expectations(examples, weights, bias):
    """Expected features under the model, and those of the data."""
    p = np.exp(log_posterior(examples.features.scores(weights) + bias))
    return [examples.features.expectation(m) for m in (p * examples.weight[:, None], examples.mass())]


@cases
def test_objective_and_gradient_are_those_of_the_definition(name):
    examples, rng = CASES[name], np.random.default_rng(1)
    features = examples.features
    prior = Prior(rng.uniform(0, 2, features.shape), rng.normal(size=features.shape), 0.5, 0.25)
    problem = _Problem.of(examples, prior, fit_bias=True, lower=-np.inf)
    at = rng.normal(scale=0.3, size=len(problem.center))
    value, mass = problem.evaluated(at)
    np.testing.assert_allclose(value, objective(examples, prior, *problem.split(at)), rtol=1e-12)
    gradient = problem.gradient(at, _expectation(features, mass, fit_bias=True))
    by_differences = approx_fprime(at, lambda z: problem.evaluated(z)[0], 1e-7)
    np.testing.assert_allclose(gradient, by_differences, rtol=1e-4, atol=1e-4)


@cases
@pytest.mark.parametrize("fit_bias", [True, False])
def test_the_three_solvers_have_one_optimum(name, fit_bias):
    examples = CASES[name]
    options = {"fit_bias": fit_bias, "tol": 1e-7, "max_iter": 50_000}
    lbfgs, gis, iis = (fit(examples, Prior(20.0), solver=s, **options) for s in ("lbfgs", "gis", "iis"))
    assert all(found.converged for found in (lbfgs, gis, iis))
    for other in (gis, iis):
        np.testing.assert_allclose(other.weights, lbfgs.weights, atol=2e-6)
        np.testing.assert_allclose(other.bias, lbfgs.bias, atol=2e-5)
    assert np.abs(lbfgs.weights).max() > 0.05
    assert fit_bias == lbfgs.bias.any()
    assert iis.n_iter <= gis.n_iter


@cases
def test_at_the_free_optimum_the_expectations_are_those_of_the_data(name):
    examples = CASES[name]
    found = fit(examples, tol=1e-9)
    assert found.converged
    model, data = expectations(examples, found.weights, found.bias)
    np.testing.assert_allclose(model, data, atol=1e-6 * examples.weight.sum())


@given(
    seed=st.integers(0, 10_000),
    solver=st.sampled_from(SCALINGS),
    precision=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 1e3]),
    center=st.sampled_from([0.0, 0.7]),
    negative=st.booleans(),
    sparse=st.booleans(),
    whole=st.booleans(),
    fit_bias=st.booleans(),
    n_classes=st.integers(2, 4),
    scale=st.sampled_from([1e-3, 1.0, 50.0]),
)
@examples(40)
def test_scaling_never_lowers_the_penalised_likelihood(
    seed, solver, precision, center, negative, sparse, whole, fit_bias, n_classes, scale
):
    examples = shared(seed, 25, 4, n_classes, negative, sparse, whole)
    features = SharedFeatures(examples.features.X * scale, n_classes)
    examples = Examples(features, examples.codes, examples.weight)
    found = fit(examples, Prior(precision, center), solver=solver, fit_bias=fit_bias, max_iter=30, tol=1e-9)
    path = found.objective_path
    assert len(path) == found.n_iter + 1
    assert np.isfinite(path).all()
    assert (np.diff(path) >= -1e-10 * (1 + np.abs(path[:-1]))).all()
    assert found.converged or path[-1] > path[0]


@given(seed=st.integers(0, 10_000), solver=st.sampled_from(SCALINGS), lower=st.sampled_from([-np.inf, 0.0]))
@examples(30)
def test_scaling_of_class_features_never_lowers_it_either(seed, solver, lower):
    found = fit(classwise(seed, 30), Prior(0.1), solver=solver, lower=lower, max_iter=30)
    assert (np.diff(found.objective_path) >= -1e-10 * np.abs(found.objective_path[:-1])).all()
    assert found.weights.min() >= lower


@pytest.mark.parametrize("solver", ["lbfgs", *SCALINGS])
def test_a_word_that_a_class_lacks_ends_in_no_nan(solver):
    # Without a prior its weight should go to minus infinity; here it just goes on growing.
    X, codes = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]), np.array([0, 1, 0, 1])
    found = fit(Examples(SharedFeatures(X, 2), codes), solver=solver, max_iter=30, tol=1e-12)
    assert np.isfinite(found.weights).all()
    assert np.isfinite(found.objective_path).all()
    assert found.weights[0, 1] < -0.5
    assert found.objective_path[-1] > found.objective_path[0]


@pytest.mark.parametrize("solver", ["lbfgs", *SCALINGS])
def test_weights_may_be_held_above_a_bound(solver):
    examples = classwise(5)
    free, held = (
        fit(examples, Prior(0.1)),
        fit(examples, Prior(0.1), lower=0.0, solver=solver, max_iter=20_000),
    )
    assert free.weights.min() < -0.01
    assert held.converged
    assert held.weights.min() == 0.0
    # By another method: minus the objective over the box.
    problem = _Problem.of(examples, Prior(0.1), fit_bias=True, lower=0.0)
    box = [(0, None)] * 3 + [(None, None)] * 4
    oracle = minimize(lambda z: -problem.evaluated(z)[0], np.zeros(7), bounds=box, method="SLSQP", tol=1e-12)
    np.testing.assert_allclose(held.weights, oracle.x[:3], atol=1e-4)
    np.testing.assert_allclose(held.objective_path[-1], -oracle.fun, rtol=1e-7)


@pytest.mark.parametrize("solver", ["lbfgs", *SCALINGS])
def test_a_prior_pulls_towards_its_centre(solver):
    examples = CASES["dense"]
    center = np.random.default_rng(3).normal(size=(3, 5))
    near, far = (fit(examples, Prior(p, center), solver=solver, max_iter=20_000) for p in (1e6, 20.0))
    np.testing.assert_allclose(near.weights, center, atol=1e-4)
    assert np.abs(far.weights - center).max() > 0.05
    # At the optimum the missing expectations are paid for by the distance from the centre.
    model, data = expectations(examples, far.weights, far.bias)
    np.testing.assert_allclose(data - model, 20.0 * (far.weights - center), atol=1e-6 * examples.weight.sum())


def test_both_kinds_of_features_say_the_same():
    # A shared matrix written out as class features: one weight for each (class, column).
    examples = shared(c=2, d=2)
    X, n = examples.features.X, len(examples.codes)
    tensor = np.zeros((n, 2, 4))
    tensor[:, 0, :2], tensor[:, 1, 2:] = X, X
    written_out = Examples(ClassFeatures(tensor), examples.codes, examples.weight)
    a, b = (fit(e, Prior(1.0), tol=1e-9) for e in (examples, written_out))
    np.testing.assert_allclose(a.weights.ravel(), b.weights, atol=1e-6)
    np.testing.assert_allclose(a.bias, b.bias, atol=1e-6)


def test_weights_of_rows_are_repetitions():
    examples = CASES["dense"]
    times = np.arange(len(examples.codes)) % 3
    again = np.repeat(np.arange(len(times)), times)
    weighted = Examples(examples.features, examples.codes, times.astype(float))
    repeated = Examples(examples.features.rows(again), examples.codes[again])
    a, b = (fit(e, Prior(1.0), tol=1e-9) for e in (weighted, repeated))
    np.testing.assert_allclose(a.weights, b.weights, atol=1e-7)


@pytest.mark.parametrize("solver", ["lbfgs", *SCALINGS])
def test_a_start_at_the_optimum_stays_there(solver):
    examples = CASES["dense"]
    found = fit(examples, Prior(1.0), tol=1e-9)
    again = fit(examples, Prior(1.0), solver=solver, start=(found.weights, found.bias), tol=1e-8)
    assert again.converged
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.weights, found.weights)


@pytest.mark.parametrize("solver", ["lbfgs", *SCALINGS])
def test_held_out_rows_stop_the_solver_at_their_best(solver):
    examples, held_out = shared(1, n=25, d=20), shared(2, n=200, d=20)
    found = fit(examples, solver=solver, held_out=held_out, patience=3, max_iter=2000)
    path = found.held_out_path
    assert found.converged
    assert len(path) == found.n_iter + 1
    assert path.argmax() == len(path) - 4
    np.testing.assert_allclose(held_out.log_likelihood(found.weights, found.bias), path.max(), rtol=1e-10)
    assert found.objective_path[-1] < fit(examples, max_iter=200, tol=0.0).objective_path[-1] - 1e-3


def test_lbfgs_notes_the_objective_of_the_parameters_it_returns():
    examples = CASES["negative"]
    for steps in (1, 2, 5):
        found = fit(examples, Prior(0.3), max_iter=steps)
        assert (found.n_iter, found.converged) == (steps, False)
        value = objective(examples, Prior(0.3), found.weights, found.bias)
        np.testing.assert_allclose(found.objective_path[-1], value, rtol=1e-12)


@pytest.mark.parametrize("solver", ["lbfgs", *SCALINGS])
def test_columns_without_content_are_left_alone(solver):
    X = np.random.default_rng(0).uniform(size=(20, 3)) * [1.0, 0.0, 1.0] + [0.0, 0.0, 7.0]
    X[:, 2] = 7.0
    found = fit(Examples(SharedFeatures(X, 2), np.arange(20) % 2), solver=solver, max_iter=200)
    assert np.isfinite(found.weights).all()
    np.testing.assert_array_equal(found.weights[:, 1], 0.0)


@given(
    expected=st.lists(st.floats(0, 1e6), min_size=1, max_size=4),
    precision=st.sampled_from([0.0, 1e-8, 1e-3, 1.0, 1e6]),
    wanted=st.floats(-1e5, 1e6),
)
def test_a_scaling_step_solves_its_equation(expected, precision, wanted):
    levels = np.array([0.5, 1.0, 3.0, 7.0])[: len(expected)]
    if precision == 0:
        wanted = abs(wanted)  # an expectation of non-negative features
    table = np.array(expected)[:, None]
    (step,) = _scaling_step(table, levels, np.array([precision]), np.array([wanted]))
    bound = LONGEST_STEP / levels[-1]

    def gap(d):
        return float((table[:, 0] * np.exp(levels * d)).sum() + precision * d - wanted)

    assert abs(step) <= bound * (1 + 1e-12)
    if gap(-bound) >= 0 or gap(bound) <= 0:
        # The root is beyond the longest step; or what is neither expected nor wanted may stay as it is.
        furthest = -bound if gap(-bound) > 0 else bound
        nothing = gap(-bound) == gap(bound) == 0
        assert step == pytest.approx(0.0 if nothing else furthest, rel=1e-6)
    else:
        assert step == pytest.approx(brentq(gap, -bound, bound, xtol=1e-14), abs=1e-8)


def test_levels_are_never_below_the_sums_they_stand_for():
    rng = np.random.default_rng(0)
    few, many = rng.integers(0, 5, 100).astype(float), rng.uniform(size=1000)
    np.testing.assert_array_equal(_levels(few, 8), [1, 2, 3, 4])
    np.testing.assert_array_equal(_levels(np.zeros(3), 8), [1])
    levels = _levels(many, 8)
    assert len(levels) == 8
    assert levels[-1] == many.max()
    assert (levels[np.searchsorted(levels, many)] >= many).all()
    assert _levels(many, 1) == many.max()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": "newton"}, "solver='newton' is not available"),
        ({"prior": Prior(-1.0)}, "not negative"),
        ({"prior": Prior(1.0, np.nan)}, "finite"),
        ({"start": (np.zeros((5, 3)), np.zeros(3))}, r"weights of shape \(3, 5\)"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        fit(CASES["dense"], **change)


@pytest.mark.parametrize("size", [1e308, 1e200])
def test_values_that_cannot_be_summed_are_refused(size):
    X, codes = np.array([[size], [size]]), np.array([0, 0])
    with pytest.raises(ValueError, match="too large to be summed"):
        fit(Examples(SharedFeatures(X, 2), codes))


@pytest.mark.parametrize("solver", ["lbfgs", *SCALINGS])
def test_tiny_values_end_in_no_nan(solver):
    X, codes = np.array([[0.0, 1e-200], [2e-300, 3e-200]]), np.array([0, 1])
    found = fit(Examples(SharedFeatures(X, 2), codes), solver=solver, fit_bias=False)
    assert np.isfinite(found.weights).all()


def test_examples_that_make_no_sense_are_refused():
    features, codes = SharedFeatures(np.eye(2), 2), np.array([0, 1])
    with pytest.raises(ValueError, match="codes must be 0 to 1, got -1 to 0"):
        Examples(features, codes - 1)
    with pytest.raises(ValueError, match="codes must be 0 to 1, got 1 to 2"):
        Examples(features, codes + 1)
    with pytest.raises(ValueError, match="not negative"):
        Examples(features, codes, np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="all are zero"):
        fit(Examples(SharedFeatures(np.eye(2), 2), codes, np.zeros(2)))
