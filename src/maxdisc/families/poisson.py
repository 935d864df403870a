"""The one-moment family on the non-negative integers with the counting base measure 1 / x!."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from maxdisc.families.family import Family
from maxdisc.matrices import Booleans, Floats, Matrix
from maxdisc.smoothing import Smoothing
from maxdisc.support import Support


class Poisson(Family):
    """Minimum divergence from the base measure 1 / x! under a mean; scaled counts are taken too.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Poisson
    >>> Poisson().log_partition(np.log([[3.0]]))
    array([3.])
    """

    name = "poisson"
    support = Support(0.0, lattice=True)
    n_statistics = 1
    neutral = (1.0,)
    smoothings = tuple(Smoothing(a) for a in (0.03, 0.1, 0.3, 1.0))

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        return (X,)

    def natural(self, mean: Floats) -> Floats:
        return np.log(np.maximum(mean, 1e-300))

    def mean(self, natural: Floats) -> Floats:
        return np.exp(natural)

    def log_partition(self, natural: Floats) -> Floats:
        return np.exp(natural[0])

    def log_base(self, x: npt.ArrayLike) -> Floats:
        return np.asarray(-gammaln(np.asarray(x, dtype=np.float64) + 1.0))

    def entropy(self, natural: Floats) -> Floats:
        """By its asymptotic series where that is exact to 1e-13, else by summing the head."""
        rate = np.exp(natural[0])
        r = np.maximum(rate, 100.0)
        series = 0.5 * np.log(2 * np.pi * np.e * r) - 1 / (12 * r) - 1 / (24 * r**2)
        series -= ((863 / 2520 / r + 9 / 80) / r + 19 / 360) / r / r / r
        x = np.arange(300.0)
        small = np.minimum(rate, 100.0)[..., None]
        log_p = x * np.log(small) - small - gammaln(x + 1)
        return np.where(rate > 100.0, series, -(np.exp(log_p) * log_p).sum(axis=-1))

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        rate = np.exp(natural[0])
        # Beyond 1e12 the two cannot be told apart, and numpy's Poisson sampler soon gives up.
        large = np.rint(rng.normal(rate, np.sqrt(rate)))
        return np.where(rate > 1e12, large, rng.poisson(np.minimum(rate, 1e12)))

    def interior(self, mean: Floats) -> Booleans:
        return mean[0] > 0
