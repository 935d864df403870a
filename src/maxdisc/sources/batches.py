"""Some rows of one file, and what their cells mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from maxdisc.matrices import Matrix
from maxdisc.sources.cells import numbers, strings


@dataclass(frozen=True, eq=False)
class Opened:
    """A file that is being read.

    Parameters
    ----------
    names : list of str
        All its columns, also those that are not read.
    tables : iterator of pyarrow.Table, or of (Table, sparse matrix)
        Its rows; cells as text or bytes where the format has no types.
    n_rows : int or None
        How many, where that is known beforehand.
    """

    names: list[str]
    tables: Iterator[Any]
    n_rows: int | None = None


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one file, consecutive unless some were left out.

    Parameters
    ----------
        table : pyarrow.Table
            Cells as the file has them.
        source : str
            What messages call the file.
        first_row : int
            The number of the first row in its file; rows count from 1, without the row of names.
        matrix : sparse matrix, optional
            The numbers, where the file holds them so (svmlight).
        row_numbers : ndarray of shape (n,), optional
            The numbers of the rows in their file, where some between them were left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from maxdisc.sources import Batch
    >>> batch = Batch(pa.table({"size": ["3", "n/a"], "kind": ["ham", ""]}), "mail.csv", first_row=41)
    >>> batch.where(1), batch.labels("kind").tolist(), batch.numbers(["size"])["size"].to_pylist()
    ('mail.csv row 42', ['ham', None], [3.0, None])
    """

    table: pa.Table
    source: str
    first_row: int
    matrix: Matrix | None = None
    row_numbers: npt.NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def where(self, row: int) -> str:
        """How a message calls a row of this batch."""
        number = self.first_row + row if self.row_numbers is None else self.row_numbers[row]
        return f"{self.source} row {number}"

    def strings(self, column: str) -> list[str | None]:
        """Cells as text; None where there is nothing at all."""
        return strings(self.table[column], column, self.where)

    def texts(self, column: str) -> list[str]:
        """Documents; a missing one is empty."""
        return [text or "" for text in self.strings(column)]

    def labels(self, column: str) -> npt.NDArray[np.object_]:
        """Labels without the spaces around them, shape (n,); None where there is none."""
        out = np.empty(len(self), dtype=object)
        out[:] = [(label.strip() or None) if label else None for label in self.strings(column)]
        return out

    def numbers(self, columns: Sequence[str]) -> pa.Table:
        """Numbers in float64, null where a cell is missing."""
        arrays = [numbers(self.table[column], column, self.where) for column in columns]
        return pa.table(arrays, names=list(columns))

    def rows(self, kept: npt.NDArray[np.bool_]) -> Batch:
        """Some of the rows; messages call them as before."""
        matrix = None if self.matrix is None else self.matrix[kept]
        numbers = self.row_numbers
        if numbers is None:
            numbers = np.arange(self.first_row, self.first_row + len(self))
        table = self.table.filter(pa.array(kept))
        return Batch(table, self.source, self.first_row, matrix, numbers[kept])


def joined(parts: Sequence[Any]) -> Any:
    """Documents, tables or sparse matrices of consecutive batches as one.

    Examples
    --------
    >>> from maxdisc.sources import joined
    >>> joined([["a document"], ["another", "a third"]])
    ['a document', 'another', 'a third']
    """
    if isinstance(parts[0], list):
        return list(chain.from_iterable(parts))
    if isinstance(parts[0], pa.Table):
        return pa.concat_tables(parts)
    width = max(part.shape[1] for part in parts)
    wide = [
        sp.csr_array((part.data, part.indices, part.indptr), shape=(part.shape[0], width)) for part in parts
    ]
    return sp.csr_array(sp.vstack(wide))
