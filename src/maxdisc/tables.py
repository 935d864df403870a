"""Rows of mixed columns: several matrices side by side, each of one kind of column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maxdisc.matrices import Matrix


@dataclass(frozen=True, eq=False)
class Table:
    """Rows whose columns are kept in blocks; it can be cut into rows, as matrices can.

    Parameters
    ----------
    parts : sequence of matrices
        Each of N rows: dense numbers, where NaN is a missing cell, or sparse indicators of levels, where a
        missing cell has none.
    n_columns : int
        D, how many columns the table had before its categories became indicators.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.tables import Table
    >>> table = Table([np.ones((3, 2)), np.zeros((3, 1))], 3)
    >>> table[1:].shape
    (2, 3)
    """

    parts: Sequence[Matrix]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """N rows and D columns."""
        return int(self.parts[0].shape[0]), self.n_columns

    def __getitem__(self, rows: object) -> Table:
        return Table([part[rows] for part in self.parts], self.n_columns)
