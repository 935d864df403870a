"""Batches of rows of one file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from maxdisc.files.cells import categories, numbers, strings, truths
from maxdisc.files.date_notations import Moments, part_of
from maxdisc.files.readings import Reading
from maxdisc.numerics.matrices import Matrix, is_sparse


@dataclass(frozen=True, eq=False)
class Opened:
    """Open file: names of all columns, and an iterator over its tables."""

    names: list[str]
    tables: Iterator[Any]
    n_rows: int | None = None
    matrix_names: list[str] | None = None
    values: str = ""
    #: Whether the file names its columns, and what was guessed of it, a line each.
    named: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one file with their row numbers, consecutive unless some were left out."""

    table: pa.Table
    source: str
    first_row: int
    matrix: Matrix | None = None
    row_numbers: npt.NDArray[np.intp] | None = None
    matrix_names: list[str] | None = None
    #: How features are read that are not simply columns of plain numbers or words.
    readings: Mapping[str, Reading] = field(default_factory=dict)
    # Dates by column: several features are made from each.
    _moments: dict[str, Moments] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def where(self, row: int) -> str:
        """Return the name of a row of this batch in messages."""
        number = self.first_row + row if self.row_numbers is None else self.row_numbers[row]
        return f"{self.source} row {number}"

    def strings(self, column: str) -> list[str | None]:
        """Cells as text; None where there is nothing at all."""
        return strings(self.table[column], column, self.where)

    def texts(self, column: str) -> list[str]:
        """Documents; a missing one is empty."""
        if column in self.readings and column not in self.table.column_names:
            reading = self.readings[column]
            return reading.texts([self.strings(name) for name in reading.columns])
        return [text or "" for text in self.strings(column)]

    def labels(self, column: str) -> npt.NDArray[np.object_]:
        """Labels without surrounding spaces, shape (n,); None if missing."""
        out = np.empty(len(self), dtype=object)
        out[:] = [(label.strip() or None) if label else None for label in self.strings(column)]
        return out

    def numbers(self, columns: Sequence[str]) -> pa.Table:
        """Return numbers in float64, null where a cell is missing."""
        return pa.table([self.number(column) for column in columns], names=list(columns))

    def number(self, feature: str) -> pa.Array:
        """Return one feature in float64, null where a cell is missing."""
        if feature in self.readings:
            reading = self.readings[feature]
            column = reading.columns[0]
            if not reading.is_date:
                return reading.numbers(self.table[column], self.where)
            if column not in self._moments:
                self._moments[column] = reading.moments(self.table[column], self.where)
            return part_of(self._moments[column], reading.what)
        return numbers(self.table[feature], feature, self.where)

    def typed(self, columns: Sequence[str], words: Collection[str], truth: Collection[str] = ()) -> pa.Table:
        """Return the columns as numbers, categories (``words``) and truth values (``truth``)."""
        readers = {**dict.fromkeys(words, categories), **dict.fromkeys(truth, truths)}
        arrays = [
            readers[name](self.table[name], name, self.where) if name in readers else self.number(name)
            for name in columns
        ]
        return pa.table(arrays, names=list(columns))

    def rows(self, kept: npt.NDArray[np.bool_]) -> Batch:
        """Return some of the rows; messages call them as before."""
        matrix = None if self.matrix is None else self.matrix[kept]
        numbers = self.row_numbers
        if numbers is None:
            numbers = np.arange(self.first_row, self.first_row + len(self))
        return replace(
            self, table=self.table.filter(pa.array(kept)), matrix=matrix, row_numbers=numbers[kept]
        )

    def between(self, start: int, stop: int) -> Batch:
        """Consecutive rows; messages call them as before."""
        matrix = None if self.matrix is None else self.matrix[start:stop]
        numbers = None if self.row_numbers is None else self.row_numbers[start:stop]
        table = self.table.slice(start, stop - start)
        first = self.first_row + start
        return replace(self, table=table, first_row=first, matrix=matrix, row_numbers=numbers)

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
    """Return cells in memory as the table a model takes: text for ``words``, float64 for the others."""
    return pa.table(
        [pa.array(cells, pa.string() if name in words else pa.float64()) for name, cells in columns.items()],
        names=list(columns),
    )


def recut(batches: Iterable[Batch], most_rows: int = 2**16, most_bytes: int = 2**23) -> Iterator[list[Batch]]:
    """Yield runs of rows, bounded in rows and bytes, whose ends depend on the rows alone.

    So sums over runs are bit-identical however the rows are split into files and batches.
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
    """Concatenate documents, tables or matrices of consecutive batches."""
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
