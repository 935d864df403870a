"""The family of proportions under the means of log x and log(1 - x)."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma, polygamma

from maxdisc.families.family import Family
from maxdisc.families.gamma import log_peak
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Matrix, with_data


class Beta(Family):
    """Maximum entropy on (0, 1) under the means of log x and log(1 - x).

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Beta
    >>> Beta().log_partition(np.zeros((2, 1)))  # uniform
    array([0.])
    """

    name = "beta"
    support = Support(0.0, 1.0, open_low=True, open_high=True)
    n_statistics = 2
    preserves_zero = False
    iterative = True
    neutral = (-1.0, -1.0)

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        if isinstance(X, np.ndarray):
            return np.log(X), np.log1p(-X)
        return with_data(X, np.log(X.data)), with_data(X, np.log1p(-X.data))

    def natural(self, mean: Floats) -> Floats:
        """Newton's method for the convex dual, in the logs of the two shapes, with damped steps."""
        shapes = np.log(_first_guess(mean))
        for _ in range(60):
            shapes = shapes - np.clip(_newton_step(np.exp(shapes), mean), -1.0, 1.0)
        return np.exp(shapes) - 1.0

    def mean(self, natural: Floats) -> Floats:
        shapes = natural + 1.0
        return np.asarray(digamma(shapes) - digamma(shapes.sum(axis=0)))

    def log_partition(self, natural: Floats) -> Floats:
        return np.asarray(betaln(natural[0] + 1.0, natural[1] + 1.0))

    def log_density_at(self, place: Floats, natural: Floats, _known: Floats | None = None, /) -> Floats:
        """In terms of the distance from the peak, where nothing cancels and no x is too near to 1."""
        low, high = natural + 1.0
        # The share of the smaller shape keeps its digits; the other's may be too near to 1.
        away = np.where(low <= high, 1.0, -1.0) * (place - np.log(low / high))
        least, total = np.minimum(low, high), low + high
        near = np.minimum(away, 700.0)
        falls = least * away - total * (np.log1p(least / total * np.expm1(near)) + (away - near))
        return np.asarray(falls + log_peak(low) + log_peak(high) - log_peak(total))

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        low, high = natural + 1.0
        # A shape below 1 has a long slope; what needs nodes is the bend at its end.
        bend = np.log(np.maximum(low, 1.0) / np.maximum(high, 1.0))
        return bend, np.sqrt(np.minimum(1.0 / low + 1.0 / high, 1.0))

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        draws = rng.beta(natural[0] + 1.0, natural[1] + 1.0)
        return np.clip(draws, np.finfo(np.float64).tiny, 1 - 2.0**-53)

    def solved(self, natural: Floats, mean: Floats) -> Booleans:
        # Means near their boundary say all they have to say by how near they are.
        found = self.mean(natural)
        near = np.abs(_slack(found) - _slack(mean)) <= 1e-3 * _slack(mean)
        return near & super().solved(natural, mean)

    def interior(self, mean: Floats) -> Booleans:
        return _slack(mean) > 1e-13 * np.exp(mean.min(axis=0))

    def point(self, mean: Floats) -> Floats:
        return np.exp(mean[0])


def _slack(mean: Floats) -> Floats:
    """1 minus the sum of the geometric means of x and 1 - x: 0 for a constant, else positive."""
    return np.asarray(-np.expm1(mean.max(axis=0)) - np.exp(mean.min(axis=0)))


def _first_guess(mean: Floats) -> Floats:
    return 0.5 + np.exp(mean) / (2 * np.maximum(_slack(mean), 1e-13 * np.exp(mean.min(axis=0))))


def _newton_step(shapes: Floats, mean: Floats) -> Floats:
    """Step in log-shapes for the two equations digamma(shape) - digamma(total) = mean."""
    total = shapes.sum(axis=0)
    error = digamma(shapes) - digamma(total) - mean
    own, shared = polygamma(1, shapes), polygamma(1, total)
    # The Jacobian in the shapes is diag(own) - shared: inverted by the Sherman-Morrison formula.
    inverse = error / own
    remainder = np.maximum(1.0 - shared * (1.0 / own).sum(axis=0), np.finfo(np.float64).eps)
    correction = shared * inverse.sum(axis=0) / remainder
    return np.asarray((inverse + correction / own) / shapes)
