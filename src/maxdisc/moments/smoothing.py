"""Smoothing by pseudo-rows, so that a word that never occurs in a class does not decide alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from maxdisc.moments.class_moments import ClassMoments
from maxdisc.numerics.matrices import Floats

# "No smoothing" is the limit of ever less of it: densities stay finite, and models that have an
# unsmoothed answer agree with it to far more digits than data have. In shares of the total weight.
LEAST = 1e-12
# More than this makes all classes equal, to the last bit.
MOST = 1e15


@dataclass(frozen=True)
class Smoothing:
    """Number and content of the pseudo-rows added to each class.

    Each class's mean of a statistic becomes ``(sum + k * m) / (n + k)``. For feature j, ``k = amount / p``,
    with ``p`` the share of its cells that are not zero: the pseudo-rows then have ``amount`` non-zero cells,
    for any unit and any frequency of the word. If zero is not special (Gaussian), p is 1.

    Parameters
    ----------
    amount : float
        Number of non-zero pseudo-cells per class and feature, at least 0.
    target : {"own", "flat"}
        ``"own"``: ``m`` is the feature's own mean over all classes. ``"flat"``: one mean, and one ``p``, for
        all features, as in additive smoothing of the multinomial model.

    Examples
    --------
    >>> from maxdisc import Smoothing
    >>> Smoothing(1.0)
    Smoothing(amount=1.0, target='own')
    """

    amount: float
    target: Literal["own", "flat"] = "own"

    def __post_init__(self) -> None:
        if not 0 <= self.amount <= MOST:
            raise ValueError(f"smoothing must be at least 0 and at most {MOST:g}, got {self.amount!r}.")
        if self.target not in ("own", "flat"):
            raise ValueError(f"the target of smoothing is 'own' or 'flat', got {self.target!r}.")

    def level(self, moments: ClassMoments) -> tuple[Floats, float] | None:
        """For a flat target: the one mean of each statistic, shape (L, 1), and the one share of cells."""
        if self.target == "own":
            return None
        if moments.nonzero is None:
            raise ValueError("a flat smoothing target needs features with one unit, such as counts.")
        total = _positive(moments.cells.sum(axis=0))
        with_mass = moments.nonzero > 0
        if not with_mass.any():
            return np.zeros((moments.sums.shape[0], 1)), 1.0
        pooled = moments.sums.sum(axis=1) / total
        share = (moments.nonzero / total)[with_mass].mean()
        return pooled[:, with_mass].mean(axis=1, keepdims=True), float(share)

    def pseudo_rows(
        self, moments: ClassMoments, sums: Floats, level: tuple[Floats, float] | None
    ) -> PseudoRows:
        """Return the pseudo-rows of every class for (a block of) features.

        Parameters
        ----------
        moments : ClassMoments
            Of that block.
        sums : ndarray of shape (L, C, D)
            The sums to be smoothed: those of ``moments``, or those about the class means.
        level : tuple or None
            What :meth:`level` says of all features.
        """
        total = _positive(moments.cells.sum(axis=0))
        pooled = sums.sum(axis=1) / total
        amount = np.maximum(self.amount, LEAST * total)
        if level is not None:
            return PseudoRows(
                np.broadcast_to(amount / level[1], pooled.shape[1:]),
                np.broadcast_to(level[0], pooled.shape),
                pooled,
            )
        if moments.nonzero is None:
            return PseudoRows(np.broadcast_to(amount, pooled.shape[1:]), pooled, pooled)
        share = np.where(moments.nonzero > 0, moments.nonzero / total, 1.0)
        return PseudoRows(amount / share, pooled, pooled)


class SmoothingByFeature(Smoothing):
    """Amounts of the features' own, shape (D,), towards each feature's own mean."""

    def __init__(self, amounts: Floats) -> None:
        object.__setattr__(self, "amount", amounts)
        object.__setattr__(self, "target", "own")


@dataclass(frozen=True, eq=False)
class PseudoRows:
    """Pseudo-rows, alike for every class: their number (D,), their mean and the data's mean (L, D)."""

    number: Floats
    mean: Floats
    pooled: Floats

    def smoothed(self, sums: Floats, cells: Floats) -> Floats:
        """Mean of each statistic after adding the pseudo-rows, shape (L, C, D)."""
        return (sums + self.number * self.mean[:, None, :]) / (cells + self.number)


def _positive(total: Floats) -> Floats:
    return np.where(total > 0, total, 1.0)
