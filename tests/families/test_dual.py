from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from maxdisc.families import (
    Bernoulli,
    Beta,
    Exponential,
    Gamma,
    Gaussian,
    Geometric,
    Poisson,
    Support,
    dual,
    moments,
)
from maxdisc.families.dual import Problem, Status, expectations, integrals, solve, solver, tree
from maxdisc.families.dual.powers import ScaledPowers
from maxdisc.families.dual.tree import tree_solved
from maxdisc.families.functions import Cosine, Deviation, Indicator, LogAbove, LogBelow, Power, Sine, Spline
from maxdisc.testing import taking
from tests.conftest import examples

UNIT, HALF, LINE = Support(0.0, 1.0), Support(0.0), Support()
COUNTS, DICE = Support(0.0, lattice=True), Support(0.0, 5.0, lattice=True)


def random_naturals(support, order, n, rng):
    """Parameters of powers whose densities reach from broad to a millionth of the interval."""
    if np.isfinite(support.high):
        coefficients = rng.normal(size=(order, n)) * rng.choice([1.0, 4.0], size=n)
        steepest = 6 if not support.lattice else 1.4
        coefficients[0] -= rng.choice([0.0, 0.5], size=n) * 10 ** rng.uniform(0, steepest, size=n)
        legendre = np.zeros((order + 1, order + 1))
        for k in range(order + 1):
            legendre[: k + 1, k] = np.polynomial.legendre.leg2poly(np.eye(order + 1)[k])
        middle, half = (support.low + support.high) / 2, (support.high - support.low) / 2
        return ScaledPowers(np.full(n, middle), np.full(n, half), coefficients).natural(
            legendre[1:, 1:] @ coefficients
        )
    theta = rng.normal(size=(order, n)) * 0.7
    theta[-1] = -rng.gamma(2.0, 0.3, size=n)
    scale = 10 ** rng.uniform(-6, 6, size=n)
    center = np.zeros(n)
    if support.lattice:
        scale = 10 ** rng.uniform(0.3, 3, size=n)
    elif np.isinf(support.low):
        center = rng.normal(size=n) * scale
    return ScaledPowers(center, scale, theta).natural(theta)


