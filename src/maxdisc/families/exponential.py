"""The exponential family of one moment on the half-line: the paper's model of term weights."""

from __future__ import annotations

import numpy as np

from maxdisc.families.family import Family
from maxdisc.families.support import Support
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Matrix


class Exponential(Family):
    """Maximum entropy on [0, inf) under a mean.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Exponential
    >>> Exponential().natural(np.array([[2.0]]))
    array([[-0.5]])
    """

    name = "exponential"
    support = Support(0.0)
    n_statistics = 1
    neutral = (1.0,)
    # Rare words need one target for all (their own mean leaves log-ratios too large); tables need their own.
    smoothings = (Smoothing(1.0), *(Smoothing(a, "flat") for a in (0.3, 1.0, 3.0, 10.0)))

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        return (X,)

    def natural(self, mean: Floats) -> Floats:
        return -1.0 / np.maximum(mean, 1e-300)

    def mean(self, natural: Floats) -> Floats:
        return -1.0 / natural

    def log_partition(self, natural: Floats) -> Floats:
        return -np.log(-natural[0])

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        return -np.log(-natural[0]), np.ones(natural.shape[1:])

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        return rng.exponential(-1.0 / natural[0])

    def interior(self, mean: Floats) -> Booleans:
        return mean[0] > 0
