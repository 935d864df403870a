"""Some rows of one file, and what their cells mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from maxdisc.files.cells import categories, numbers, strings, truths
from maxdisc.numerics.matrices import Matrix, is_sparse


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
    matrix_names : list of str or None
        What the columns of the matrices are called, where they have names.
    values : str
        Which of several matrices it is, in words.
    """

    names: list[str]
    tables: Iterator[Any]
    n_rows: int | None = None
    matrix_names: list[str] | None = None
    values: str = ""


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
        matrix : matrix, optional
            The numbers, where the file holds them so (svmlight, h5ad).
        row_numbers : ndarray of shape (n,), optional
            The numbers of the rows in their file, where some between them were left out.
        matrix_names : list of str, optional
            What the columns of the matrix are called.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from maxdisc.files import Batch
    >>> batch = Batch(pa.table({"size": ["3", "n/a"], "kind": ["ham", ""]}), "mail.csv", first_row=41)
    >>> batch.where(1), batch.labels("kind").tolist(), batch.numbers(["size"])["size"].to_pylist()
    ('mail.csv row 42', ['ham', None], [3.0, None])
    """

    table: pa.Table
    source: str
    first_row: int
    matrix: Matrix | None = None
    row_numbers: npt.NDArray[np.intp] | None = None
    matrix_names: list[str] | None = None

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

    def typed(self, columns: Sequence[str], words: Collection[str], truth: Collection[str] = ()) -> pa.Table:
        """Columns of numbers, of words (categories, even where they look like numbers) and of truth values.

        Parameters
        ----------
        columns : sequence of str
            Which columns, in that order.
        words, truth : collection of str
            Those of them that are no numbers.
        """
        readers = {**dict.fromkeys(words, categories), **dict.fromkeys(truth, truths)}
        arrays = [readers.get(name, numbers)(self.table[name], name, self.where) for name in columns]
        return pa.table(arrays, names=list(columns))

    def rows(self, kept: npt.NDArray[np.bool_]) -> Batch:
        """Some of the rows; messages call them as before."""
        matrix = None if self.matrix is None else self.matrix[kept]
        numbers = self.row_numbers
        if numbers is None:
            numbers = np.arange(self.first_row, self.first_row + len(self))
        table = self.table.filter(pa.array(kept))
        return Batch(table, self.source, self.first_row, matrix, numbers[kept], self.matrix_names)

    def between(self, start: int, stop: int) -> Batch:
        """Consecutive rows; messages call them as before."""
        matrix = None if self.matrix is None else self.matrix[start:stop]
        numbers = None if self.row_numbers is None else self.row_numbers[start:stop]
        table = self.table.slice(start, stop - start)
        return Batch(table, self.source, self.first_row + start, matrix, numbers, self.matrix_names)

    def row_bytes(self) -> npt.NDArray[np.int64]:
        """About how many bytes the cells of each row take, shape (n,)."""
        sizes = np.full(len(self), 8 * self.table.num_columns, dtype=np.int64)
        for column in self.table.columns:
            if column.type in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
                sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
        if self.matrix is None:
            return sizes
        if not is_sparse(self.matrix):
            return sizes + self.matrix.itemsize * self.matrix.shape[1]
        return sizes + 12 * np.diff(self.matrix.indptr)


def table_of(columns: Mapping[str, Sequence[Any]], words: Collection[str]) -> pa.Table:
    """Cells in memory as the table that a model takes: text in columns of words, float64 in others.

    Parameters
    ----------
    columns : mapping of str to sequence
        Cells by column; None where one is missing.
    words : collection of str
        The columns of text.

    Examples
    --------
    >>> from maxdisc.files import table_of
    >>> table_of({"age": [61.0, None], "ward": ["north", "south"]}, {"ward"}).schema.types
    [DataType(double), DataType(string)]
    """
    return pa.table(
        [pa.array(cells, pa.string() if name in words else pa.float64()) for name, cells in columns.items()],
        names=list(columns),
    )


def recut(batches: Iterable[Batch], most_rows: int = 2**16, most_bytes: int = 2**23) -> Iterator[list[Batch]]:
    """Runs of rows, bounded in rows and bytes, that end at places which the rows alone decide.

    However the rows are shared out among files and batches, the runs are the same; so are sums over them, to
    the last bit.

    Parameters
    ----------
    batches : iterable of Batch
        Rows, in order.
    most_rows, most_bytes : int
        How much a run may hold; a row that is larger has a run to itself.

    Yields
    ------
    list of Batch
        The pieces of a run, each of one file.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from maxdisc.files import Batch, recut
    >>> table = pa.table({"size": [1, 2, 3, 4, 5]})
    >>> halves = [Batch(table.slice(0, 2), "a.csv", 1), Batch(table.slice(2), "b.csv", 1)]
    >>> [[piece.where(0) for piece in run] for run in recut(halves, most_rows=3)]
    [['a.csv row 1', 'b.csv row 1'], ['b.csv row 2']]
    """
    run: list[Batch] = []
    n_rows = n_bytes = 0
    for batch in batches:
        ends = np.cumsum(batch.row_bytes())
        start = 0
        while start < len(batch):
            before = int(ends[start - 1]) if start else 0
            fitting = int(np.searchsorted(ends, before + most_bytes - n_bytes, side="right"))
            stop = min(max(fitting, start), start + most_rows - n_rows, len(batch))
            if stop == start and run:
                yield run
                run, n_rows, n_bytes = [], 0, 0
                continue
            stop = max(stop, start + 1)
            run.append(batch.between(start, stop))
            n_rows, n_bytes = n_rows + stop - start, n_bytes + int(ends[stop - 1]) - before
            start = stop
    if run:
        yield run


def joined(parts: Sequence[Any]) -> Any:
    """Documents, tables or matrices of consecutive batches as one.

    Examples
    --------
    >>> from maxdisc.files import joined
    >>> joined([["a document"], ["another", "a third"]])
    ['a document', 'another', 'a third']
    """
    if isinstance(parts[0], list):
        return list(chain.from_iterable(parts))
    if isinstance(parts[0], pa.Table):
        return pa.concat_tables(parts)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    wide = [
        sp.csr_array((part.data, part.indices, part.indptr), shape=(part.shape[0], width)) for part in parts
    ]
    return sp.csr_array(sp.vstack(wide))
