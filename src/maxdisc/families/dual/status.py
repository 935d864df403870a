"""What becomes of a problem, and what a solution is."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from maxdisc.numerics.matrices import Floats, Integers

#: A problem is solved if each mean is met to this share of the mean magnitude of its statistic.
TOLERANCE = 1e-8

#: What the iterations aim at.
AIM = 1e-12


class Status(IntEnum):
    """Outcome of a dual problem."""

    #: The density has the moments asked for.
    SOLVED = 0
    #: The iterations ended elsewhere; the parameters are where they ended.
    NOT_CONVERGED = 1
    #: No density has these moments: they lie on the boundary (a constant, all mass at an end), or beyond. The
    #: parameters are those of moments moved inside, by the first of :data:`SHARES` that suffices.
    BOUNDARY = 2
    #: Some densities have these moments, but none of them has the largest entropy: the highest moment is too
    #: large
    #: for the tail. The parameters are those of the lower moments alone, which have the limit of the
    #: entropies.
    NO_DENSITY = 3


class Solution(NamedTuple):
    """Natural parameters (always finite), with status, evaluations and largest relative error of a mean."""

    natural: Floats  # (L, ...)
    status: Integers  # (...)
    n_iter: Integers  # (...)
    residual: Floats  # (...)

    @property
    def counts(self) -> dict[Status, int]:
        """How many problems ended in each status."""
        return {status: int((self.status == status).sum()) for status in Status}
