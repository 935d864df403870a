"""Divergences between class densities, and the ranking of features by them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from maxdisc.densities.class_densities import ClassDensities
from maxdisc.densities.quadrature import WIDTH, class_nodes
from maxdisc.families import Family
from maxdisc.numerics.matrices import Booleans, Floats, Integers, blocks
from maxdisc.numerics.threads import in_threads

#: From the densities of C classes for D features to a score for each feature, shape (D,).
Divergence = Callable[[ClassDensities], Floats]

# Fewer nats than this are rounding errors.
NOISE = 1e-18
# Nodes that find less of a mixture's mass than this are set more densely.
LOST = 1e-7
# ... and if that does not help, a loss of more than this is reported.
FAR_OFF = 1e-5
# (class, feature) cells whose nodes are placed at a time.
CELLS_AT_A_TIME = 2**15
TINY = np.finfo(np.float64).tiny
# How far from the mean of all classes towards each of them derivatives are taken, as a share.
STEP = 1e-3


def js_gm(densities: ClassDensities) -> Floats:
    """Return the paper's multi-class divergence: Jensen-Shannon with a geometric mean.

    Its definition is a sum over pairs of classes; it equals the covariance over classes, under the prior, of
    natural parameters and means, summed over statistics.

    Parameters
    ----------
    densities : ClassDensities
        Of shape (L, C, D).

    Returns
    -------
    ndarray of shape (D,)
        In nats; 0 for uninformative features.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc import divergences
    >>> from maxdisc.testing import random_densities
    >>> bool((divergences.js_gm(random_densities("gaussian", seed=0)) >= 0).all())
    True
    """
    prior, natural, mean = densities.prior, densities.natural, densities.mean
    natural = natural - (prior * natural).sum(axis=1, keepdims=True)
    mean = mean - (prior * mean).sum(axis=1, keepdims=True)
    return _settled((prior * natural * mean).sum(axis=(0, 1)), densities)


def jeffreys(densities: ClassDensities) -> Floats:
    """Return J(class || all others together), averaged over classes by the prior.

    Parameters
    ----------
    densities : ClassDensities
        Of shape (L, C, D).

    Returns
    -------
    ndarray of shape (D,)
        In nats.

    Examples
    --------
    >>> from maxdisc.divergences import jeffreys
    >>> from maxdisc.testing import random_densities
    >>> jeffreys(random_densities("poisson", n_classes=3, n_features=5)).shape
    (5,)
    """
    return _settled((densities.prior * one_vs_rest(densities)).sum(axis=0), densities)


def one_vs_rest(densities: ClassDensities) -> Floats:
    """Return J(class || all others together), shape (C, D), in nats; 0 for an uninformative feature."""
    rest = densities.rest
    each = ((densities.natural - rest.natural) * (densities.mean - rest.mean)).sum(axis=0)
    return np.where(densities.usable, np.maximum(each, 0.0), 0.0)


def kl(densities: ClassDensities) -> Floats:
    """Return KL(class || all others together), averaged over classes by the prior.

    Parameters
    ----------
    densities : ClassDensities
        Of shape (L, C, D).

    Returns
    -------
    ndarray of shape (D,)
        In nats.

    Examples
    --------
    >>> from maxdisc.divergences import kl
    >>> from maxdisc.testing import random_densities
    >>> kl(random_densities("poisson", n_classes=3, n_features=5)).shape
    (5,)
    """
    each = densities.family.kl(densities.natural, densities.rest.natural)
    return _settled((densities.prior * each).sum(axis=0), densities)


def jensen_shannon(densities: ClassDensities) -> Floats:
    """Return the mutual information of class and feature: the mean of KL(class || mixture of all classes).

    By quadrature, or by sums for lattices and atoms, with nodes where the densities have their mass; to
    better than 1e-6 of its value, unless Gaussian classes are more than 1e10 deviations apart: nodes so far
    out are rounded themselves. There is a warning if nodes miss more than 1e-5 of the mass. The value is at
    most js_gm, and at most the entropy of the prior, which a feature reaches if it determines the class.

    Parameters
    ----------
    densities : ClassDensities
        Of shape (L, C, D).

    Returns
    -------
    ndarray of shape (D,)
        In nats.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc import divergences
    >>> from maxdisc.testing import random_densities
    >>> densities = random_densities("gaussian", n_classes=2, seed=0)
    >>> information = divergences.jensen_shannon(densities)
    >>> bool((information <= np.minimum(divergences.js_gm(densities), np.log(2))).all())
    True
    """
    family, wanted = densities.family, np.flatnonzero(densities.usable)
    prior = np.broadcast_to(densities.prior, densities.natural.shape[1:])
    scores = np.zeros(len(densities.coverage))

    def score(some: slice) -> None:
        columns = wanted[some]
        scores[columns] = _information(family, densities.natural[:, :, columns], prior[:, columns])

    in_threads(score, list(blocks(len(wanted), len(prior), CELLS_AT_A_TIME)))
    return _settled(scores, densities)


def rao(densities: ClassDensities) -> Floats:
    """Return Rao's score test statistic per row, at the pooled density.

    ``sum_c prior_c (mu_c - mu)^T F (mu_c - mu)``, with F the derivative of natural parameters by means (the
    inverse covariance of the statistics) at the mean of all classes. js_gm, and twice jensen_shannon,
    approach it for similar classes. For Poisson counts it is the chi-square statistic divided by N. Rare
    features of a single class score lower than with the other divergences, which is better if many features
    are selected.

    Parameters
    ----------
    densities : ClassDensities
        Of shape (L, C, D).

    Returns
    -------
    ndarray of shape (D,)
        In nats.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.moments.counting import class_moments
    >>> from maxdisc.densities.class_densities import estimate
    >>> from maxdisc.divergences import rao
    >>> from maxdisc.families import Poisson
    >>> from maxdisc import Smoothing
    >>> moments = class_moments(Poisson().statistics, np.array([[1.0], [3.0]]), np.array([0, 1]), 2)
    >>> rao(estimate(Poisson(), moments, Smoothing(0.0))).round(6)
    array([0.5])
    """
    family, prior, mean = densities.family, densities.prior, densities.mean
    middle = (prior * mean).sum(axis=1, keepdims=True)
    apart = mean - middle
    # So short a step that even away from the class there are densities: the other classes lie there.
    step = STEP * prior
    ahead, behind = (family.fitted(middle + sign * step * apart) for sign in (1, -1))
    slope = (ahead[0] - behind[0]) / np.where(step > 0, 2 * step, 1.0)
    found = (ahead[1] & behind[1]) | np.broadcast_to(prior == 0, ahead[1].shape)
    terms = np.where(found & densities.usable, prior * (slope * apart).sum(axis=0), 0.0)
    return _settled(np.where(found.all(axis=0), terms.sum(axis=0), 0.0), densities)


def _information(family: Family, natural: Floats, prior: Floats) -> Floats:
    """Mutual information of class and feature, shape (D,); halves the panels where mass was lost."""
    scores = np.zeros(natural.shape[2])
    left, width = np.arange(len(scores)), WIDTH
    for _ in range(4):
        scores[left], mass = _integrals(family, natural[:, :, left], prior[:, left], width)
        error = np.abs(mass - 1)
        left, width = left[error > LOST], width / 2
        if not left.size:
            break
    missed = int((error > FAR_OFF).sum())
    if missed:
        warnings.warn(
            f"the Jensen-Shannon divergence of {missed} features is not exact: the nodes miss part of their "
            f"{family.name} densities.",
            RuntimeWarning,
            stacklevel=2,
        )
    return scores


def _integrals(family: Family, natural: Floats, prior: Floats, width: float) -> tuple[Floats, Floats]:
    """Mutual information, and the mass of the mixture that was found, shapes (D,)."""
    total = np.zeros((2, natural.shape[2]))
    for atom in family.support.atoms:
        log_p = family.log_density(np.full(natural.shape[1:], atom), natural)
        total += _integrand(log_p[None], prior)[:, 0]
    known = family.log_partition(natural)
    for features, place, weights in class_nodes(family, natural, width, known):
        with np.errstate(over="ignore", under="ignore"):
            log_p = family.log_density_at(place[:, None], natural[:, :, features], known[:, features])
        parts = (weights * _integrand(log_p, prior[:, features])).sum(axis=1)
        total += [np.bincount(features, part, total.shape[1]) for part in parts]
    return total[0], total[1]


def _integrand(log_p: Floats, prior: Floats) -> Floats:
    """``m * sum of prior * (r log r - r + 1)`` with r = p / m, and the mixture m itself; shape (2, m, n).

    The terms -r + 1 cancel in the sum. With them every term is at least 0 and of second order, so that
    classes which hardly differ lose no digits.
    """
    if not prior.all():
        log_p = np.where(prior > 0, log_p, -np.inf)
    top = log_p.max(axis=1, keepdims=True)
    # Places beyond all numbers have no mass.
    top[np.isneginf(top)] = 0.0
    ratio = np.exp(log_p - top)
    mixture = np.einsum("mcn,cn->mn", ratio, prior)
    ratio /= np.maximum(mixture, TINY)[:, None]
    # The log of the ratio as it was rounded: near 1, terms that belong together then cancel.
    terms = np.maximum(ratio, TINY)
    np.log(terms, out=terms)
    terms *= ratio
    ratio -= 1.0
    terms -= ratio
    mixture *= np.exp(top[:, 0])
    return np.stack([mixture * np.einsum("mcn,cn->mn", terms, prior), mixture])


def pairwise(densities: ClassDensities, symmetric: bool = True) -> Floats:
    """Return the divergence between every two classes, for each feature.

    Parameters
    ----------
    densities : ClassDensities
        Densities of shape (L, C, D). Memory grows with C squared, so pass the features of interest.
    symmetric : bool
        Jeffreys divergence if true, else KL(row || column).

    Returns
    -------
    ndarray of shape (D, C, C)
        Divergences in nats; 0 on the diagonal.

    Examples
    --------
    >>> from maxdisc.divergences import pairwise
    >>> from maxdisc.testing import random_densities
    >>> pairwise(random_densities("poisson", n_classes=3, n_features=5)).shape
    (5, 3, 3)
    """
    p, q = densities.natural[:, :, None], densities.natural[:, None, :]
    if symmetric:
        mean = densities.mean
        table = ((p - q) * (mean[:, :, None] - mean[:, None, :])).sum(axis=0)
    else:
        shape = np.broadcast_shapes(p.shape, q.shape)
        table = densities.family.kl(np.broadcast_to(p, shape), np.broadcast_to(q, shape))
    return np.ascontiguousarray(np.maximum(table, 0.0).transpose(2, 0, 1))


def _settled(scores: Floats, densities: ClassDensities) -> Floats:
    """Weighted by how often a feature is observed; rounding may not leave a trace of what says nothing."""
    return np.where(densities.usable & (scores > NOISE), scores * densities.coverage, 0.0)


#: Every divergence, by name.
DIVERGENCES: dict[str, Divergence] = {
    "js_gm": js_gm,
    "jeffreys": jeffreys,
    "kl": kl,
    "jensen_shannon": jensen_shannon,
    "rao": rao,
}


def find_divergence(divergence: str | Divergence) -> Divergence:
    """Return the divergence with that name, or the function itself."""
    if callable(divergence):
        return divergence
    if isinstance(divergence, str) and divergence in DIVERGENCES:
        return DIVERGENCES[divergence]
    raise ValueError(
        f"unknown divergence {divergence!r}: give one of {', '.join(map(repr, DIVERGENCES))}, or a function."
    )


@dataclass(frozen=True, eq=False)
class FeatureRanking:
    """Features from best to worst; ties keep the order of their columns."""

    scores: Floats  # (D,)
    order: Integers  # (D,)
    unsolved: Integers  # (U,)
    adjusted: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @classmethod
    def of(
        cls, scores: Floats, solved: Booleans | None = None, adjusted: Booleans | None = None
    ) -> FeatureRanking:
        """Sort by score; scores that differ by rounding alone (in the last 16 of 52 bits) are equal."""
        unsolved = np.flatnonzero(np.zeros(0) if solved is None else ~solved)
        moved = np.flatnonzero(np.zeros(0) if adjusted is None else adjusted)
        return cls(scores, best_first(scores), unsolved, moved)


def best_first(scores: Floats) -> Integers:
    """Columns by falling score, equal ones by rising number, shape (D,).

    The bits of a number that is not negative sort as the number does. Those that count and a column's number
    fit into one integer, and plain integers sort many times faster than anything that must keep an order.
    Scores of unusual size, and more than a million of them, take the slow way.
    """
    n = len(scores)
    small = 2.0**-63
    if n > 2**20 or not ((scores == 0) | ((scores > small) & (scores < 2.0**190))).all():
        mantissa, exponent = np.frexp(scores)
        return np.argsort(-np.ldexp(np.rint(mantissa * 2.0**36), exponent - 36), kind="stable")
    keys = (scores + 0.0).view(np.uint64)
    keys += np.uint64(1 << 15)
    keys >>= np.uint64(16)
    # Without what all numbers above `small` have in common, 44 bits are left.
    common = np.array([small]).view(np.uint64)[0] >> np.uint64(16)
    np.maximum(keys, common, out=keys)
    keys -= common
    keys <<= np.uint64(20)
    keys |= np.arange(n - 1, -1, -1, dtype=np.uint64)
    keys.sort()
    keys &= np.uint64(2**20 - 1)
    return n - 1 - keys[::-1].astype(np.intp)


def require_finite(scores: Floats) -> None:
    """Raise ``ValueError`` for what is no score."""
    if not np.isfinite(scores).all():
        column = int(np.argmin(np.isfinite(scores)))
        raise ValueError(f"the divergence of column {column} is not finite: its values are too extreme.")


def checked_scores(divergence: Divergence, densities: ClassDensities) -> Floats:
    """Return the scores (D,) of a divergence; raise ``ValueError`` if they are invalid."""
    scores = np.asarray(divergence(densities), dtype=np.float64)
    wanted = densities.coverage.shape
    finite = bool(np.isfinite(scores).all())
    if scores.shape != wanted or not finite or (scores < 0).any():
        wrong = f" down to {scores.min():.3g}" if finite and (scores < 0).any() else ""
        raise ValueError(
            f"the divergence {getattr(divergence, '__name__', divergence)!r} must give one finite score "
            f"of at least 0 for each feature: shape {wanted}, got shape {scores.shape}"
            f"{wrong if finite else ' with NaN or infinity'}."
        )
    return scores
