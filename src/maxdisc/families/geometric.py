"""The one-moment family on the non-negative integers."""

from __future__ import annotations

import numpy as np

from maxdisc.families.family import Family
from maxdisc.families.support import Support
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Matrix


class Geometric(Family):
    """Maximum entropy on 0, 1, 2, ... under a mean; scaled counts, which are not integers, are taken too.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Geometric
    >>> np.exp(Geometric().natural(np.array([[1.0]])))  # each further count halves the probability
    array([[0.5]])
    """

    name = "geometric"
    support = Support(0.0, lattice=True)
    n_statistics = 1
    neutral = (1.0,)
    smoothings = tuple(Smoothing(a) for a in (0.03, 0.1, 0.3, 1.0))

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        return (X,)

    def natural(self, mean: Floats) -> Floats:
        return -np.log1p(1.0 / np.maximum(mean, 1e-300))

    def mean(self, natural: Floats) -> Floats:
        return 1.0 / np.expm1(-natural)

    def log_partition(self, natural: Floats) -> Floats:
        return -np.log(-np.expm1(natural[0]))

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        return np.zeros(natural.shape[1:]), 1.0 - 1.0 / natural[0]

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        # By inversion: numpy's own sampler stops at the largest integer.
        return np.floor(np.log1p(-rng.random(natural.shape[1:])) / natural[0])

    def interior(self, mean: Floats) -> Booleans:
        return mean[0] > 0
