"""Few weights that all classes share, and a bias for each class, by Newton's method.

The model is that of :mod:`maxdisc.conditional.model` with features that depend on the class. With dozens of
parameters the matrix of second derivatives is small, and a handful of steps does what gradients take hundreds
for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from maxdisc.conditional.model import log_posterior
from maxdisc.numerics.matrices import Booleans, Floats, Integers

#: A number, or numbers of several problems.
Amount = TypeVar("Amount", float, Floats)

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


def doubt(n_rows: Amount) -> Amount:
    """Return the label noise assumed for ``n_rows`` held-out rows: 1 / (n + 2), Laplace's rule of succession.

    Without it, separable rows would make ever larger scores look better, as Platt noted for two classes.
    """
    return 1 / (n_rows + 2)


@dataclass(frozen=True, eq=False)
class SharedWeights:
    """Weights (G,) of class features, at least 0, and biases (C,) of classes."""

    weights: Floats  # (G,)
    bias: Floats  # (C,)
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
    """Maximise the likelihood of class features (n, C, G), with a ridge towards 1 and given biases."""
    (found,) = shared_weights_of_all(
        tensor[None],
        codes,
        row_weight[None],
        bias_center,
        None,
        ridge,
        bias_ridge,
        start,
        tol,
        np.array([doubt]),
    )
    return found


def shared_weights_of_all(
    tensors: Floats,
    codes: Integers,
    row_weights: Floats,
    bias_center: Floats,
    sizes: Integers | None = None,
    ridge: float = 1.0,
    bias_ridge: float = 0.1,
    start: SharedWeights | None = None,
    tol: float = 1e-12,
    doubts: Floats | float = 0.0,
) -> list[SharedWeights]:
    """Return what :func:`shared_weights` returns for each of B problems of the same rows.

    ``tensors`` has the shape (B, n, C, G) or (1, n, C, G), ``row_weights`` (B, n) or (1, n); a problem takes
    the first ``sizes[b]`` features, or all. They are solved side by side: small problems cost mostly the
    number of calls, whatever B is.
    """
    problem = _Problems.of(
        tensors, codes, row_weights, bias_center, sizes, ridge, bias_ridge, np.atleast_1d(doubts)
    )
    at, center = problem.at(problem.start(start)), problem.at(problem.center)
    # Never worse than weights of 1, however far from there a row of its own asks the others to begin.
    if (center.value < at.value).any():
        at = problem.at(np.where((center.value < at.value)[:, None], center.point, at.point))
    done = np.zeros(len(at.point), dtype=np.bool_)
    for _ in range(MOST_STEPS):
        slope = problem.slope(at)
        step = problem.step(at, slope)
        step[done] = 0.0
        promised = (slope * step).sum(axis=1)
        # Newton's last step has more digits than the objective, which could not tell whether it gains.
        settled = done | (-promised <= tol)
        share = np.ones(len(done))
        for _ in range(MOST_HALVINGS):
            there = problem.at(problem.projected(at.point + share[:, None] * step))
            worse = ~settled & ~(there.value <= at.value + ENOUGH_GAIN * share * promised)
            if not worse.any():
                break
            share[worse] /= 2
        else:
            # No better point exists in double precision.
            there = problem.at(np.where(worse[:, None], at.point, there.point))
            settled |= worse
        at, done = there, settled
        if done.all():
            break
    return problem.found(at, done)


class _At(NamedTuple):
    """Points of all problems, and what the objectives and their derivatives are made of there."""

    point: Floats
    #: The objectives, and the mean log-losses without the ridge, shape (B,).
    value: Floats
    loss: Floats
    #: Probabilities of all classes, (B, C, n); the same, 0 for each row's own class, and their sums (B, n).
    probability: Floats
    others: Floats
    wrong: Floats


@dataclass(frozen=True, eq=False)
class _Problems:
    """Minus the mean log-likelihoods plus the ridges; weights are counted in units of their features' spread.

    Rows come last, ``planes`` of shape (B, G, C, n) or (1, G, C, n): what is done for all of them is then a
    product of matrices with a short side, or a loop over what lies side by side.
    """

    planes: Floats
    codes: Integers
    share: Floats
    #: Shape (B, G); 0 for features that a problem does not have.
    unit: Floats
    precision: Floats
    center: Floats
    doubt: Floats

    @classmethod
    def of(
        cls,
        tensors: Floats,
        codes: Integers,
        row_weights: Floats,
        bias_center: Floats,
        sizes: Integers | None,
        ridge: float,
        bias_ridge: float,
        doubts: Floats,
    ) -> _Problems:
        n_weights = tensors.shape[3]
        count = max(len(tensors), len(row_weights), 1 if sizes is None else len(sizes))
        total = row_weights.sum(axis=1, keepdims=True)
        share = np.broadcast_to(row_weights / total, (count, len(codes)))
        planes = np.array(tensors.transpose(0, 3, 2, 1), order="C")
        # What all classes share changes no probability, but costs digits.
        planes -= planes.mean(axis=2, keepdims=True)
        squares = np.einsum("bgcn,bgcn->bgn", planes, planes) / planes.shape[2]
        spread = np.sqrt((squares @ share[:, :, None])[:, :, 0])
        unit = 1.0 / np.where(spread > ROUNDING, spread, 1.0)
        # A row of weight 2 is two rows, as in smoothing.
        rows = np.maximum(total, np.finfo(np.float64).tiny)
        biases = np.full((count, planes.shape[2]), bias_ridge)
        precision = np.minimum(np.concatenate([ridge * unit**2, biases], axis=1) / rows, MOST_PRECISION)
        center = np.concatenate([1.0 / unit, np.broadcast_to(bias_center, biases.shape)], axis=1)
        if sizes is not None:
            absent = np.arange(n_weights) >= sizes[:, None]
            unit[absent], center[:, :n_weights][absent] = 0.0, 0.0
        return cls(planes, codes, share, unit, precision, center, np.broadcast_to(doubts, count))

    def start(self, before: SharedWeights | None) -> Floats:
        n = self.n_weights
        start, is_there = self.center.copy(), self.unit > 0
        if before is None:
            # Weights of 1 may be far too sure of themselves: from there the way would be long.
            start[:, :n] = np.minimum(start[:, :n], 2.0 / is_there.sum(axis=1, keepdims=True))
            return start
        weights = np.append(before.weights, np.repeat(before.weights[-1:], n))[:n]
        start[:, :n] = np.divide(weights, self.unit, out=np.zeros(self.unit.shape), where=is_there)
        start[:, n:] = before.bias
        return start

    def found(self, at: _At, converged: Booleans) -> list[SharedWeights]:
        """Weights in the units of the features as they came, and biases."""
        n, sizes = self.n_weights, (self.unit > 0).sum(axis=1)
        return [
            SharedWeights(point[:n][:size] * unit[:size], point[n:], float(loss), bool(is_done))
            for point, unit, size, loss, is_done in zip(
                at.point, self.unit, sizes, at.loss, converged, strict=True
            )
        ]

    @property
    def n_weights(self) -> int:
        """G, the number of weights."""
        return self.planes.shape[1]

    @cached_property
    def _flat(self) -> Floats:
        return self.planes.reshape(*self.planes.shape[:2], -1)

    @cached_property
    def _own(self) -> tuple[slice, Integers, Integers]:
        """Where the classes are that the rows have."""
        return slice(None), self.codes, np.arange(len(self.codes))

    def at(self, point: Floats) -> _At:
        """Evaluate the objectives."""
        n = self.n_weights
        scores = (point[:, None, :n] * self.unit[:, None]) @ self._flat
        scores = scores.reshape(len(point), -1, len(self.codes))
        scores += point[:, n:, None]
        scores -= scores.max(axis=1, keepdims=True)
        probability = np.exp(scores)
        log_p = scores
        log_p -= np.log(probability.sum(axis=1, keepdims=True))
        np.exp(log_p, out=probability)
        others = probability.copy()
        others[self._own] = 0.0
        wrong = others.sum(axis=1)
        seen = log_p[self._own]
        if self.doubt.any():
            doubt = self.doubt[:, None]
            seen = (1 - doubt) * seen + doubt * self._log_wrong(log_p, wrong)
        loss = -(self.share * seen).sum(axis=1)
        penalty = 0.5 * (self.precision * (point - self.center) ** 2).sum(axis=1)
        return _At(point, loss + penalty, loss, probability, others, wrong)

    def _log_wrong(self, log_p: Floats, wrong: Floats) -> Floats:
        """The log probability that a row has another class than its own, shape (B, n)."""
        # Of a sum of numbers next to the smallest ones few digits are left: those rows stay in logs.
        tiny = wrong < TINY
        if not tiny.any():
            return np.log(wrong)
        out = np.log(np.maximum(wrong, TINY))
        problems, rows = np.nonzero(tiny)
        logs = log_p[problems, :, rows]
        logs[np.arange(len(rows)), self.codes[rows]] = -np.inf
        out[tiny] = np.logaddexp.reduce(logs, axis=1)
        return out

    def slope(self, at: _At) -> Floats:
        """First derivatives, shape (B, G + C)."""
        n, surplus = self.n_weights, at.probability.copy()
        if self.doubt.any():
            lost = at.wrong == 0
            rival = at.others / np.where(lost, 1.0, at.wrong)[:, None]
            if lost.any():
                # Where the others' shares of nothing are lost, they are alike.
                rival = np.where(lost[:, None], 1.0 / (surplus.shape[1] - 1), rival)
            surplus -= self.doubt[:, None, None] * rival
            surplus[self._own] = at.probability[self._own] + self.doubt[:, None]
        surplus[self._own] -= 1.0
        surplus *= self.share[:, None]
        out = self.precision * (at.point - self.center)
        out[:, :n] += self.unit * (self._flat @ surplus.reshape(len(surplus), -1, 1))[:, :, 0]
        out[:, n:] += surplus.sum(axis=2)
        return out

    def projected(self, point: Floats) -> Floats:
        """The nearest point with weights of at least 0; in place."""
        np.maximum(point[:, : self.n_weights], 0.0, out=point[:, : self.n_weights])
        return point

    def step(self, at: _At, slope: Floats) -> Floats:
        """Newton's steps among the parameters that are free: not the weights at 0 that would go below."""
        n, probability, share = self.n_weights, at.probability, self.share[:, None]
        mass = probability * share
        weighted = self.planes * probability[:, None]
        expected = weighted.sum(axis=2)
        weighted *= share[:, None]
        curvature = np.empty((*slope.shape, slope.shape[1]))
        curvature[:, :n, :n] = weighted.reshape(*expected.shape[:2], -1) @ self._flat.swapaxes(1, 2)
        curvature[:, :n, :n] -= (expected * share) @ expected.swapaxes(1, 2)
        curvature[:, :n, n:] = weighted.sum(axis=3) - expected @ mass.swapaxes(1, 2)
        curvature[:, :n] *= self.unit[:, :, None]
        curvature[:, :n, :n] *= self.unit[:, None]
        curvature[:, n:, :n] = curvature[:, :n, n:].swapaxes(1, 2)
        curvature[:, n:, n:] = -(mass @ probability.swapaxes(1, 2))
        diagonal = curvature.reshape(len(slope), -1)[:, :: slope.shape[1] + 1]
        diagonal[:, n:] += mass.sum(axis=2)
        diagonal *= 1 + DAMPING
        diagonal += self.precision
        held = (at.point[:, :n] <= 0) & (slope[:, :n] > 0)
        if held.any():
            problems, weights = np.nonzero(held)
            curvature[problems, weights] = 0.0
            curvature[problems, :, weights] = 0.0
            curvature[problems, weights, weights] = 1.0
            slope = slope.copy()
            slope[problems, weights] = 0.0
        return np.asarray(-np.linalg.solve(curvature, slope[:, :, None])[:, :, 0], dtype=np.float64)
