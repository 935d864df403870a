"""Rows of mixed columns: several matrices side by side, each of one kind of column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxdisc.numerics.matrices import Matrix, is_sparse


@dataclass(frozen=True, eq=False)
class Table:
    """Rows whose columns are stored in blocks: dense numbers, or sparse indicators of levels."""

    parts: Sequence[Matrix]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """N rows and D columns."""
        return int(self.parts[0].shape[0]), self.n_columns

    def __getitem__(self, rows: object) -> Table:
        return Table([part[rows] for part in self.parts], self.n_columns)


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Stack matrices or tables with the same columns."""
    first = parts[0]
    if isinstance(first, Table):
        columns = zip(*(part.parts for part in parts), strict=True)
        return Table([stacked(some) for some in columns], first.n_columns)
    return sp.csr_array(sp.vstack(parts)) if is_sparse(first) else np.concatenate(parts)
