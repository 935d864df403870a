"""Divergences of mixed columns: the contribution of each cell, and its expectation by chance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import binom

from maxdisc.densities.class_densities import ClassDensities
from maxdisc.divergences.class_divergences import (
    Divergence,
    checked_scores,
    jeffreys,
    jensen_shannon,
    js_gm,
    kl,
    rao,
)
from maxdisc.families.blocks import Block
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Floats, blocks


def cell_scores(block: Block, divergence: Divergence) -> Callable[[ClassDensities], Floats]:
    """From densities of a block to what each cell adds to the divergence of its column, shape (E,)."""
    if not block.has_levels:
        return lambda densities: checked_scores(divergence, densities)
    if divergence not in _OF_LEVELS:
        name = getattr(divergence, "__name__", divergence)
        known = ", ".join(f"{known.__name__!r}" for known in _OF_LEVELS)
        raise ValueError(f"the divergence {name!r} is of densities, not of categories: use {known}.")
    of_levels = _OF_LEVELS[divergence]

    def scores(densities: ClassDensities) -> Floats:
        return np.where(densities.informative, of_levels(densities) * densities.coverage, 0.0)

    return scores


def _mixture(densities: ClassDensities) -> Floats:
    return (densities.prior * densities.mean[0]).sum(axis=0)


def _js_gm(densities: ClassDensities) -> Floats:
    prior, log_p = densities.prior, densities.natural[0]
    return (prior * (log_p - (prior * log_p).sum(axis=0)) * (densities.mean[0] - _mixture(densities))).sum(
        axis=0
    )


def _jeffreys(densities: ClassDensities) -> Floats:
    rest = densities.rest
    apart = (densities.natural[0] - rest.natural[0]) * (densities.mean[0] - rest.mean[0])
    return (densities.prior * apart).sum(axis=0)


def _kl(densities: ClassDensities) -> Floats:
    apart = densities.mean[0] * (densities.natural[0] - densities.rest.natural[0])
    return (densities.prior * apart).sum(axis=0)


def _information(densities: ClassDensities) -> Floats:
    apart = densities.mean[0] * (densities.natural[0] - np.log(_mixture(densities)))
    return (densities.prior * apart).sum(axis=0)


def _rao(densities: ClassDensities) -> Floats:
    mixture = _mixture(densities)
    return (densities.prior * (densities.mean[0] - mixture) ** 2).sum(axis=0) / mixture


#: Of categories divergences are sums over levels; these are their terms.
_OF_LEVELS: dict[Divergence, Callable[[ClassDensities], Floats]] = {
    js_gm: _js_gm,
    jeffreys: _jeffreys,
    kl: _kl,
    jensen_shannon: _information,
    rao: _rao,
}
#: What N times a divergence of equal densities is on average, for each parameter and class but one.
NULL_SHARE: dict[Divergence, float] = {js_gm: 1.0, rao: 1.0, jensen_shannon: 0.5}
#: Levels in more rows than this are as normal as sums get.
FEW_ROWS = 64


def chance(block: Block, moments: ClassMoments, smoothing: Smoothing, divergence: Divergence) -> Floats:
    """Return the expected divergence of each cell if all classes were alike, shape (E,), in nats.

    Families with more parameters diverge more by chance, so columns of different families are compared by
    the excess over this. It is 1/N per parameter and further class; for rare levels it is summed over all
    counts.
    """
    share = NULL_SHARE.get(divergence, 0.0)
    # A model file keeps the weights of classes alone.
    n_rows = max(moments.n_rows or float(moments.weight.sum()), 1.0)
    each = share * max(int((moments.weight > 0).sum()) - 1, 0) / n_rows
    if not block.has_levels or not share:
        return np.full(len(block.columns), each * block.family.n_statistics)
    counts, cells = np.rint(moments.sums[0].sum(axis=0)), moments.cells.sum(axis=0)
    common = counts / np.where(cells > 0, cells, 1.0)
    out = each * (1 - common)
    rare = np.flatnonzero((counts > 0) & (counts <= FEW_ROWS))
    if not len(rare):
        return out
    # Levels that are as frequent are alike, in columns of as many levels and as many cells of each class.
    assert moments.nonzero is not None  # which settled moments have
    of_columns = np.vstack([np.broadcast_to(moments.cells, moments.sums.shape[1:]), moments.nonzero])
    alike = np.unique(of_columns[:, block.starts].T, axis=0, return_inverse=True)[1].ravel()
    _, first, which = np.unique(
        alike[block.group[rare]] * (FEW_ROWS + 1) + counts[rare].astype(np.intp),
        return_index=True,
        return_inverse=True,
    )
    table = np.empty(len(first))
    for some in blocks(len(first), (FEW_ROWS + 1) * moments.n_classes):
        table[some] = _rare_chance(moments.select(rare[first[some]]), smoothing, divergence)
    out[rare] = table[which] * cells[rare] / max(float(moments.weight.sum()), 1e-300)
    return out


def _rare_chance(moments: ClassMoments, smoothing: Smoothing, divergence: Divergence) -> Floats:
    """Return the mean term of levels under permuted labels, shape (E,)."""
    cells = np.broadcast_to(moments.cells, moments.sums.shape[1:])
    shares = cells / cells.sum(axis=0)
    counts = np.arange(FEW_ROWS + 1)[:, None, None]
    pmf = binom.pmf(counts, np.rint(moments.sums[0].sum(axis=0)), shares)
    pseudo = smoothing.pseudo_rows(moments, moments.sums, None)
    p = (counts + pseudo.number * pseudo.mean[0]) / np.maximum(cells + pseudo.number, 1e-300)
    mixture = (shares * (pmf * p).sum(axis=0)).sum(axis=0)
    if divergence is rao:
        return np.asarray((shares * (pmf * p**2).sum(axis=0)).sum(axis=0) / mixture - mixture)
    log_p = np.log(np.maximum(p, 1e-300))
    against = (pmf * log_p).sum(axis=0) if divergence is js_gm else np.log(mixture)
    return np.asarray((shares * ((pmf * p * log_p).sum(axis=0) - mixture * against)).sum(axis=0))
