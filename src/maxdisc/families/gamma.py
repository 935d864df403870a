"""The family of positive numbers under a mean and a mean log."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, polygamma, xlogy

from maxdisc.families.family import Family
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Matrix, with_data


class Gamma(Family):
    """Maximum entropy on (0, inf) under a mean and a mean log.

    A spread of less than a millionth of the mean cannot be distinguished from none.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Gamma
    >>> Gamma().mean(np.array([-2.0, 2.0])[:, None])[0]  # shape 3, rate 2
    array([1.5])
    """

    name = "gamma"
    support = Support(0.0, open_low=True)
    n_statistics = 2
    preserves_zero = False
    iterative = True
    neutral = (1.0, -np.euler_gamma)

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        return X, np.log(X) if isinstance(X, np.ndarray) else with_data(X, np.log(X.data))

    def natural(self, mean: Floats) -> Floats:
        shape = _shape_of_gap(np.log(mean[0]) - mean[1])
        return np.stack([-shape / mean[0], shape - 1.0])

    def mean(self, natural: Floats) -> Floats:
        rate, shape = -natural[0], natural[1] + 1.0
        return np.stack([shape / rate, np.log(shape / rate) - _gap(shape)])

    def log_partition(self, natural: Floats) -> Floats:
        rate, shape = -natural[0], natural[1] + 1.0
        return np.asarray(gammaln(shape) - shape * np.log(rate))

    def log_density_at(self, place: Floats, natural: Floats, _known: Floats | None = None, /) -> Floats:
        """In terms of the distance from the peak, where nothing cancels, however small x."""
        shape = natural[1] + 1.0
        away = place - np.log(shape / -natural[0])
        return np.asarray(shape * (away - np.expm1(away)) + log_peak(shape))

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        rate, shape = -natural[0], natural[1] + 1.0
        # A shape below 1 has a long slope towards 0; what needs nodes is the bend at its end.
        shape = np.maximum(shape, 1.0)
        return np.log(shape / rate), 1.0 / np.sqrt(shape)

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        return np.maximum(rng.gamma(natural[1] + 1.0, -1.0 / natural[0]), np.finfo(np.float64).tiny)

    def solved(self, natural: Floats, mean: Floats) -> Booleans:
        gap = np.log(mean[0]) - mean[1]
        return np.abs(_gap(natural[1] + 1.0) - gap) <= 1e-6 * gap

    def interior(self, mean: Floats) -> Booleans:
        positive = mean[0] > 0
        gap = np.log(np.where(positive, mean[0], 1.0)) - mean[1]
        # Rounding leaves a gap of a few ulps where all values are equal.
        return positive & (gap > 1e-13 * (1.0 + np.abs(mean[1])))


def log_peak(shape: Floats) -> Floats:
    """``shape * log(shape) - shape - gammaln(shape)``, without cancellation."""
    large = np.maximum(shape, 20.0)
    r = 1.0 / large**2
    series = 0.5 * np.log(large / (2 * np.pi)) - (1 - r * (1 / 30 - r * (1 / 105 - r / 140))) / (12 * large)
    small = np.minimum(shape, 20.0)
    return np.where(shape > 20.0, series, xlogy(small, small) - small - gammaln(small))


def _gap(shape: Floats) -> Floats:
    """``log(shape) - digamma(shape)``, which is log E x - E log x, without cancellation."""
    large = np.maximum(shape, 20.0)
    r = 1.0 / large**2
    series = 0.5 / large + r / 12 * (1 - r / 10 * (1 - r * 10 / 21 * (1 - r * 21 / 20)))
    return np.where(shape > 20.0, series, np.log(shape) - digamma(np.minimum(shape, 20.0)))


def _gap_slope(shape: Floats) -> Floats:
    large = np.maximum(shape, 20.0)
    series = -0.5 / large**2 - 1 / (6 * large**3) + 1 / (30 * large**5)
    return np.where(shape > 20.0, series, 1 / shape - polygamma(1, np.minimum(shape, 20.0)))


def _shape_of_gap(gap: Floats) -> Floats:
    """Return the inverse of :func:`_gap`: Newton in log-log coordinates, where the curve is nearly a line."""
    gap = np.maximum(gap, 1e-13)
    shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
    for _ in range(12):
        value = _gap(shape)
        step = np.log(value / gap) * value / (shape * _gap_slope(shape))
        shape = shape * np.exp(-np.clip(step, -3.0, 3.0))
    return shape
