"""Few weights that all classes share, and a bias for each class, by Newton's method.

The model is that of :mod:`maxdisc.conditional` with features that depend on the class. With some dozens of
parameters the matrix of second derivatives is small, and a handful of steps does what gradients take hundreds
for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxdisc.conditional import log_posterior
from maxdisc.matrices import Booleans, Floats, Integers

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
    begins = [(*problem.value(begin), begin) for begin in (problem.start(start), problem.center)]
    value, probability, point = min(begins, key=lambda begin: begin[0])
    converged = False
    for _ in range(MOST_STEPS):
        slope = problem.slope(point, probability)
        held = problem.held(point, slope)
        step = problem.step(probability, slope, held)
        promised = float(slope @ step)
        if -promised <= tol:
            # Newton's last step has more digits than the objective, which could not tell whether it gains.
            point, converged = problem.projected(point + step), True
            break
        for halving in range(MOST_HALVINGS):
            share = 0.5**halving
            there = problem.projected(point + share * step)
            after, probability_there = problem.value(there)
            if after <= value + ENOUGH_GAIN * share * promised:
                break
        else:
            # No better point exists in double precision.
            converged = True
            break
        point, value, probability = there, after, probability_there
    weights, bias = problem.split(point)
    log_p = problem.log_posterior(point)
    loss = problem.loss(log_p, np.exp(log_p))
    return SharedWeights(weights, bias, loss, converged)


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
        precision = np.r_[ridge * unit**2, np.full(tensor.shape[1], bias_ridge)]
        precision = np.minimum(precision / total, MOST_PRECISION)
        return cls(planes, codes, share, unit, precision, np.r_[1.0 / unit, bias_center], doubt)

    def start(self, before: SharedWeights | None) -> Floats:
        if before is None:
            # Weights of 1 may be far too sure of themselves: from there the way would be long.
            bias = self.center[len(self.unit) :]
            return np.r_[np.minimum(1.0 / self.unit, 2.0 / len(self.unit)), bias]
        weights = np.append(before.weights, np.repeat(before.weights[-1:], len(self.unit)))[: len(self.unit)]
        return np.r_[weights / self.unit, before.bias]

    def split(self, point: Floats) -> tuple[Floats, Floats]:
        """Weights in the units of the features as they came, and biases."""
        return point[: len(self.unit)] * self.unit, point[len(self.unit) :]

    def value(self, point: Floats) -> tuple[float, Floats]:
        """The objective, and the probabilities of all classes, shape (C, n)."""
        log_p = self.log_posterior(point)
        probability = np.exp(log_p)
        penalty = 0.5 * float(self.precision @ (point - self.center) ** 2)
        return self.loss(log_p, probability) + penalty, probability

    def log_posterior(self, point: Floats) -> Floats:
        """Log probabilities, shape (C, n)."""
        n_weights = len(self.unit)
        scores = (point[:n_weights] @ self._flat).reshape(self.planes.shape[1:])
        scores += point[n_weights:, None]
        scores -= scores.max(axis=0)
        scores -= np.log(np.exp(scores).sum(axis=0))
        return scores

    @property
    def _flat(self) -> Floats:
        return self.planes.reshape(len(self.planes), -1)

    @property
    def _own(self) -> tuple[Integers, Integers]:
        """Where the classes are that the rows have."""
        return self.codes, np.arange(len(self.codes))

    def loss(self, log_p: Floats, probability: Floats) -> float:
        """The mean log-loss, with doubt."""
        seen = log_p[self._own]
        if self.doubt:
            seen = (1 - self.doubt) * seen + self.doubt * self._wrong(log_p, probability)
        return -float(self.share @ seen)

    def _wrong(self, log_p: Floats, probability: Floats) -> Floats:
        """The log probability that a row has another class than its own, shape (n,)."""
        others = probability.copy()
        others[self._own] = 0.0
        wrong = others.sum(axis=0)
        # Of a sum of numbers next to the smallest ones few digits are left: those rows stay in logs.
        tiny = np.flatnonzero(wrong < TINY)
        with np.errstate(divide="ignore"):
            out = np.log(wrong)
        if len(tiny):
            logs = log_p[:, tiny]
            logs[self.codes[tiny], np.arange(len(tiny))] = -np.inf
            out[tiny] = np.logaddexp.reduce(logs, axis=0)
        return np.asarray(out)

    def slope(self, point: Floats, probability: Floats) -> Floats:
        surplus = probability.copy()
        if self.doubt:
            surplus[self._own] = 0.0
            wrong = surplus.sum(axis=0)
            lost = wrong == 0
            rival = surplus / np.where(lost, 1.0, wrong)
            # Where the others' shares of nothing are lost, they are alike.
            rival[:, lost] = 1.0 / (len(surplus) - 1)
            surplus = probability - self.doubt * rival
            surplus[self._own] = probability[self._own] + self.doubt
        surplus[self._own] -= 1.0
        surplus *= self.share
        of_weights = self._flat @ surplus.reshape(-1)
        return np.r_[of_weights, surplus.sum(axis=1)] + self.precision * (point - self.center)

    def held(self, point: Floats, slope: Floats) -> Booleans:
        """Which weights lie at 0 and would go below."""
        return (np.arange(len(point)) < len(self.unit)) & (point <= 0) & (slope > 0)

    def projected(self, point: Floats) -> Floats:
        n_weights = len(self.unit)
        return np.r_[np.maximum(point[:n_weights], 0.0), point[n_weights:]]

    def step(self, probability: Floats, slope: Floats, held: Booleans) -> Floats:
        """Newton's step among the parameters that are free."""
        mass = probability * self.share
        weighted = self.planes * probability
        expected = weighted.sum(axis=1)
        weighted *= self.share
        of_weights = weighted.reshape(len(weighted), -1) @ self._flat.T - (expected * self.share) @ expected.T
        crossed = weighted.sum(axis=2) - expected @ mass.T
        of_biases = np.diag(mass.sum(axis=1)) - mass @ probability.T
        curvature = np.block([[of_weights, crossed], [crossed.T, of_biases]])
        diagonal = np.diag_indices_from(curvature)
        curvature[diagonal] = (1 + DAMPING) * curvature[diagonal] + self.precision
        free = np.flatnonzero(~held)
        out = np.zeros(len(slope))
        out[free] = -np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        return out
