"""The one-moment family on the non-negative integers with the counting base measure 1 / x!."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlog1py

from maxdisc.families.family import Family
from maxdisc.families.support import Support
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Matrix

# From here on Stirling's series is exact to 1e-16.
LARGE = 1000.0


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

    def log_density_at(self, place: Floats, natural: Floats, _known: Floats | None = None, /) -> Floats:
        """In terms of x / mean - 1 where means are large: log probabilities then cancel no more."""
        mean = np.exp(natural[0])
        if mean.max(initial=0.0) < LARGE:
            return self.log_density(place, natural)
        x = np.maximum(place, 1.0)
        excess = (x - mean) / mean
        # Spread thinner than 1e-10 of its mean, a density would fall between the numbers.
        rate = np.minimum(mean, 1e20)
        stirling = 1 / (12 * x) * (1 - 1 / (30 * x * x))
        around = -rate * (xlog1py(1 + excess, excess) - excess)
        large = around - stirling - 0.5 * np.log(2 * np.pi * x * (mean / rate))
        return np.where(
            np.maximum(mean, x) < LARGE, self.log_density(np.minimum(place, LARGE), natural), large
        )

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        mean = np.exp(natural[0])
        return mean, np.maximum(np.sqrt(mean), 1e-10 * mean)

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        rate = np.exp(natural[0])
        # Beyond 1e12 the two are indistinguishable, and numpy's Poisson sampler soon fails.
        large = np.rint(rng.normal(rate, np.sqrt(rate)))
        return np.where(rate > 1e12, large, rng.poisson(np.minimum(rate, 1e12)))

    def interior(self, mean: Floats) -> Booleans:
        return mean[0] > 0
