"""The conditional maximum-entropy model: class probabilities given features, as values and functions.

Of all conditional distributions whose expected features are those of the data, the one of largest entropy is
``log p(c | row) = weights . features(row, c) + bias_c - log Z(row)``; its parameters maximise the likelihood
(Berger et al. 1996). Features come in two kinds: a matrix that all classes share, each with weights of its
own, or a tensor of features that depend on the class, with weights that all classes share.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import wrightomega

from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, is_sparse

SOLVERS = ("lbfgs", "gis", "iis")
# Improved iterative scaling tells so many sums of features apart; others are rounded up to these ...
MOST_LEVELS = 32
# ... and fewer where the table of (level, parameter) would have more cells than this.
MOST_CELLS = 2**24
# The largest change of a parameter times the sum of features: without a prior the best one may be infinite.
LONGEST_STEP = 10.0
# A variance below this share of the mean square is rounding.
FLAT = 1e-10
# Columns whose squares sum to less are left alone.
TINY = 1e-300
# Where no better value exists in double precision, the gradient is below this.
BLURRED = 1e-5


class Features(Protocol):
    """Numbers for every row and class, and the two sums that a conditional model takes of them."""

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""

    def scores(self, weights: Floats) -> Floats:
        """Weighted sums of the features, shape (N, C)."""

    def expectation(self, mass: Floats) -> Floats:
        """Sums of the features under a mass of shape (N, C) on rows and classes; shaped as the weights."""

    def curvature(self, weight: Floats, fit_bias: bool) -> Floats:
        """Weighted sums of variances among equally probable classes; last axis as the weights.

        What a bias can stand for is taken out if there are any.
        """

    def mean(self, weight: Floats) -> Self:
        """The weighted mean of all rows, as one row."""

    def lift(self) -> Matrix:
        """What to add to the features of a row, alike for all classes, so that none is negative.

        Probabilities do not notice. Its last axis is that of the weights.
        """

    def totals(self, lift: Matrix) -> Floats:
        """For each row the largest sum over the lifted features, shape (N,)."""

    def rows(self, which: Booleans | Integers) -> Self:
        """The features of some rows."""


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """Matrix X (N, D) shared by all classes; the weights have shape (C, D)."""

    X: Matrix
    n_classes: int

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, D)."""
        return self.n_classes, int(self.X.shape[1])

    def scores(self, weights: Floats) -> Floats:
        """Weighted sums of the features, shape (N, C)."""
        return np.asarray(self.X @ weights.T)

    def expectation(self, mass: Floats) -> Floats:
        """Sums of the features under a mass of shape (N, C), shape (C, D)."""
        return np.asarray(self.X.T @ mass).T

    def curvature(self, weight: Floats, fit_bias: bool) -> Floats:
        """Weighted sums of squares (about the mean row with a bias), less for more classes; shape (D,)."""
        squares = self.X.multiply(self.X) if is_sparse(self.X) else self.X**2
        about_zero = np.asarray(squares.T @ weight)
        of_mean = weight.sum() * self.mean(weight).X[0] ** 2 if fit_bias else 0.0
        return np.maximum(about_zero - of_mean, FLAT * about_zero) * (self.n_classes - 1) / self.n_classes**2

    def mean(self, weight: Floats) -> SharedFeatures:
        """The weighted mean of all rows, as one row."""
        return SharedFeatures(np.asarray(self.X.T @ weight)[None] / weight.sum(), self.n_classes)

    def lift(self) -> Matrix:
        """The negative part of X: a negative value becomes a positive one of all other classes."""
        return (abs(self.X) - self.X) * 0.5

    def totals(self, lift: Matrix) -> Floats:
        """Sums of the positive parts, and of the negative ones once for each other class; shape (N,)."""
        return np.asarray(self.X.sum(axis=1) + self.n_classes * lift.sum(axis=1)).ravel()

    def rows(self, which: Booleans | Integers) -> SharedFeatures:
        """The features of some rows."""
        return SharedFeatures(self.X[which], self.n_classes)


