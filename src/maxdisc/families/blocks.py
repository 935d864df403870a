"""Columns of several families: blocks that are counted, described and scored each as one matrix.

A block's matrix has a column for each *cell* that a column of the table comes to: itself, or an indicator
for each of its levels, or one that tells whether it is missing. Sums of blocks stand side by side, scores of
cells add up to those of columns, and decisions add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from maxdisc.densities import ClassDensities
from maxdisc.divergences import Divergence, checked_scores, jeffreys, jensen_shannon, js_gm, kl, rao
from maxdisc.families import Categorical, Family
from maxdisc.matrices import Floats, Integers, blocks
from maxdisc.moments import ClassMoments
from maxdisc.smoothing import Smoothing
from maxdisc.tables import Table


@dataclass(frozen=True, eq=False)
class Block:
    """Columns of one family.

    Parameters
    ----------
    family : Family
        Of all of them.
    columns : ndarray of shape (E,)
        The column of the table that each column of the block's matrix belongs to; levels of one column of
        the table stand together.
    """

    family: Family
    columns: Integers

    @property
    def has_levels(self) -> bool:
        """Whether cells are indicators of levels."""
        return isinstance(self.family, Categorical)

    @cached_property
    def starts(self) -> Integers:
        """Where the cells of each column of the table begin."""
        return np.flatnonzero(np.diff(self.columns, prepend=-1))

    @cached_property
    def group(self) -> Integers:
        """Which of its columns, in their order, each cell belongs to; shape (E,)."""
        return np.cumsum(np.diff(self.columns, prepend=-1) != 0) - 1

    def settled(self, moments: ClassMoments) -> ClassMoments:
        """Moments of levels, with what their columns have in common: observed cells and pseudo-rows.

        Smoothing gives each level of a column the same number of pseudo-cells on average, as if each were
        found in one row of M: then the smoothed shares of the levels still sum to 1.
        """
        if not self.has_levels or not len(self.columns):
            return moments
        of_column = np.add.reduceat(moments.sums[0], self.starts, axis=1)
        widths = np.diff(np.r_[self.starts, len(self.columns)])
        observed = of_column[:, self.group]
        return replace(moments, observed=observed, nonzero=(of_column.sum(axis=0) / widths)[self.group])


@dataclass(frozen=True, eq=False)
class Columns:
    """The families of the columns of a table; it stands where one family stands for all of them.

    Parameters
    ----------
    blocks : sequence of Block
        In the order of the parts of a :class:`maxdisc.tables.Table`.
    n_columns : int
        D, the number of columns of the table.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.columns import Block, Columns
    >>> from maxdisc.families import Bernoulli, Gaussian
    >>> Columns([Block(Gaussian(), np.array([0, 2])), Block(Bernoulli(), np.array([1]))], 3)
    Columns(2 gaussian, 1 bernoulli)
    """

    blocks: Sequence[Block]
    n_columns: int

    name = "mixed"
    translates = False
    #: What ``smoothing="auto"`` chooses among, for all columns alike.
    smoothings = tuple(Smoothing(a) for a in (0.1, 1.0, 10.0, 100.0))
    usual_smoothing = Smoothing(1.0)

    def __repr__(self) -> str:
        return f"Columns({', '.join(f'{n} {name}' for name, n in self.counts().items())})"

    def counts(self) -> dict[str, int]:
        """How many columns of the table each family describes."""
        found: dict[str, int] = {}
        for block in self.blocks:
            found[block.family.name] = found.get(block.family.name, 0) + len(block.starts)
        return found

    def require(self, X: Table, names: npt.ArrayLike | None = None, first_row: int = 0) -> None:
        """Raise ``ValueError``, with the column's name and the value, for what a family cannot have."""
        for block, part in zip(self.blocks, X.parts, strict=True):
            if not block.has_levels:
                block.family.require(part, self.called(block, names), first_row)

    def called(self, block: Block, names: npt.ArrayLike | None) -> npt.NDArray[np.generic]:
        """What messages call the columns of a block: by name, or by their number in the table."""
        return np.asarray(np.arange(self.n_columns) if names is None else names)[block.columns]


@dataclass(frozen=True, eq=False)
class MixedMoments:
    """The moments of the blocks of a table, side by side: they add as moments do.

    Parameters
    ----------
    parts : sequence of ClassMoments
        Of each block, all of the same rows.
    n_features : int
        D, the number of columns of the table.
    """

    parts: Sequence[ClassMoments]
    n_features: int

    @property
    def weight(self) -> Floats:
        """Total weight of each class's rows, shape (C,)."""
        return self.parts[0].weight

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return self.parts[0].n_classes

    @property
    def n_rows(self) -> float:
        """How many rows of equal weight would tell as much."""
        return self.parts[0].n_rows

    def __add__(self, other: MixedMoments) -> MixedMoments:
        if not isinstance(other, MixedMoments):
            return NotImplemented
        pairs = zip(self.parts, other.parts, strict=True)
        return MixedMoments([a + b for a, b in pairs], self.n_features)

    def nothing(self) -> MixedMoments:
        """The moments of no rows."""
        return MixedMoments([part.nothing() for part in self.parts], self.n_features)

    def reindexed(self, positions: Integers, n_classes: int) -> MixedMoments:
        """The same moments among ``n_classes`` classes, class c moved to ``positions[c]``."""
        return MixedMoments([part.reindexed(positions, n_classes) for part in self.parts], self.n_features)


#: The moments of one family, or of several.
AnyMoments: TypeAlias = ClassMoments | MixedMoments
#: One family for all features, or a family for each column.
AnyFamily: TypeAlias = Family | Columns


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
    """What each cell would add to the divergence of its column on average if all classes were alike.

    Densities with more parameters look farther apart where they are not, so columns of different families
    are compared by what they have beyond this: for each parameter and each class but one, 1/N. Rare levels
    have more, as logs of small counts are far apart; for them it is summed over all counts that could be.

    Parameters
    ----------
    block : Block
        The columns.
    moments : ClassMoments
        Of the block.
    smoothing : Smoothing
        As in the scores.
    divergence : callable
        For those that are not "js_gm", "jensen_shannon" or "rao" nothing is known, and 0 returned.

    Returns
    -------
    ndarray of shape (E,)
        In nats.
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
    """The mean term of levels whose rows are dealt to the classes by chance, shape (E,)."""
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
