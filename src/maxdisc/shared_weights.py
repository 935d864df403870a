"""Few weights that all classes share, and a bias for each class, by Newton's method.

The model is that of :mod:`maxdisc.conditional` with features that depend on the class. With some dozens of
parameters the matrix of second derivatives is small, and a handful of steps does what gradients take hundreds
for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from maxdisc.conditional import log_posterior
from maxdisc.matrices import Floats, Integers

#: Newton's method needs about ten steps; a class that is told apart for sure takes it further.
MOST_STEPS = 60
#: A step is halved at most so often.
MOST_HALVINGS = 40
#: The share of the promised gain that a step must keep.
ENOUGH_GAIN = 1e-4
#: By this share second derivatives are increased: directions in which nothing changes then stay still. It is
#: a share of each, because one row may be so far from the others that the unit of its feature is its own.
DAMPING = 1e-9
#: Features that differ by fewer nats than this between classes are rounding: the ridge holds them at 1.
ROUNDING = 1e-12
#: A ridge for rows of hardly any weight: nothing moves.
MOST_PRECISION = 1e12
#: Sums of probabilities below this are taken in logs.
TINY = 1e-290


def doubt(n_rows: float) -> float:
    """How much a class of held-out rows is doubted, so that no scale of the scores is the best of all.

    Where rows are told apart without an error, scores that are twice as large always have less loss, though
    nothing was learnt about how sure to be. After n rows without an error the next is wrong with a
    probability of 1 / (n + 2), says the rule of Laplace; so with this share each row is taken to be of some
    other class, as Platt did with two. The best scale is then that at which all rows are about as sure as
    that: models that are far surer of some rows than of others are told from those that are not. Which other
    class it would be is left to the model: classes that are out of the question stay so.

    Parameters
    ----------
    n_rows : float
        How many rows are looked at, a row of weight 2 being two; with weights far below 1, how many rows of
        equal weight they are worth.

    Examples
    --------
    >>> from maxdisc.shared_weights import doubt
    >>> doubt(98)
    0.01
    """
    return 1 / (n_rows + 2)


@dataclass(frozen=True, eq=False)
class SharedWeights:
    """Weights of class features and biases of classes.

    Parameters
    ----------
    weights : ndarray of shape (G,)
        At least 0.
    bias : ndarray of shape (C,)
        Added to the scores.
    loss : float
        Mean log-loss of the rows, doubt included, without the ridge.
    converged : bool
        Whether a step promised next to no gain, or none gained any more.
    """

    weights: Floats
    bias: Floats
    loss: float
    converged: bool

    def log_posterior(self, tensor: Floats) -> Floats:
        """Log probabilities of rows with features of shape (n, C, G), shape (n, C)."""
        return log_posterior(tensor @ self.weights + self.bias)


def shared_weights(
    tensor: Floats,
    codes: Integers,
    row_weight: Floats,
    bias_center: Floats,
    ridge: float = 1.0,
    bias_ridge: float = 0.1,
    start: SharedWeights | None = None,
    tol: float = 1e-12,
    doubt: float = 0.0,
) -> SharedWeights:
    """Maximise the likelihood of classes, less a ridge towards weights of 1 and the biases given.

    Parameters
    ----------
    tensor : ndarray of shape (n, C, G)
        Features of each row in each class.
    codes : ndarray of shape (n,)
        The classes of the rows.
    row_weight : ndarray of shape (n,)
        How much each counts; their sum is more than 0.
    bias_center : ndarray of shape (C,)
        What biases are drawn to.
    ridge, bias_ridge : float
        One over the variances of the Gaussian prior: how many rows it is worth, a row of weight 2 being two.
    start : SharedWeights, optional
        Where to begin; further features begin like its last.
    tol : float
        The last step is one that promises to gain no more than this, in nats for each row.
    doubt : float
        The probability with which a row is taken to have another class than its own: see :func:`doubt`.

    Returns
    -------
    SharedWeights
        The optimum, with weights of at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.shared_weights import shared_weights
    >>> score = np.array([3.0, -1.0, 2.0, -4.0, 1.0, -2.0])
    >>> tensor = np.stack([-score, score], axis=1)[:, :, None]
    >>> found = shared_weights(tensor, np.array([1, 0, 0, 0, 1, 1]), np.ones(6), np.zeros(2))
    >>> found.converged, bool(0 < found.weights[0] < 1)
    (True, True)
    """
    problem = _Problem.of(tensor, codes, row_weight, bias_center, ridge, bias_ridge, doubt)
    # Never worse than weights of 1, however far from there a row of its own asks the others to begin.
    at = min(problem.at(problem.start(start)), problem.at(problem.center), key=lambda at: at.value)
    converged = False
    for _ in range(MOST_STEPS):
        slope = problem.slope(at)
        step = problem.step(at, slope)
        promised = float(slope @ step)
        if -promised <= tol:
            # Newton's last step has more digits than the objective, which could not tell whether it gains.
            at, converged = problem.at(problem.projected(at.point + step)), True
            break
        for halving in range(MOST_HALVINGS):
            share = 0.5**halving
            there = problem.at(problem.projected(at.point + share * step))
            if there.value <= at.value + ENOUGH_GAIN * share * promised:
                break
        else:
            # No better point exists in double precision.
            converged = True
            break
        at = there
    return SharedWeights(*problem.split(at.point), at.loss, converged)


class _At(NamedTuple):
    """A point, and what the objective and its derivatives are made of there."""

    point: Floats
    #: The objective, and the mean log-loss without the ridge.
    value: float
    loss: float
    #: Probabilities of all classes, shape (C, n); the same, 0 for each row's own class, and their sums (n,).
    probability: Floats
    others: Floats
    wrong: Floats


@dataclass(frozen=True, eq=False)
class _Problem:
    """Minus the mean log-likelihood plus the ridge; features are counted in units of their spread.

    Rows come last, ``planes`` of shape (G, C, n): what is done for all of them is then a product of matrices
    with a short side, or a loop over what lies side by side.
    """

    planes: Floats
    codes: Integers
    share: Floats
    unit: Floats
    precision: Floats
    center: Floats
    doubt: float

    @classmethod
    def of(
        cls,
        tensor: Floats,
        codes: Integers,
        row_weight: Floats,
        bias_center: Floats,
        ridge: float,
        bias_ridge: float,
        doubt: float,
    ) -> _Problem:
        share = row_weight / row_weight.sum()
        planes = np.array(tensor.T, order="C")
        # What all classes share changes no probability, but costs digits.
        planes -= planes.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.einsum("gcn,gcn,n->g", planes, planes, share) / planes.shape[1])
        unit = 1.0 / np.where(spread > ROUNDING, spread, 1.0)
        planes *= unit[:, None, None]
        # A row of weight 2 is two rows, as in smoothing.
        total = max(float(row_weight.sum()), np.finfo(np.float64).tiny)
        precision = np.concatenate([ridge * unit**2, np.full(tensor.shape[1], bias_ridge)])
        precision = np.minimum(precision / total, MOST_PRECISION)
        return cls(planes, codes, share, unit, precision, np.concatenate([1.0 / unit, bias_center]), doubt)

    def start(self, before: SharedWeights | None) -> Floats:
        if before is None:
            # Weights of 1 may be far too sure of themselves: from there the way would be long.
            start = self.center.copy()
            start[: self.n_weights] = np.minimum(1.0 / self.unit, 2.0 / self.n_weights)
            return start
        weights = np.append(before.weights, np.repeat(before.weights[-1:], self.n_weights))[: self.n_weights]
        return np.concatenate([weights / self.unit, before.bias])

    def split(self, point: Floats) -> tuple[Floats, Floats]:
        """Weights in the units of the features as they came, and biases."""
        return point[: self.n_weights] * self.unit, point[self.n_weights :]

    def at(self, point: Floats) -> _At:
        """Evaluate the objective."""
        scores = (point[: self.n_weights] @ self._flat).reshape(self.planes.shape[1:])
        scores += point[self.n_weights :, None]
        scores -= scores.max(axis=0)
        probability = np.exp(scores)
        total = probability.sum(axis=0)
        log_p = scores - np.log(total)
        np.exp(log_p, out=probability)
        others = probability.copy()
        others[self._own] = 0.0
        wrong = others.sum(axis=0)
        seen = log_p[self._own]
        if self.doubt:
            seen = (1 - self.doubt) * seen + self.doubt * self._log_wrong(log_p, wrong)
        loss = -float(self.share @ seen)
        penalty = 0.5 * float(self.precision @ (point - self.center) ** 2)
        return _At(point, loss + penalty, loss, probability, others, wrong)

    @cached_property
    def _flat(self) -> Floats:
        return self.planes.reshape(len(self.planes), -1)

    @cached_property
    def _own(self) -> tuple[Integers, Integers]:
        """Where the classes are that the rows have."""
        return self.codes, np.arange(len(self.codes))

    @property
    def n_weights(self) -> int:
        """G, the number of weights."""
        return len(self.unit)

    def _log_wrong(self, log_p: Floats, wrong: Floats) -> Floats:
        """The log probability that a row has another class than its own, shape (n,)."""
        # Of a sum of numbers next to the smallest ones few digits are left: those rows stay in logs.
        tiny = np.flatnonzero(wrong < TINY)
        if not len(tiny):
            return np.log(wrong)
        out = np.log(np.maximum(wrong, TINY))
        logs = log_p[:, tiny]
        logs[self.codes[tiny], np.arange(len(tiny))] = -np.inf
        out[tiny] = np.logaddexp.reduce(logs, axis=0)
        return out

    def slope(self, at: _At) -> Floats:
        surplus = at.probability.copy()
        if self.doubt:
            lost = at.wrong == 0
            rival = at.others / np.where(lost, 1.0, at.wrong)
            if lost.any():
                # Where the others' shares of nothing are lost, they are alike.
                rival[:, lost] = 1.0 / (len(surplus) - 1)
            surplus -= self.doubt * rival
            surplus[self._own] = at.probability[self._own] + self.doubt
        surplus[self._own] -= 1.0
        surplus *= self.share
        out = self.precision * (at.point - self.center)
        out[: self.n_weights] += self._flat @ surplus.reshape(-1)
        out[self.n_weights :] += surplus.sum(axis=1)
        return out

    def projected(self, point: Floats) -> Floats:
        np.maximum(point[: self.n_weights], 0.0, out=point[: self.n_weights])
        return point

    def step(self, at: _At, slope: Floats) -> Floats:
        """Newton's step among the parameters that are free: not the weights at 0 that would go below."""
        n, probability = self.n_weights, at.probability
        mass = probability * self.share
        weighted = self.planes * probability
        expected = weighted.sum(axis=1)
        weighted *= self.share
        curvature = np.empty((len(slope), len(slope)))
        curvature[:n, :n] = weighted.reshape(n, -1) @ self._flat.T - (expected * self.share) @ expected.T
        curvature[:n, n:] = weighted.sum(axis=2) - expected @ mass.T
        curvature[n:, :n] = curvature[:n, n:].T
        curvature[n:, n:] = -(mass @ probability.T)
        diagonal = curvature.reshape(-1)[:: len(slope) + 1]
        diagonal[n:] += mass.sum(axis=1)
        diagonal *= 1 + DAMPING
        diagonal += self.precision
        held = (at.point[:n] <= 0) & (slope[:n] > 0)
        if not held.any():
            return np.asarray(-np.linalg.solve(curvature, slope), dtype=np.float64)
        free = np.flatnonzero(np.append(~held, np.ones(len(slope) - n, dtype=np.bool_)))
        out = np.zeros(len(slope))
        out[free] = -np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        return out
