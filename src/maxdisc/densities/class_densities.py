"""Estimation of densities from moments, one for each class and feature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from typing import Protocol

import numpy as np

from maxdisc.families import Family
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, blocks

# A feature that is constant within every class but differs between them would have an infinite divergence.
# Its variance within classes is taken to be this share of its whole variance: its own, never another's.
LEAST_SPREAD = 1e-4
# Densities are described about 0, where sparse rows are scored, unless the mean is this many squared
# deviations away. A column with such a mean has hardly any zeros.
FAR_FROM_ZERO = 100.0


@dataclass(frozen=True, eq=False)
class ClassDensities:
    """Densities of C classes for D features, in both parametrisations.

    Parameters
    ----------
    family : Family
        Whose members these are.
    natural : ndarray of shape (L, C, D)
        Natural parameters; for families that translate, those of ``x - origin``.
    prior : ndarray of shape (C, 1) or (C, D)
        Probability of each class among the rows in which the feature is observed.
    coverage : ndarray of shape (D,)
        Probability that the feature is observed.
    informative : ndarray of shape (D,)
        False for a feature without mass or variation: all classes then share one neutral density.
    level : ndarray of shape (D,)
        The value that stands for all rows, the only one of a feature without variation; NaN if none was seen.
    origin : ndarray of shape (D,)
        0 unless the family translates.
    solved : ndarray of shape (C, D)
        Whether the natural parameters were found.
    adjusted : ndarray of shape (C, D)
        Whether they were found only for adjusted means, because no density has those of the data.

    Attributes
    ----------
    mean : ndarray of shape (L, C, D)
        The means of the statistics that the natural parameters imply: never the data's, once smoothed.
    log_partition : ndarray of shape (C, D)
        Log of the normalisers.
    rest : ClassDensities
        For each class, the densities of all the other classes together.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.densities.class_densities import estimate
    >>> from maxdisc.families import Poisson
    >>> from maxdisc.moments.counting import class_moments
    >>> from maxdisc import Smoothing
    >>> X = np.array([[2.0, 0.0], [4.0, 0.0], [1.0, 0.0]])
    >>> moments = class_moments(Poisson().statistics, X, np.array([0, 0, 1]), 2)
    >>> densities = estimate(Poisson(), moments, Smoothing(0.0))
    >>> densities.mean[0].round(6)
    array([[3., 1.],
           [1., 1.]])
    >>> densities.informative
    array([ True, False])
    """

    family: Family
    natural: Floats
    prior: Floats
    coverage: Floats
    informative: Booleans
    level: Floats
    origin: Floats
    solved: Booleans
    adjusted: Booleans
    _estimate_rest: Callable[[], ClassDensities] | None = field(default=None, repr=False)

    @cached_property
    def mean(self) -> Floats:
        """Gradient of the log-partition, shape (L, C, D)."""
        return self.family.mean(self.natural)

    @cached_property
    def log_partition(self) -> Floats:
        """Log of the normalisers, shape (C, D)."""
        return self.family.log_partition(self.natural)

    @property
    def usable(self) -> Booleans:
        """Features that can be scored and selected: informative, and solved for every class; shape (D,)."""
        return self.informative & self.solved.all(axis=0)

    @cached_property
    def rest(self) -> ClassDensities:
        """For each class, the densities of all the other classes together, from sums of their moments."""
        if self._estimate_rest is None:
            raise ValueError("the rest of a rest is not defined.")
        return self._estimate_rest()


class Weighed(Protocol):
    """Moments of any kind, of which the classes' weights are known."""

    @property
    def weight(self) -> Floats:
        """Total weight of each class's rows, shape (C,)."""

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""


def class_prior(moments: Weighed, prior: Floats | None = None) -> Floats:
    """Return the prior given, or the classes' shares of the weight; shape (C,)."""
    if prior is not None:
        return np.asarray(prior, dtype=np.float64)
    total = moments.weight.sum()
    if total == 0:
        return np.full(moments.n_classes, 1.0 / moments.n_classes)
    return moments.weight / total


def estimate(
    family: Family, moments: ClassMoments, smoothing: Smoothing, prior: Floats | None = None
) -> ClassDensities:
    """Estimate the densities of all features at once; use :func:`density_blocks` for many features."""
    return _estimate(family, moments, smoothing, class_prior(moments, prior), smoothing.level(moments))


def density_blocks(
    family: Family,
    moments: ClassMoments,
    smoothing: Smoothing,
    prior: Floats | None = None,
    columns: np.ndarray | None = None,
    level: tuple[Floats, float] | None = None,
) -> Iterator[tuple[slice, ClassDensities]]:
    """Yield densities in blocks of features, so that memory does not grow with their number.

    ``level`` is that of the smoothing, where the moments are not those of all features.
    """
    prior = class_prior(moments, prior)
    level = smoothing.level(moments) if level is None else level
    n_columns = moments.n_features if columns is None else len(columns)
    for block in blocks(n_columns, 8 * moments.n_classes * family.n_statistics):
        chosen = moments.select(block if columns is None else columns[block])
        yield block, _estimate(family, chosen, smoothing, prior, level)


def translated(natural: Floats, shift: Floats) -> Floats:
    """Natural parameters of the powers of ``y = x - shift``, from those of the powers of x."""
    out = np.zeros(natural.shape)
    for order in range(1, len(natural) + 1):
        for k in range(1, order + 1):
            out[k - 1] += comb(order, k) * shift ** (order - k) * natural[order - 1]
    return out


