"""The family on {0, 1}: presence and absence."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from maxdisc.families.family import Family
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Matrix


class Bernoulli(Family):
    """Maximum entropy on {0, 1} under a mean.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Bernoulli
    >>> Bernoulli().natural(np.array([[0.5]]))
    array([[0.]])
    """

    name = "bernoulli"
    support = Support(0.0, 1.0, lattice=True)
    n_statistics = 1
    integral = True
    neutral = (0.5,)

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        return (X,)

    def natural(self, mean: Floats) -> Floats:
        inside = np.clip(mean, 1e-300, 1 - 1e-15)
        return np.log(inside) - np.log1p(-inside)

    def mean(self, natural: Floats) -> Floats:
        return np.asarray(expit(natural))

    def log_partition(self, natural: Floats) -> Floats:
        return np.logaddexp(0.0, natural[0])

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        return np.asarray(expit(natural[0])), np.ones(natural.shape[1:])

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        return rng.binomial(1, expit(natural[0])).astype(np.float64)

    def interior(self, mean: Floats) -> Booleans:
        # Weighted sums leave a gap of a few ulps where every cell is 1.
        return (mean[0] > 0) & (mean[0] < 1 - 1e-13)
