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

from maxdisc.densities import ClassDensities
from maxdisc.divergences import Divergence, checked_scores, jeffreys, jensen_shannon, js_gm, kl, rao
from maxdisc.families import Categorical, Family
from maxdisc.matrices import Floats, Integers
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

    def n_free(self, moments: ClassMoments) -> Floats:
        """How many parameters a class has for each cell: statistics, or one less than levels for a column."""
        if not self.has_levels:
            return np.full(len(self.columns), float(self.family.n_statistics))
        seen = (moments.sums[0].sum(axis=0) > 0).astype(np.float64)
        first = np.zeros(len(self.columns))
        first[self.starts] = 1.0
        return seen - first


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
    smoothings = tuple(Smoothing(a) for a in (0.1, 1.0, 10.0))
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
