"""The two-moment family on the line: the paper's model of gene expression."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxdisc.families.family import Family
from maxdisc.families.support import Support
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Matrix, with_data


class Gaussian(Family):
    """Maximum entropy on the line under a mean and a mean square.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Gaussian
    >>> Gaussian().natural(np.array([1.0, 5.0])[:, None])  # mean 1, variance 4
    array([[ 0.25 ],
           [-0.125]])
    """

    name = "gaussian"
    support = Support()
    n_statistics = 2
    translates = True
    neutral = (0.0, 1.0)
    largest = 1e140
    smoothings = tuple(Smoothing(a) for a in (0.1, 1.0, 10.0, 100.0))

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        return X, X * X if isinstance(X, np.ndarray) else with_data(X, X.data * X.data)

    def natural(self, mean: Floats) -> Floats:
        variance = np.maximum(mean[1] - mean[0] ** 2, 1e-300)
        return np.stack([mean[0] / variance, -0.5 / variance])

    def mean(self, natural: Floats) -> Floats:
        variance = -0.5 / natural[1]
        center = natural[0] * variance
        return np.stack([center, variance + center**2])

    def log_partition(self, natural: Floats) -> Floats:
        return -(natural[0] ** 2) / (4 * natural[1]) + 0.5 * np.log(-np.pi / natural[1])

    def log_density(self, x: npt.ArrayLike, natural: Floats) -> Floats:
        """In terms of x - mean, which does not cancel where the mean is many deviations away from 0."""
        deviation = np.asarray(x, dtype=np.float64) + natural[0] / (2 * natural[1])
        return natural[1] * deviation**2 + 0.5 * np.log(-natural[1] / np.pi)

    def log_density_at(self, place: Floats, natural: Floats, _known: Floats | None = None, /) -> Floats:
        return self.log_density(place, natural)

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        return -natural[0] / (2 * natural[1]), np.sqrt(-0.5 / natural[1])

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        variance = -0.5 / natural[1]
        return rng.normal(natural[0] * variance, np.sqrt(variance))

    def interior(self, mean: Floats) -> Booleans:
        return mean[1] > mean[0] ** 2
