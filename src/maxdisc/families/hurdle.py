"""An atom at zero plus an exponential tail, for amounts with many zeros."""

from __future__ import annotations

import numpy as np

from maxdisc.families.family import Family
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Matrix, with_data


class Hurdle(Family):
    """Maximum entropy on {0} and (0, inf) under the probability of x > 0 and the mean of x.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Hurdle
    >>> natural = Hurdle().natural(np.array([0.5, 1.0])[:, None])  # half the cells positive, 2 on average
    >>> np.exp(Hurdle().log_density(0.0, natural))
    array([0.5])
    """

    name = "hurdle"
    support = Support(0.0, atoms=(0.0,))
    n_statistics = 2
    neutral = (0.5, 0.5)

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        if isinstance(X, np.ndarray):
            return (X > 0).astype(np.float64), X
        return with_data(X, (X.data > 0).astype(np.float64)), X

    def natural(self, mean: Floats) -> Floats:
        # A feature without zeros still has an informative tail; its atom is then fixed and tiny.
        share = np.clip(mean[0], 1e-300, 1 - 1e-12)
        rate = share / np.maximum(mean[1], 1e-300)
        return np.stack([np.log(share) - np.log1p(-share) + np.log(rate), -rate])

    def mean(self, natural: Floats) -> Floats:
        share = self._share(natural)
        return np.stack([share, -share / natural[1]])

    def log_partition(self, natural: Floats) -> Floats:
        return np.logaddexp(0.0, natural[0] - np.log(-natural[1]))

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        return -np.log(-natural[1]), np.ones(natural.shape[1:])

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        present = rng.random(natural.shape[1:]) < self._share(natural)
        return np.where(present, rng.exponential(-1.0 / natural[1]), 0.0)

    def interior(self, mean: Floats) -> Booleans:
        return (mean[0] > 0) & (mean[1] > 0)

    def _share(self, natural: Floats) -> Floats:
        odds = natural[0] - np.log(-natural[1])
        return np.exp(-np.logaddexp(0.0, -odds))
