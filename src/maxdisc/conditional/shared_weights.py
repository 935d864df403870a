"""Few weights that all classes share, and a bias for each class, by Newton's method.

The model is that of :mod:`maxdisc.conditional.model` with features that depend on the class. With dozens of
parameters the matrix of second derivatives is small, and a handful of steps does what gradients take hundreds
for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from maxdisc.conditional.model import log_posterior
from maxdisc.numerics.matrices import Booleans, Floats, Integers, blocks

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
#: With more classes than this, a problem alone is solved a few rows at a time, by conjugate gradients: the
#: matrix of second derivatives takes the square of the classes for each row, and memory is gone through once.
MANY_CLASSES = 128
#: Then what the next step promises may be this much, in nats for each row.
MANY_CLASSES_TOLERANCE = 1e-8
#: So many numbers of the features are worked on at a time; they should stay in the cache.
NUMBERS_AT_A_TIME = 2**16
#: Conjugate gradients stop at this share of the first error, or after so many steps.
ENOUGH_ERROR = 1e-3
MOST_CONJUGATE_STEPS = 50


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
    count = max(len(tensors), len(row_weights), 1 if sizes is None else len(sizes))
    kind: type[_Problems] = _Problems
    if count == 1 and sizes is None and tensors.shape[2] > MANY_CLASSES:
        kind, tol = _ManyClasses, max(tol, MANY_CLASSES_TOLERANCE)
    problem = kind.of(
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
    #: Probabilities of all classes, (B, C, n), and their sums over those that the rows do not have, (B, n).
    probability: Floats
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
        n_classes, n_weights = tensors.shape[2:]
        count = max(len(tensors), len(row_weights), 1 if sizes is None else len(sizes))
        total = row_weights.sum(axis=1, keepdims=True)
        share = np.broadcast_to(row_weights / total, (count, len(codes)))
        planes, squares = cls.arranged(tensors)
        spread = np.sqrt((squares @ share[:, :, None])[:, :, 0])
        unit = 1.0 / np.where(spread > ROUNDING, spread, 1.0)
        # A row of weight 2 is two rows, as in smoothing.
        rows = np.maximum(total, np.finfo(np.float64).tiny)
        biases = np.full((count, n_classes), bias_ridge)
        precision = np.minimum(np.concatenate([ridge * unit**2, biases], axis=1) / rows, MOST_PRECISION)
        center = np.concatenate([1.0 / unit, np.broadcast_to(bias_center, biases.shape)], axis=1)
        if sizes is not None:
            absent = np.arange(n_weights) >= sizes[:, None]
            unit[absent], center[:, :n_weights][absent] = 0.0, 0.0
        return cls(planes, codes, share, unit, precision, center, np.broadcast_to(doubts, count))

    @staticmethod
    def arranged(tensors: Floats) -> tuple[Floats, Floats]:
        """The planes, and mean squares (B, G, n) over classes of what these do not share."""
        planes = np.array(tensors.transpose(0, 3, 2, 1), order="C")
        # What all classes share changes no probability, but costs digits.
        planes -= planes.mean(axis=2, keepdims=True)
        return planes, np.einsum("bgcn,bgcn->bgn", planes, planes) / planes.shape[2]

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
        own = probability[self._own]
        probability[self._own] = 0.0
        wrong = probability.sum(axis=1)
        probability[self._own] = own
        seen = log_p[self._own]
        if self.doubt.any():
            doubt = self.doubt[:, None]
            seen = (1 - doubt) * seen + doubt * _log_wrong(log_p, wrong, self.codes)
        return self._evaluated(point, seen, probability, wrong)

    def _evaluated(self, point: Floats, seen: Floats, probability: Floats, wrong: Floats) -> _At:
        loss = -(self.share * seen).sum(axis=1)
        penalty = 0.5 * (self.precision * (point - self.center) ** 2).sum(axis=1)
        return _At(point, loss + penalty, loss, probability, wrong)

    def slope(self, at: _At) -> Floats:
        """First derivatives, shape (B, G + C)."""
        n, surplus = self.n_weights, at.probability.copy()
        if self.doubt.any():
            lost, rival = at.wrong == 0, at.probability.copy()
            rival[self._own] = 0.0
            rival /= np.where(lost, 1.0, at.wrong)[:, None]
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


def _log_wrong(log_p: Floats, wrong: Floats, codes: Integers) -> Floats:
    """The log probability that a row has another class than its own, shape (B, n)."""
    # Of a sum of numbers next to the smallest ones few digits are left: those rows stay in logs.
    tiny = wrong < TINY
    if not tiny.any():
        return np.log(wrong)
    out = np.log(np.maximum(wrong, TINY))
    problems, rows = np.nonzero(tiny)
    logs = log_p[problems, :, rows]
    logs[np.arange(len(rows)), codes[rows]] = -np.inf
    out[tiny] = np.logaddexp.reduce(logs, axis=1)
    return out


class _ManyClasses(_Problems):
    """One problem of many classes: ``planes`` (n, G, C), a few rows at a time while they are in the cache.

    Newton's steps are found by conjugate gradients, for which second derivatives by the biases are two
    products with the probabilities.
    """

    @staticmethod
    def arranged(tensors: Floats) -> tuple[Floats, Floats]:
        n_rows, n_classes, n_weights = tensors.shape[1:]
        planes, squares = np.empty((n_rows, n_weights, n_classes)), np.empty((n_rows, n_weights))
        for some in _rows_at_a_time(planes):
            planes[some] = tensors[0, some].transpose(0, 2, 1)
            planes[some] -= planes[some].mean(axis=2, keepdims=True)
            squares[some] = np.einsum("ngc,ngc->ng", planes[some], planes[some]) / n_classes
        return planes, squares.T[None]

    def at(self, point: Floats) -> _At:
        weights, bias = point[0, : self.n_weights] * self.unit[0], point[0, self.n_weights :]
        probability = np.empty((len(self.codes), len(bias)))
        seen, wrong = np.empty((2, 1, len(self.codes)))
        for some in _rows_at_a_time(self.planes):
            p, codes = probability[some], self.codes[some]
            own = (np.arange(len(codes)), codes)
            log_p = weights @ self.planes[some] + bias
            log_p -= log_p.max(axis=1, keepdims=True)
            np.exp(log_p, out=p)
            log_p -= np.log(p.sum(axis=1, keepdims=True))
            np.exp(log_p, out=p)
            kept = p[own]
            p[own] = 0.0
            wrong[0, some] = p.sum(axis=1)
            p[own] = kept
            seen[0, some] = log_p[own]
            if self.doubt.any():
                seen[0, some] *= 1 - self.doubt
                seen[0, some] += self.doubt * _log_wrong(log_p.T[None], wrong[:, some], codes)[0]
        return self._evaluated(point, seen, probability, wrong)

    def slope(self, at: _At) -> Floats:
        n, out = self.n_weights, self.precision * (at.point - self.center)
        for some in _rows_at_a_time(self.planes):
            surplus, codes = at.probability[some].copy(), self.codes[some]
            own = (np.arange(len(codes)), codes)
            kept = surplus[own] + self.doubt - 1.0
            surplus[own] = 0.0
            if self.doubt.any():
                wrong = at.wrong[0, some, None]
                # Where the others' shares of nothing are lost, they are alike.
                alike = np.full_like(surplus, 1.0 / (surplus.shape[1] - 1))
                surplus -= self.doubt * np.divide(surplus, wrong, out=alike, where=wrong > 0)
            surplus[own] = kept
            surplus *= self.share[0, some, None]
            out[0, :n] += self.unit[0] * (self.planes[some] @ surplus[:, :, None])[:, :, 0].sum(axis=0)
            out[0, n:] += surplus.sum(axis=0)
        return out

    def step(self, at: _At, slope: Floats) -> Floats:
        n, share, probability, unit = self.n_weights, self.share[0], at.probability, self.unit[0]
        within, cross = np.zeros((n, n)), np.zeros((n, probability.shape[1]))
        for some in _rows_at_a_time(self.planes):
            planes, p, weight = self.planes[some], probability[some], share[some]
            weighted = planes * p[:, None]
            expected = weighted.sum(axis=2)
            within += np.tensordot(weight, weighted @ planes.swapaxes(1, 2), 1)
            within -= (expected * weight[:, None]).T @ expected
            cross += (weight @ weighted.reshape(len(p), -1)).reshape(cross.shape)
            cross -= (expected * weight[:, None]).T @ p
        mass = share @ probability
        diagonal = mass - share @ probability**2
        free = np.where((at.point[0, :n] <= 0) & (slope[0, :n] > 0), 0.0, 1.0)
        within *= np.outer(unit * free, unit * free)
        within[np.diag_indices(n)] *= 1 + DAMPING
        within[np.diag_indices(n)] += np.where(free, self.precision[0, :n], 1.0)
        cross *= (unit * free)[:, None]
        ridge = self.precision[0, n:]

        def product(vector: Floats) -> Floats:
            bias = vector[n:]
            out = cross.T @ vector[:n] + (mass + DAMPING * diagonal + ridge) * bias
            for some in _rows_at_a_time(probability):
                out -= (share[some] * (probability[some] @ bias)) @ probability[some]
            return np.concatenate([within @ vector[:n] + cross @ bias, out])

        # Twice the diagonal is more than the derivatives by the biases, so that the rest stays positive.
        bound = 2 * diagonal + ridge
        inner = np.linalg.inv(within - (cross / bound) @ cross.T)

        def preconditioned(vector: Floats) -> Floats:
            weights = inner @ (vector[:n] - cross @ (vector[n:] / bound))
            return np.concatenate([weights, (vector[n:] - cross.T @ weights) / bound])

        wanted = -np.concatenate([slope[0, :n] * free, slope[0, n:]])
        return _conjugate_gradients(product, preconditioned, wanted)[None]


def _rows_at_a_time(numbers: Floats) -> list[slice]:
    """Ranges of rows of an array (n, ...)."""
    return list(blocks(len(numbers), int(np.prod(numbers.shape[1:])), NUMBERS_AT_A_TIME))


def _conjugate_gradients(
    product: Callable[[Floats], Floats], preconditioned: Callable[[Floats], Floats], wanted: Floats
) -> Floats:
    """Solve a positive definite system to :data:`ENOUGH_ERROR`; any number of steps leads downhill."""
    out, left = np.zeros_like(wanted), wanted
    ahead = preconditioned(left)
    direction, error = ahead, float(left @ ahead)
    enough = ENOUGH_ERROR**2 * error
    for _ in range(MOST_CONJUGATE_STEPS):
        if error <= enough:
            break
        image = product(direction)
        length = error / float(direction @ image)
        out = out + length * direction
        left = left - length * image
        ahead = preconditioned(left)
        before, error = error, float(left @ ahead)
        direction = ahead + error / before * direction
    return out