def _estimate(
    family: Family,
    moments: ClassMoments,
    smoothing: Smoothing,
    prior: Floats,
    level: tuple[Floats, float] | None,
) -> ClassDensities:
    if family.translates:
        return _estimate_centred(family, moments, smoothing, prior)
    pseudo = smoothing.pseudo_rows(moments, moments.sums, level)
    informative = family.interior(pseudo.pooled)

    # The complement's function is handed in: one that knew itself would keep the moments alive for ever.
    def densities(source: ClassMoments, rest: Callable[[], ClassDensities] | None) -> ClassDensities:
        mean = pseudo.smoothed(source.sums, source.cells)
        mean = np.where(informative, mean, np.reshape(family.neutral, (-1, 1, 1)))
        natural, solved, adjusted = family.fitted(mean)
        return ClassDensities(
            family,
            natural,
            *_observed_prior(source, prior),
            informative,
            np.where(moments.cells.sum(axis=0) > 0, family.point(pseudo.pooled), np.nan),
            np.zeros(moments.n_features),
            solved,
            adjusted,
            rest,
        )

    return densities(moments, lambda: densities(_others(moments, prior), None))


def _estimate_centred(
    family: Family, moments: ClassMoments, smoothing: Smoothing, prior: Floats
) -> ClassDensities:
    """Statistics about each class's own mean, moved to one origin for all classes afterwards.

    What they are smoothed towards is then the variance *within* classes. The means themselves are left as
    they are: drawing them together would take away the very differences that are looked for.
    """
    center, sums = moments.centred()
    total = np.broadcast_to(moments.cells, center.shape).sum(axis=0)
    share = np.broadcast_to(moments.cells, center.shape) / np.where(total > 0, total, 1.0)
    level = _weighted_mean(center, share)
    pseudo = smoothing.pseudo_rows(moments, sums, None)
    spread = pseudo.pooled[1] + (share * (center - level) ** 2).sum(axis=0)
    origin = np.where(level**2 > FAR_FROM_ZERO * spread, level, 0.0)
    rounding = rounding_variance(moments, center)
    informative = (total > 0) & (spread > rounding)
    seen = pseudo.mean[1] > rounding
    within = np.where(seen, pseudo.mean[1], LEAST_SPREAD * spread)
    least = np.where(seen, LEAST_SPREAD * within, within)
    pseudo = replace(pseudo, mean=np.stack([pseudo.mean[0], within, *pseudo.mean[2:]]))

    def densities(
        source: ClassMoments, own: Floats, own_sums: Floats, rest: Callable[[], ClassDensities] | None
    ) -> ClassDensities:
        middle = np.where(informative & (source.cells > 0), own, level)
        mean = pseudo.smoothed(own_sums, source.cells)
        # A class in which the feature is constant has a variance all the same, however little is smoothed.
        constant = own_sums[1] <= rounding * source.cells
        mean[1] = np.maximum(mean[1], np.where(constant, least, 0.0))
        mean = np.where(informative, mean, np.reshape(family.neutral, (-1, 1, 1)))
        natural, solved, adjusted = family.fitted(mean)
        natural = translated(natural, origin - middle)
        prior_and_coverage = _observed_prior(source, prior)
        value = np.where(total > 0, level, np.nan)
        return ClassDensities(
            family, natural, *prior_and_coverage, informative, value, origin, solved, adjusted, rest
        )

    def rest() -> ClassDensities:
        others = _others(moments, prior)
        return densities(others, *others.centred(), None)

    return densities(moments, center, sums, rest)


def _weighted_mean(center: Floats, share: Floats) -> Floats:
    """Mean over classes, taken about one of them so that a large common part keeps its digits."""
    heaviest = np.take_along_axis(center, share.argmax(axis=0)[None], axis=0)[0]
    return np.asarray(heaviest + (share * (center - heaviest)).sum(axis=0))


def rounding_variance(moments: ClassMoments, center: Floats) -> Floats:
    """Return the variance that rounding alone can produce, shape (D,): below it a feature is constant."""
    eps = np.finfo(np.float64).eps
    about_origin = moments.sums[1].sum(axis=0) / np.maximum(
        np.broadcast_to(moments.cells, center.shape).sum(axis=0), np.finfo(np.float64).tiny
    )
    return np.asarray(8 * eps * about_origin + (8 * eps * np.abs(center).max(axis=0)) ** 2)


def _others(moments: ClassMoments, prior: Floats) -> ClassMoments:
    """Moments of each class's complement, the classes mixed by the prior."""
    own = class_prior(moments)
    if np.array_equal(own, prior):
        return moments.rest()
    return moments.scaled(np.where(own > 0, prior / np.where(own > 0, own, 1.0), 0.0)).rest()


def _observed_prior(moments: ClassMoments, prior: Floats) -> tuple[Floats, Floats]:
    """Class probabilities among the rows in which a feature is observed, and how often it is, (D,)."""
    if moments.observed is None:
        return prior[:, None], np.ones(moments.n_features)
    weight = np.where(moments.weight > 0, moments.weight, 1.0)
    joint = prior[:, None] * moments.observed / weight[:, None]
    coverage = joint.sum(axis=0)
    return joint / np.where(coverage > 0, coverage, 1.0), coverage
