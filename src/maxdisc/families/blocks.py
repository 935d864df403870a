"""Columns of several families: blocks that are each counted, estimated and scored as one matrix.

A block's matrix has a column for each *cell* that a column of the table becomes: itself, an indicator for
each of its levels, or an indicator for missing cells. Moments are kept per block, scores of cells sum to
those of columns, and decisions add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from maxdisc.families import Categorical, Family
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.block_matrix import Table
from maxdisc.numerics.matrices import Floats, Integers


@dataclass(frozen=True, eq=False)
class Block:
    """Columns of one family; levels of one column of the table are adjacent."""

    family: Family
    columns: Integers  # (E,)

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
    """Families of the columns of a table; used wherever a single family could be."""

    blocks: Sequence[Block]
    n_columns: int

    name = "mixed"
    translates = False
    #: Candidates of ``smoothing="auto"``, the same for all columns.
    smoothings = tuple(Smoothing(a) for a in (0.1, 1.0, 10.0, 100.0))
    usual_smoothing = Smoothing(1.0)

    def __repr__(self) -> str:
        return f"Columns({', '.join(f'{n} {name}' for name, n in self.counts().items())})"

    def counts(self) -> dict[str, int]:
        """Return how many columns of the table each family describes."""
        found: dict[str, int] = {}
        for block in self.blocks:
            found[block.family.name] = found.get(block.family.name, 0) + len(block.starts)
        return found

    def require(self, X: Table, names: npt.ArrayLike | None = None, first_row: int = 0) -> None:
        """Raise ``ValueError``, with the column's name and the value, for values outside the support."""
        for block, part in zip(self.blocks, X.parts, strict=True):
            if not block.has_levels:
                block.family.require(part, self.called(block, names), first_row)

    def called(self, block: Block, names: npt.ArrayLike | None) -> npt.NDArray[np.generic]:
        """Return the names of the columns of a block for messages, or their numbers."""
        return np.asarray(np.arange(self.n_columns) if names is None else names)[block.columns]


@dataclass(frozen=True, eq=False)
class MixedMoments:
    """Moments of the blocks of a table; they add like moments."""

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
        """The effective number of rows of equal weight."""
        return self.parts[0].n_rows

    def __add__(self, other: MixedMoments) -> MixedMoments:
        if not isinstance(other, MixedMoments):
            return NotImplemented
        pairs = zip(self.parts, other.parts, strict=True)
        return MixedMoments([a + b for a, b in pairs], self.n_features)

    def nothing(self) -> MixedMoments:
        """Return the moments of no rows."""
        return MixedMoments([part.nothing() for part in self.parts], self.n_features)

    def reindexed(self, positions: Integers, n_classes: int) -> MixedMoments:
        """Return the same moments among ``n_classes`` classes, class c moved to ``positions[c]``."""
        return MixedMoments([part.reindexed(positions, n_classes) for part in self.parts], self.n_features)


#: The moments of one family, or of several.
AnyMoments: TypeAlias = ClassMoments | MixedMoments
#: One family for all features, or a family for each column.
AnyFamily: TypeAlias = Family | Columns
