"""The family of categories: one level of several."""

from __future__ import annotations

import numpy as np

from maxdisc.families.family import Family
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Matrix


class Categorical(Family):
    """Maximum entropy on the levels of a column under their frequencies.

    A column of M levels is M indicators, each a cell of a sparse matrix, of which a row has one. Their
    natural parameters are the logs of probabilities that sum to 1 over the column, so nothing is left to
    normalise: ``log p(x) = sum of natural * indicator``. A row without a level, because its cell is missing
    or unseen, carries no evidence. Which levels belong to a column, and their smoothing, is in
    :class:`maxdisc.families.blocks.Block`: a single indicator is not a density.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.families import Categorical
    >>> shares = np.array([[0.25, 0.75]])
    >>> Categorical().mean(Categorical().natural(shares))
    array([[0.25, 0.75]])
    """

    name = "categorical"
    support = Support(0.0, 1.0, lattice=True)
    n_statistics = 1
    integral = True
    neutral = (1.0,)

    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        return (X,)

    def natural(self, mean: Floats) -> Floats:
        return np.log(np.clip(mean, 1e-300, 1.0))

    def mean(self, natural: Floats) -> Floats:
        return np.exp(natural)

    def log_partition(self, natural: Floats) -> Floats:
        return np.zeros(natural.shape[1:])

    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        """Gumbel's noise added to the log probabilities: the level with the most of it is drawn."""
        return np.asarray(natural[0] + rng.gumbel(size=natural.shape[1:]))

    def interior(self, mean: Floats) -> Booleans:
        return np.asarray(mean[0] > 0)