CLOSED = {
    "exponential": (HALF, moments(1), Exponential(), [[-2.0, -1e-4, -1e4]]),
    "gaussian": (LINE, moments(2), Gaussian(), [[0.25, 3.0, -1e-3], [-0.125, -2.0, -1e-5]]),
    "gamma": (
        Support(0.0, open_low=True),
        (Power(1), LogAbove()),
        Gamma(),
        [[-2.0, -0.01, -50.0, -1.0], [2.0, -0.5, 30.0, -0.9]],
    ),
    "beta": (
        Support(0.0, 1.0, open_low=True, open_high=True),
        (LogAbove(), LogBelow()),
        Beta(),
        [[2.0, -0.5, 30.0, -0.9], [3.0, -0.7, 100.0, 5.0]],
    ),
    "bernoulli": (Support(0.0, 1.0, lattice=True), moments(1), Bernoulli(), [[-13.0, 0.0, 0.3, 9.0]]),
    "geometric": (COUNTS, moments(1), Geometric(), [[-5.0, -0.3, -1e-5]]),
    "poisson": (COUNTS, moments(1), Poisson(), [[-5.0, 0.0, 3.0, 11.0]]),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_are_reproduced_in_both_coordinates(name):
    support, functions, family, natural = CLOSED[name]
    natural = np.array(natural)
    base = family.log_base if name == "poisson" else None
    problem = Problem(support, functions, base)
    found = solve(problem, family.mean(natural))
    assert (found.status == Status.SOLVED).all()
    np.testing.assert_allclose(found.natural, natural, rtol=1e-7, atol=1e-9)
    log_partition, mean = expectations(problem, natural)
    np.testing.assert_allclose(mean, family.mean(natural), rtol=1e-7)
    np.testing.assert_allclose(log_partition, family.log_partition(natural), rtol=1e-7, atol=1e-9)


TRUNCATED = {
    "exponential": (UNIT, moments(1), [[-3.0]], lambda: stats.truncexpon(3.0, scale=1 / 3.0)),
    "gaussian": (
        Support(-1.0, 2.0),
        moments(2),
        [[2.0], [-2.0]],
        lambda: stats.truncnorm(-3.0, 3.0, loc=0.5, scale=0.5),
    ),
    "half-normal": (HALF, moments(2), [[0.0], [-0.5]], lambda: stats.halfnorm()),
    "von Mises": (
        Support(-np.pi, np.pi),
        (Cosine(), Sine()),
        [[2 * np.cos(0.7)], [2 * np.sin(0.7)]],
        lambda: stats.vonmises(2.0, loc=0.7),
    ),
    "Boltzmann": (Support(0.0, 19.0, lattice=True), moments(1), [[-0.4]], lambda: stats.boltzmann(0.4, 20)),
    "discrete Gaussian tail": (COUNTS, moments(2), [[1.0], [-0.05]], None),
}


@pytest.mark.parametrize("name", TRUNCATED)
def test_truncated_densities_are_those_of_scipy(name):
    support, functions, natural, make = TRUNCATED[name]
    problem, natural = Problem(support, functions), np.array(natural)
    if make is None:
        x = np.arange(400.0)
        mass = np.exp(natural[0] * x + natural[1] * x * x)
        means = [(mass * f(x)).sum() / mass.sum() for f in functions]
    elif support.lattice:
        x = np.arange(20.0)
        means = [(make().pmf(x) * f(x)).sum() for f in functions]
    else:
        low, high = make().support() if name != "von Mises" else (-np.pi, np.pi)
        low, high = max(low, -40.0), min(high, 40.0)
        x, w = np.polynomial.legendre.leggauss(300)
        x, w = (low + high) / 2 + (high - low) / 2 * x, (high - low) / 2 * w
        means = [(w * make().pdf(x) * f(x)).sum() for f in functions]
    found = solve(problem, np.array(means)[:, None])
    assert found.status[0] == Status.SOLVED
    np.testing.assert_allclose(found.natural, natural, rtol=1e-7, atol=1e-8)


def test_absolute_deviations_give_laplace():
    found = solve(Problem(LINE, (Deviation(1.5),)), np.array([[0.5, 20.0]]))
    np.testing.assert_allclose(found.natural, [[-2.0, -0.05]], rtol=1e-9)


#: Supports, and how many moments are given; odd ones have no density on the line.
SOLVABLE = [
    (support, order)
    for support in (UNIT, HALF, LINE, COUNTS, DICE)
    for order in (1, 2, 3, 4)
    if support != LINE or order % 2 == 0
]


@pytest.mark.parametrize(("support", "order"), SOLVABLE, ids=str)
def test_random_problems_are_solved(support, order):
    reliability(support, order, 400)


@pytest.mark.slow
@pytest.mark.parametrize(("support", "order"), SOLVABLE, ids=str)
def test_hundred_thousand_random_problems_are_solved(support, order):
    reliability(support, order, 100_000)


def reliability(support, order, n):
    rng = np.random.default_rng(order)
    problem = Problem(support, moments(order))
    targets = expectations(problem, random_naturals(support, order, n, rng))[1]
    found = solve(problem, targets)
    solved = found.status == Status.SOLVED
    assert solved.mean() >= 0.9999 or (~solved).sum() == 0, found.counts
    again = expectations(problem, found.natural[:, solved])[1]
    scale = np.abs(targets[:, solved])
    if np.isinf(support.low):
        scale = scale + targets[1, solved] ** (np.arange(1, order + 1) / 2)[:, None]
    assert (np.abs(again - targets[:, solved]) / scale).max() < 1e-6
    assert (found.residual[solved] <= dual.TOLERANCE).all()


NARROW_COUNTS = {
    "a point and its neighbours": [-0.20952687, 0.20549641, 0.10362257, -0.00252581],
    "nearly a point": [0.05365591, 0.05339944, 0.05672304, -0.00015849],
    "next to the end, a tail that hardly falls": [-0.49250276, -0.05832039, -0.04112466, -0.00182746],
    "next to the end, a heavy tail": [-0.81255546, -0.13842421, 0.0122033, -0.00272192],
}


@pytest.mark.parametrize("name", NARROW_COUNTS)
def test_narrow_counts_are_solved(name):
    """Where the spread is a small share of the mean or of a point's distance, or the tail hardly falls."""
    problem = Problem(COUNTS, moments(4))
    with taking("compiled"):
        targets = expectations(problem, np.array(NARROW_COUNTS[name])[:, None])[1]
        found = solve(problem, targets)
    assert found.status[0] == Status.SOLVED
    x = np.arange(2000.0)
    exponent = (found.natural * x ** np.arange(1, 5)[:, None]).sum(axis=0)
    mass = np.exp(exponent - exponent.max())
    means = (mass / mass.sum() * x ** np.arange(1, 5)[:, None]).sum(axis=1)
    np.testing.assert_allclose(means, targets[:, 0], rtol=1e-9)


def test_moments_of_counts_that_no_density_has_stay_unsolved():
    """On whole numbers (x - 3)(x - 4) is never negative."""
    with taking("compiled"):
        found = solve(Problem(COUNTS, moments(2)), np.array([[3.5], [3.5**2 + 0.2]]))
    assert found.status[0] == Status.BOUNDARY


GENERAL = {
    "gamma": (Support(0.0, open_low=True), (Power(1), LogAbove())),
    "beta": (Support(0.0, 1.0, open_low=True, open_high=True), (LogAbove(), LogBelow())),
    "laplace and more": (LINE, (Deviation(1.5), Power(1), Power(2))),
    "circle": (Support(0.0, 2 * np.pi), (Cosine(), Sine(), Cosine(2))),
    "splines": (Support(-1.0, 1.0), (Power(1), Spline(0.2, 2), Indicator(-0.5, 0.5))),
    "an atom": (Support(0.0, atoms=(0.0,)), (Indicator(0.0, 1e-300), Power(1))),
    "log counts": (Support(1.0, lattice=True), (Power(1), LogAbove())),
    "own": (Support(0.0, 3.0), (np.tanh, np.square)),
}


def general_naturals(name, n, rng):
    functions = GENERAL[name][1]
    natural = rng.normal(size=(len(functions), n)) * 2
    if name == "gamma":
        natural = np.stack([-(10 ** rng.uniform(-3, 2, n)), 10 ** rng.uniform(-0.3, 1.7, n) - 1])
    elif name == "beta":
        natural = 10 ** rng.uniform(-1, 2, size=(2, n)) - 1
    elif name == "laplace and more":
        natural[2] = -(10 ** rng.uniform(-3, 2, n))
    elif name in ("an atom", "log counts"):
        at = 1 if name == "an atom" else 0
        natural[at] = -(10 ** rng.uniform(-3, 1, n))
    return natural


@pytest.mark.parametrize("name", GENERAL)
def test_any_functions_on_the_tree_are_those_on_panels_of_their_own(name):
    problem = Problem(*GENERAL[name])
    natural = general_naturals(name, 40, np.random.default_rng(5))
    compiled = expectations(problem, natural)
    plain = integrals(problem, natural)
    np.testing.assert_allclose(compiled[0], plain.log_partition, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(compiled[1], plain.mean, rtol=1e-9, atol=1e-12)
    natural_again, residual, _ = tree_solved(problem, plain.mean, 120)
    assert (residual <= 1e-9).mean() > 0.95
    good = residual <= 1e-9
    again = integrals(problem, natural_again[:, good])
    np.testing.assert_array_less(np.abs(again.mean - plain.mean[:, good]), 1e-8 * plain.magnitude[:, good])
    found = solve(problem, plain.mean)
    assert (found.status == Status.SOLVED).all()
    np.testing.assert_allclose(integrals(problem, found.natural).mean, plain.mean, rtol=1e-6, atol=1e-8)


def test_many_gammas_are_those_of_the_closed_form():
    rng = np.random.default_rng(0)
    shape, scale = 10 ** rng.uniform(np.log10(0.5), np.log10(50), 2000), 10 ** rng.uniform(-2, 3, 2000)
    natural = np.stack([-1 / scale, shape - 1])
    problem = Problem(*GENERAL["gamma"])
    found = solve(problem, Gamma().mean(natural))
    assert (found.status == Status.SOLVED).all()
    np.testing.assert_allclose(found.natural, natural, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(expectations(problem, natural)[0], Gamma().log_partition(natural), atol=1e-9)


def test_on_the_tree_no_problem_depends_on_the_others(monkeypatch):
    problem = Problem(*GENERAL["gamma"])
    targets = Gamma().mean(general_naturals("gamma", 600, np.random.default_rng(1)))
    monkeypatch.setenv("MAXDISC_NUM_THREADS", "1")
    everything = tree_solved(problem, targets, 120)
    tree._planted.cache_clear()
    monkeypatch.setenv("MAXDISC_NUM_THREADS", "2")
    alone = tree_solved(problem, targets[:, 17:18], 120)
    again = tree_solved(problem, targets, 120)
    np.testing.assert_array_equal(everything[0][:, 17:18], alone[0])
    for a, b in zip(everything, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_the_tree_has_no_room_for_is_solved_all_the_same(monkeypatch):
    monkeypatch.setattr(tree, "MOST_PANELS", 0)
    tree._planted.cache_clear()
    problem = Problem(*GENERAL["gamma"])
    natural = general_naturals("gamma", 10, np.random.default_rng(2))
    assert np.isinf(tree_solved(problem, Gamma().mean(natural), 120)[1]).any()
    found = solve(problem, Gamma().mean(natural))
    np.testing.assert_allclose(found.natural, natural, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(expectations(problem, natural)[1], Gamma().mean(natural), rtol=1e-9)


@pytest.mark.parametrize("support", [UNIT, HALF, LINE, COUNTS, DICE], ids=str)
def test_compiled_code_and_numpy_agree(support):
    order = 2 if support == DICE else 4
    rng = np.random.default_rng(1)
    problem = Problem(support, moments(order))
    natural = random_naturals(support, order, 12, rng)
    with taking("compiled"):
        compiled = expectations(problem, natural)
        solved = solve(problem, compiled[1])
    with taking("plain"):
        plain = expectations(problem, natural)
        again = solve(problem, plain[1])
    np.testing.assert_allclose(compiled[0], plain[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(compiled[1], plain[1], rtol=1e-9)
    both = (solved.status == Status.SOLVED) & (again.status == Status.SOLVED)
    assert both.mean() > 0.8
    # Parameters of densities that hardly differ may: what they say is compared.
    a, b = integrals(problem, solved.natural[:, both]), integrals(problem, again.natural[:, both])
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-7)


@pytest.mark.parametrize(
    ("support", "functions"),
    [
        (UNIT, moments(2)),
        (Support(0.0, 3.0, lattice=True), moments(2)),
        (Support(-1.0, 2.0), (Power(1), Deviation(0.5))),
        (Support(0.0, 2 * np.pi), (Cosine(), Sine())),
        (UNIT, (Indicator(0.0, 0.25), Power(1))),
        (UNIT, (Power(1), Spline(0.5, 2))),
    ],
    ids=str,
)
def test_newton_scaling_and_gradient_agree(support, functions):
    rng = np.random.default_rng(0)
    problem = Problem(support, functions)
    targets = expectations(problem, rng.normal(size=(len(functions), 3)))[1]
    newton, *others = (solve(problem, targets, solver) for solver in ("newton", "gis", "gradient"))
    assert (newton.status == Status.SOLVED).all()
    for other in others:
        assert (other.status == Status.SOLVED).all()
        np.testing.assert_allclose(other.natural, newton.natural, rtol=1e-5, atol=1e-5)


@examples(25)
@given(seed=st.integers(0, 10**6), which=st.sampled_from(["moments", "dice", "splines"]))
def test_no_feasible_competitor_has_more_entropy(seed, which):
    support, functions = {
        "moments": (UNIT, moments(3)),
        "dice": (Support(0.0, 9.0, lattice=True), moments(2)),
        "splines": (Support(-1.0, 1.0), (Power(1), Spline(0.0, 1), Indicator(-0.5, 0.5))),
    }[which]
    rng = np.random.default_rng(seed)
    problem = Problem(support, functions)
    natural = rng.normal(size=(len(functions), 1)) * 2
    found = integrals(problem, natural)
    x = np.arange(10.0) if support.lattice else np.linspace(support.low, support.high, 402)[1:-1] + 1e-4
    # The best density on these points has the largest entropy among all others with the same means.
    table = np.stack([np.ones(len(x)), *(f(x) for f in functions)])
    p = np.exp((natural * table[1:]).sum(axis=0))
    p /= p.sum()
    null = np.linalg.svd(table)[2][len(table) :]
    for _ in range(5):
        direction = null.T @ rng.normal(size=len(null))
        size = rng.uniform() * np.min(p[direction < 0] / -direction[direction < 0])
        q = np.maximum(p + size * direction, 1e-300)
        np.testing.assert_allclose(table @ q, table @ p, atol=1e-10)
        assert -(q * np.log(q)).sum() <= -(p * np.log(p)).sum() + 1e-12
    # ... and solving for the means leads back to it.
    again = solve(problem, found.mean)
    assert again.status[0] == Status.SOLVED
    q = np.exp((again.natural * table[1:]).sum(axis=0))
    np.testing.assert_allclose(q / q.sum(), p, atol=1e-7)


def test_entropy_is_maximal_by_an_independent_optimiser():
    x = np.arange(1.0, 7.0)
    found = solve(Problem(Support(1.0, 6.0, lattice=True), moments(1)), np.array([[4.5]]))
    p = np.exp(found.natural[0] * x)
    p /= p.sum()
    best = optimize.minimize(
        lambda q: (q * np.log(q)).sum(),
        np.full(6, 1 / 6),
        bounds=[(1e-9, 1)] * 6,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1},
            {"type": "eq", "fun": lambda q: q @ x - 4.5},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(p, best.x, atol=1e-5)


STATUSES = {
    "solved": (UNIT, moments(2), [0.5, 0.3], Status.SOLVED),
    "constant": (UNIT, moments(2), [0.5, 0.25], Status.BOUNDARY),
    "all mass at an end": (UNIT, moments(2), [0.0, 0.0], Status.BOUNDARY),
    "both ends only": (UNIT, moments(2), [0.5, 0.5], Status.BOUNDARY),
    "outside": (UNIT, moments(1), [1.5], Status.BOUNDARY),
    "negative variance": (LINE, moments(2), [1.0, 0.5], Status.BOUNDARY),
    "never a success": (Support(0.0, 1.0, lattice=True), moments(1), [0.0], Status.BOUNDARY),
    "no share": (UNIT, (Indicator(0.0, 0.5),), [0.0], Status.BOUNDARY),
    "far outside": (UNIT, (Cosine(1, 1.0), Sine(1, 1.0)), [2.0, 0.0], Status.BOUNDARY),
    "half-line, heavy tail": (HALF, moments(2), [1.0, 3.0], Status.NO_DENSITY),
    "half-line, cubic": (HALF, moments(3), [1.0, 2.0, 30.0], Status.NO_DENSITY),
    "negative half-line": (Support(-np.inf, 0.0), moments(2), [-1.0, 3.0], Status.NO_DENSITY),
    "cubic on the line": (LINE, moments(3), [0.0, 1.0, 0.5], Status.NO_DENSITY),
    "cubic on the line, symmetric": (LINE, moments(3), [0.0, 1.0, 0.0], Status.SOLVED),
    "kurtosis": (LINE, moments(4), [0.0, 1.0, 0.0, 4.0], Status.NO_DENSITY),
    "exponential limit": (HALF, moments(2), [1.0, 2.0], Status.SOLVED),
}


@pytest.mark.parametrize("way", [pytest.param("plain", marks=pytest.mark.whole), "compiled"])
@pytest.mark.parametrize("name", STATUSES)
def test_what_cannot_be_solved_is_told(name, way):
    support, functions, target, status = STATUSES[name]
    with taking(way):
        found = solve(Problem(support, functions), np.array(target)[:, None])
        log_partition, mean = expectations(Problem(support, functions), found.natural)
    assert found.status[0] == status
    assert np.isfinite(found.natural).all()
    assert found.counts[status] == 1
    assert np.isfinite(log_partition).all()
    assert np.isfinite(mean).all()


def test_too_heavy_a_tail_gives_the_density_of_the_lower_moments():
    found = solve(Problem(HALF, moments(2)), np.array([[2.0], [20.0]]))
    np.testing.assert_allclose(found.natural, [[-0.5], [0.0]])


def test_moments_on_the_boundary_are_moved_by_the_stated_share():
    found = solve(Problem(Support(0.0, 1.0, lattice=True), moments(1)), np.array([[0.0]]))
    inner = expectations(Problem(Support(0.0, 1.0, lattice=True), moments(1)), found.natural)[1][0, 0]
    assert 0 < inner <= dual.SHARES[1]


@pytest.mark.parametrize("mean", [1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_tiny_means_on_the_interval(mean, order):
    """The exponential density, cut off at 1, which no power beyond the first changes."""
    targets = np.array([mean**k * float(np.prod(np.arange(1, k + 1))) for k in range(1, order + 1)])
    found = solve(Problem(UNIT, moments(order)), targets[:, None])
    assert found.status[0] == Status.SOLVED
    np.testing.assert_allclose(found.natural[0, 0], -1 / mean, rtol=1e-6)


def test_equal_targets_are_solved_once(monkeypatch):
    seen = []
    attempt = solver.attempt
    monkeypatch.setattr(solver, "attempt", lambda p, t, *a: (seen.append(t.shape[1]), attempt(p, t, *a))[1])
    found = solve(Problem(HALF, moments(1)), np.full((1, 50, 40), 2.0))
    assert seen == [1]
    np.testing.assert_array_equal(found.natural, np.full((1, 50, 40), -0.5))


def test_threads_do_not_matter(monkeypatch):
    problem = Problem(UNIT, moments(3))
    targets = expectations(problem, np.random.default_rng(0).normal(size=(3, 9000)))[1]
    monkeypatch.setenv("MAXDISC_NUM_THREADS", "1")
    one = solve(problem, targets)
    monkeypatch.setenv("MAXDISC_NUM_THREADS", "3")
    for a, b in zip(one, solve(problem, targets), strict=True):
        np.testing.assert_array_equal(a, b)


def test_shared_nodes_solve_what_they_can_resolve():
    rng = np.random.default_rng(0)
    table, weights, combine = dual.legendre_table(4, 64)
    theta = rng.normal(size=(200, 4)) * [4, 4, 2, 2]
    mass = weights * np.exp(theta @ table[:4])
    targets = mass @ table[:4].T / mass.sum(axis=1, keepdims=True)
    found, residual, _ = dual.solve_on_nodes(targets, table, weights, combine)
    assert (residual < 1e-9).all()
    np.testing.assert_allclose(found, theta, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Problem(UNIT, ()), "at least one function"),
        (lambda: Problem(LINE, moments(1)), "moments\\(2\\)"),
        (lambda: Problem(Support(lattice=True), moments(2)), "finite lower end"),
        (lambda: Problem(Support(1.0, 0.0), moments(2)), "no room"),
        (lambda: solve(Problem(UNIT, moments(2)), np.zeros((3, 4))), "2 means"),
        (lambda: solve(Problem(UNIT, moments(1)), np.array([[np.nan]])), "not finite"),
        (lambda: solve(Problem(UNIT, moments(1)), np.zeros((1, 1)), "magic"), "'newton'"),
        (lambda: solve(Problem(HALF, moments(1)), np.ones((1, 1)), "gis"), "bounded support"),
        (lambda: moments(7), "1 to 6"),
        (lambda: Power(0), "1 to 6"),
    ],
)
def test_bad_input_is_refused(make, complaint):
    with pytest.raises(ValueError, match=complaint):
        make()