@dataclass(frozen=True, eq=False)
class ClassFeatures:
    """Features (N, C, G) that depend on the class, with weights (G,) shared by all classes."""

    tensor: Floats  # (N, C, G)

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return int(self.tensor.shape[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """(G,)."""
        return (int(self.tensor.shape[2]),)

    def scores(self, weights: Floats) -> Floats:
        """Weighted sums of the features, shape (N, C)."""
        return np.asarray(self.tensor @ weights)

    def expectation(self, mass: Floats) -> Floats:
        """Sums of the features under a mass of shape (N, C), shape (G,)."""
        return np.asarray(mass.reshape(-1) @ self.tensor.reshape(mass.size, -1))

    def curvature(self, weight: Floats, fit_bias: bool) -> Floats:
        """Weighted sums of the variances among the classes (less the mean row with a bias), shape (G,)."""
        apart = self.tensor - self.mean(weight).tensor if fit_bias else self.tensor
        return np.asarray(weight @ np.maximum(apart.var(axis=1), FLAT * (self.tensor**2).mean(axis=1)))

    def mean(self, weight: Floats) -> ClassFeatures:
        """The weighted mean of all rows, as one row."""
        return ClassFeatures(np.tensordot(weight, self.tensor, 1)[None] / weight.sum())

    def lift(self) -> Floats:
        """What takes the smallest feature among the classes to 0, shape (N, G)."""
        return np.asarray(-self.tensor.min(axis=1))

    def totals(self, lift: Matrix) -> Floats:
        """The largest sum among the classes, shape (N,)."""
        return np.asarray(self.tensor.sum(axis=2).max(axis=1) + lift.sum(axis=1))

    def rows(self, which: Booleans | Integers) -> ClassFeatures:
        """The features of some rows."""
        return ClassFeatures(self.tensor[which])


@dataclass(frozen=True, eq=False)
class Prior:
    """Gaussian prior of weights and biases, by precision and centre; precision 0 leaves a parameter free."""

    precision: npt.ArrayLike = 0.0
    center: npt.ArrayLike = 0.0
    bias_precision: npt.ArrayLike = 0.0
    bias_center: npt.ArrayLike = 0.0


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows with class codes and optional weights."""

    features: Features
    codes: Integers  # (N,)
    weight: Floats | None = None  # (N,)

    def __post_init__(self) -> None:
        n_classes = self.features.n_classes
        if ((self.codes < 0) | (self.codes >= n_classes)).any():
            raise ValueError(
                f"codes must be 0 to {n_classes - 1}, got {self.codes.min()} to {self.codes.max()}."
            )
        if self.weight is not None and not ((self.weight >= 0) & np.isfinite(self.weight)).all():
            raise ValueError("weights of rows must be finite and not negative.")

    def of_weight_one(self, prior: Prior) -> tuple[Examples, Prior, float]:
        """The same problem with weights that sum to 1, and what all were divided by."""
        weight = np.ones(len(self.codes)) if self.weight is None else self.weight
        if not weight.any():
            raise ValueError("sample weights must contain at least one non-zero number: all are zero.")
        # The sum itself may be too large for a number.
        largest = float(weight.max())
        share = weight / largest
        total = float(share.sum())

        def divided(precision: npt.ArrayLike) -> Floats:
            with np.errstate(over="ignore"):
                return np.asarray(precision, dtype=np.float64) / largest / total

        prior = replace(
            prior, precision=divided(prior.precision), bias_precision=divided(prior.bias_precision)
        )
        return replace(self, weight=share / total), prior, largest * total

    def mass(self) -> Floats:
        """The weight of each row, at its class; shape (N, C)."""
        mass = np.zeros((len(self.codes), self.features.n_classes))
        mass[np.arange(len(self.codes)), self.codes] = 1.0 if self.weight is None else self.weight
        return mass

    def log_likelihood(self, weights: Floats, bias: Floats) -> float:
        """Weighted sum of the log probabilities of the classes that were seen."""
        return float((self.mass() * log_posterior(self.features.scores(weights) + bias)).sum())


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a solver: weights (C, D) or (G,), biases (C,), and the objective after each step."""

    weights: Floats
    bias: Floats  # (C,)
    n_iter: int
    converged: bool
    objective_path: Floats  # (n_iter + 1,)
    held_out_path: Floats = field(default_factory=lambda: np.empty(0))  # (n_iter + 1,)
    #: The duality gap as a share of the objective, where the solver computes it.
    gap: float = np.nan


def log_posterior(scores: Floats) -> Floats:
    """Return log class probabilities of scores, shape (N, C)."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def fit(
    examples: Examples,
    prior: Prior | None = None,
    *,
    solver: str = "lbfgs",
    fit_bias: bool = True,
    lower: float = -np.inf,
    start: tuple[Floats, Floats] | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    held_out: Examples | None = None,
    patience: int = 5,
) -> Fit:
    """Maximise the penalised log-likelihood, a concave problem, by L-BFGS, GIS or IIS.

    GIS is Darroch and Ratcliff 1972, IIS is Della Pietra et al. 1997; both solve one equation per parameter
    and step and never lower the objective. ``tol`` bounds the gradient for features in units of their
    standard deviation, so the scale of features does not matter.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is not available: use solver={' or '.join(map(repr, SOLVERS))}.")
    examples, prior, total = examples.of_weight_one(prior or Prior())
    problem = _Problem.of(examples, prior, fit_bias, lower)
    course = _Course(problem, total, tol, held_out, patience)
    if start is not None and (
        np.shape(start[0]) != examples.features.shape or not np.isfinite(start[0]).all()
    ):
        raise ValueError(f"a start needs finite weights of shape {examples.features.shape}.")
    first = problem.center if start is None else problem.joined(*start)
    first = np.maximum(first, problem.lower)
    if solver == "lbfgs":
        return course.fit(_lbfgs(problem, first, course, max_iter))
    return course.fit(
        _iterative_scaling(problem, first, course, max_iter, 1 if solver == "gis" else MOST_LEVELS)
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """All parameters in one vector of length P: the weights, then the biases, which are weights of 1s."""

    examples: Examples
    observed: Floats
    precision: Floats
    center: Floats
    lower: Floats
    #: One over the root of each parameter's curvature among equally probable classes.
    unit: Floats
    weight: Floats
    mean_row: Features
    fit_bias: bool

    @classmethod
    def of(cls, examples: Examples, prior: Prior, fit_bias: bool, lower: float) -> _Problem:
        features, mass = examples.features, examples.mass()
        weight = mass.sum(axis=1)
        n_biases = features.n_classes if fit_bias else 0

        def full(of_weights: npt.ArrayLike, of_biases: npt.ArrayLike) -> Floats:
            biases = np.broadcast_to(np.asarray(of_biases, dtype=np.float64), n_biases or 1)[:n_biases]
            weights = np.broadcast_to(np.asarray(of_weights, dtype=np.float64), features.shape)
            return np.concatenate([weights.ravel(), biases])

        precision, center = full(prior.precision, prior.bias_precision), full(prior.center, prior.bias_center)
        if not (precision >= 0).all() or not np.isfinite(precision).all() or not np.isfinite(center).all():
            raise ValueError("precisions of a prior must be finite and not negative, and its centres finite.")
        with np.errstate(over="ignore", invalid="ignore"):
            observed = _expectation(features, mass, fit_bias)
            curvature = np.broadcast_to(features.curvature(weight, fit_bias), features.shape)
        if not np.isfinite(observed).all() or not np.isfinite(curvature).all():
            raise ValueError("the features or their weights are too large to be summed: rescale them.")
        unit = 1.0 / np.sqrt(full(curvature, weight.sum() / features.n_classes) + precision + TINY)
        bounds, mean_row = full(lower, -np.inf), features.mean(weight)
        return cls(examples, observed, precision, center, bounds, unit, weight, mean_row, fit_bias)

    def joined(self, weights: Floats, bias: Floats) -> Floats:
        """Weights and biases as one vector; the biases are left out where there are none."""
        return np.concatenate([np.ravel(weights), np.ravel(bias)[: len(self.center) - np.size(weights)]])

    def split(self, parameters: Floats) -> tuple[Floats, Floats]:
        """A vector as weights and biases."""
        features = self.examples.features
        size = int(np.prod(features.shape))
        bias = parameters[size:] if self.fit_bias else np.zeros(features.n_classes)
        return parameters[:size].reshape(features.shape), bias

    def evaluated(self, parameters: Floats) -> tuple[float, Floats]:
        """The objective, and the mass that the model gives to rows and classes, shape (N, C)."""
        weights, bias = self.split(parameters)
        log_p = log_posterior(self.examples.features.scores(weights) + bias)
        seen = log_p[np.arange(len(log_p)), self.examples.codes]
        penalty = 0.5 * float(self.precision @ (parameters - self.center) ** 2)
        return float(self.weight @ seen) - penalty, np.exp(log_p) * self.weight[:, None]

    def gradient(self, parameters: Floats, expected: Floats) -> Floats:
        """Of the objective, from the features that the model expects."""
        return self.observed - expected - self.precision * (parameters - self.center)

    def in_units(self, gradient: Floats) -> Floats:
        """The gradient with weights in units of their curvature, and biases counted from the mean row."""
        of_weights, of_bias = self.split(gradient)
        return self.joined(of_weights - self.mean_row.expectation(of_bias[None]), of_bias) * self.unit

    def steepness(self, parameters: Floats, gradient: Floats) -> float:
        """The largest entry of the gradient in units, but for bounds that hold it back."""
        slope = self.in_units(gradient)
        held = (parameters <= self.lower) & (slope < 0)
        return float(np.abs(np.where(held, 0.0, slope)).max(initial=0.0))


def _expectation(features: Features, mass: Floats, fit_bias: bool) -> Floats:
    """Sums of the features of all parameters under a mass on rows and classes, shape (P,)."""
    of_biases = mass.sum(axis=0) if fit_bias else np.empty(0)
    return np.concatenate([features.expectation(mass).ravel(), of_biases])


@dataclass(eq=False)
class _Course:
    """The way of a solver: what it reached, when to stop, and which parameters to take."""

    problem: _Problem
    total: float
    tol: float
    held_out: Examples | None
    patience: int
    objective: list[float] = field(default_factory=list)
    likelihood: list[float] = field(default_factory=list)
    best: Floats = field(default_factory=lambda: np.empty(0))
    steepness: float = np.inf

    def reached(self, parameters: Floats, objective: float, gradient: Floats) -> bool:
        """Note where the solver is; whether it may stop."""
        self.objective.append(objective)
        self.steepness = self.problem.steepness(parameters, gradient)
        done = self.steepness <= self.tol
        if self.held_out is None:
            self.best = parameters
            return done
        self.likelihood.append(self.held_out.log_likelihood(*self.problem.split(parameters)))
        best = int(np.argmax(self.likelihood))
        if best == len(self.likelihood) - 1:
            self.best = parameters
        return done or len(self.likelihood) - 1 - best >= self.patience

    def fit(self, converged: bool) -> Fit:
        """The result; biases matter up to a constant, which is taken out where no prior fixes it."""
        weights, bias = self.problem.split(self.best)
        if self.problem.fit_bias and not self.problem.precision[weights.size :].any():
            bias = bias - bias.mean()
        path, likelihood = self.total * np.array(self.objective), np.array(self.likelihood)
        return Fit(weights.copy(), bias, len(path) - 1, converged, path, likelihood)


def _lbfgs(problem: _Problem, first: Floats, course: _Course, max_iter: int) -> bool:
    """Whether it converged.

    The weights are counted in units of their curvature, and the biases from the mean row: that changes no
    optimum, but the way to it is many times as short where features have different scales.
    """
    features, unit, mean_row = problem.examples.features, problem.unit, problem.mean_row
    objective, gradient, stopped = 0.0, first, False

    def parameters(point: Floats) -> Floats:
        weights, bias = problem.split(point * unit)
        return problem.joined(weights, bias - mean_row.scores(weights)[0])

    def loss(point: Floats) -> tuple[float, Floats]:
        nonlocal objective, gradient
        at = parameters(point)
        objective, mass = problem.evaluated(at)
        gradient = problem.gradient(at, _expectation(features, mass, problem.fit_bias))
        return -objective, -problem.in_units(gradient)

    def noted(intermediate_result: Any) -> None:
        nonlocal stopped
        # The point that a line search accepts is the last one that it evaluated.
        stopped = course.reached(parameters(intermediate_result.x), objective, gradient)
        if stopped:
            raise StopIteration

    weights, bias = problem.split(first)
    start = problem.joined(weights, bias + mean_row.scores(weights)[0]) / unit
    loss(start)
    if course.reached(first, objective, gradient) or max_iter < 1:
        return max_iter >= 1
    result = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=None if np.isneginf(problem.lower).all() else [(low, None) for low in problem.lower / unit],
        callback=noted,
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter,
            "gtol": 0.0,
            "ftol": np.finfo(float).eps,
            "maxls": 50,
        },
    )
    return stopped or bool(result.success and course.steepness <= BLURRED)


def _iterative_scaling(
    problem: _Problem, first: Floats, course: _Course, max_iter: int, most_levels: int
) -> bool:
    """Whether it converged.

    With features that are not negative and sum to at most m in a row, ``exp(sum of d_j f_j)`` is at most
    ``1 + sum of f_j / m (exp(d_j m) - 1)`` (Jensen; what is missing to m is the slack, which stays as it is).
    So the gain of a change d is bounded from below by a sum over parameters, each of which is maximised by
    itself. Generalised scaling takes one m for all rows, improved scaling the sum of each row.
    """
    features = problem.examples.features
    lift = features.lift()
    totals = features.totals(lift) + problem.fit_bias
    levels = _levels(totals, min(most_levels, max(1, MOST_CELLS // max(1, len(first)))))
    places = np.searchsorted(levels, totals)
    parts = [np.flatnonzero(places == level) for level in range(len(levels))]
    rows = [features.rows(part) for part in parts] if len(levels) > 1 else [features]
    lifted = np.stack([_of_lift(problem, lift[part], problem.weight[part]) for part in parts])
    parameters = first
    for step in range(max_iter + 1):
        objective, mass = problem.evaluated(parameters)
        expected = np.stack(
            [_expectation(f, mass[p], problem.fit_bias) for f, p in zip(rows, parts, strict=True)]
        )
        gradient = problem.gradient(parameters, expected.sum(axis=0))
        if course.reached(parameters, objective, gradient):
            return True
        if step == max_iter:
            break
        expected += lifted
        wanted = problem.observed + lifted.sum(axis=0) - problem.precision * (parameters - problem.center)
        change = _scaling_step(expected, levels, problem.precision, wanted)
        parameters = np.maximum(parameters + change, problem.lower)
    return False


def _levels(totals: Floats, most: int) -> Floats:
    """At most so many sums of features, such that each row's is not above the next of them."""
    # Rows without any feature take part in no sum.
    levels = np.unique(totals[totals > 0])
    if len(levels) > most:
        shares = np.linspace(1.0 / most, 1.0, most)
        levels = np.unique(np.quantile(totals[totals > 0], shares, method="higher"))
    return levels if len(levels) else np.ones(1)


def _of_lift(problem: _Problem, lift: Matrix, weight: Floats) -> Floats:
    """What the lift of some rows adds to the expectation of each parameter's feature."""
    added = np.broadcast_to(np.asarray(lift.T @ weight), problem.examples.features.shape).ravel()
    return np.concatenate([added, np.zeros(len(problem.center) - added.size)])


def _scaling_step(expected: Floats, levels: Floats, precision: Floats, wanted: Floats) -> Floats:
    """The change d of each parameter, ``sum_m expected_m exp(d m) + precision d = wanted``, shape (P,).

    The left side grows and is convex in d. Taking the largest m for all gives a d that is too short, in
    closed form; from there Newton's steps lead to the root.
    """
    longest = levels[-1]
    short = _longest_level_step(expected.sum(axis=0), precision / longest, wanted) / longest
    if len(levels) == 1:
        return short
    change = short.copy()
    for _ in range(50):
        terms = expected * np.exp(levels[:, None] * change)
        slope = levels @ terms + precision
        gap = wanted - terms.sum(axis=0) - precision * change
        move = np.divide(gap, slope, out=np.zeros_like(gap), where=slope > 0)
        move = np.clip(move, -1.0 / longest, 1.0 / longest)
        bound = LONGEST_STEP / longest
        moved = np.clip(change + move, -bound, bound)
        done = np.abs(moved - change).max(initial=0.0) * longest <= 1e-12
        change = moved
        if done:
            return change
    # A step that is too short still gains; one that Newton has not settled might not.
    settled = np.abs(move) * longest <= 1e-6
    return np.where(settled, change, short)


def _longest_level_step(expected: Floats, precision: Floats, wanted: Floats) -> Floats:
    """The root u of ``expected exp(u) + precision u = wanted``, shape (P,), held within LONGEST_STEP."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        free = np.log(wanted / expected)
        ratio = wanted / precision
        # precision * omega is expected * exp(u), and omega + log(omega) = log(expected / precision) + ratio.
        log_share = np.log(expected / precision)
        omega = wrightomega(log_share + ratio)
        held = np.where(omega < 1, ratio - omega, np.log(omega) - log_share)
        step = np.where(precision > 0, np.where(expected > 0, held, ratio), free)
    # Where a feature is neither seen nor expected, and nothing is to be made smaller, nothing changes.
    return np.clip(np.nan_to_num(step, nan=0.0), -LONGEST_STEP, LONGEST_STEP)
