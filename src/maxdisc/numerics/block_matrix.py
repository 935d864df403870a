"""Rows of mixed columns: several matrices side by side, each of one kind of column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxdisc.numerics.matrices import Matrix, is_sparse


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
    >>> from maxdisc.numerics.block_matrix import Table
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


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Matrices or tables of the same columns, one below the other.

    Parameters
    ----------
    parts : sequence of matrices, or of Table
        All dense, all sparse, or all tables.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.numerics.block_matrix import stacked
    >>> stacked([np.zeros((2, 3)), np.ones((1, 3))]).shape
    (3, 3)
    """
    first = parts[0]
    if isinstance(first, Table):
        columns = zip(*(part.parts for part in parts), strict=True)
        return Table([stacked(some) for some in columns], first.n_columns)
    return sp.csr_array(sp.vstack(parts)) if is_sparse(first) else np.concatenate(parts)
