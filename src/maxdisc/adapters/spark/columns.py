"""Columns of Arrow as rows: Spark's vectors, arrays of numbers, labels, weights, documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from maxdisc.numerics.matrices import Booleans, Floats, Matrix, is_sparse, require_indices

#: What columns are called on their way to the rows; with no column of weights, all weigh the same.
INPUT, LABEL, WEIGHT = "input", "label", "weight"
#: How Spark stores the kind of a vector.
_SPARSE = 0
_ROW = re.compile(r"\brow (\d+)\b")


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of one partition as Spark delivered them, without rows of weight 0 or without a label."""

    X: Any  # (n, D)
    labels: npt.NDArray[Any]  # (n,)
    weights: Floats | None = None  # (n,)
    n_dense: int = 0
    unlabelled: int = 0
    first_unlabelled: str = ""
    origin: tuple[str, npt.NDArray[np.intp]] | None = None

    def located(self, message: str) -> str:
        """Return a message about one of these rows with the file and row number it comes from."""
        if self.origin is None:
            return _ROW.sub("some row", message)
        source, numbers = self.origin
        return _ROW.sub(lambda found: f"{source} row {numbers[int(found[1])]}", message)


def read_pieces(column: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """Yield a piece for each record batch with rows (columns ``input``, ``label``, optional ``weight``)."""
    for batch in batches:
        labels = batch[LABEL]
        kept = labels.is_valid().to_numpy(zero_copy_only=False)
        if pa.types.is_floating(labels.type):
            kept &= ~np.isnan(labels.to_numpy(zero_copy_only=False))
        unlabelled = int((~kept).sum())
        weights = None
        if WEIGHT in batch.schema.names:
            weights = batch[WEIGHT].to_numpy(zero_copy_only=False)
            if not (np.isfinite(weights) & (weights >= 0)).all():
                raise ValueError("row weights must be finite numbers of at least 0, and some are not.")
            kept &= weights != 0
            weights = weights[kept]
        batch = batch.filter(pa.array(kept))
        if batch.num_rows or unlabelled:
            X, n_dense = features_of(batch[INPUT], column)
            y = batch[LABEL].to_numpy(zero_copy_only=False)
            yield Piece(X, y, weights, n_dense, unlabelled)


def features_of(column: pa.Array, name: str) -> tuple[Any, int]:
    """Return documents or a matrix (sparse if any vector is), and the number of dense rows."""
    if column.null_count:
        raise ValueError(f"column {name!r} is null in {column.null_count} rows or more: fill or drop them.")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.to_pylist(), 0
    if not pa.types.is_struct(column.type):
        return _dense(column, name), len(column)
    kinds, sizes, indices, values = column.flatten()
    sparse = kinds.to_numpy() == _SPARSE
    if not sparse.any():
        return _dense(values, name), len(column)
    return _mixed(sparse, sizes, indices, values, name), int((~sparse).sum())


def _dense(column: pa.Array, name: str) -> Floats:
    width = _only_width(column.value_lengths().to_numpy(), name)
    cells = column.flatten().cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(cells).reshape(len(column), width)


def _mixed(sparse: Booleans, sizes: pa.Array, indices: pa.Array, values: pa.Array, name: str) -> Matrix:
    """Return all rows as sparse ones; a dense one stores all its cells."""
    lengths = values.value_lengths().to_numpy()
    width = _only_width(np.where(sparse, sizes.fill_null(0).to_numpy(), lengths), name)
    starts = np.r_[0, np.cumsum(lengths, dtype=np.int64)]
    columns = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    columns[np.repeat(sparse, lengths)] = indices.flatten().to_numpy()
    cells = values.flatten().to_numpy(zero_copy_only=False)
    X = sp.csr_array((cells, columns, starts), shape=(len(lengths), width))
    try:
        require_indices(X)
    except ValueError as error:  # which row of a piece it is says nothing
        raise ValueError(f"column {name!r}: {_ROW.sub('some row', str(error))}") from None
    return X


def _only_width(widths: npt.NDArray[np.integer], name: str) -> int:
    found = np.unique(widths)
    if len(found) > 1:
        raise ValueError(f"column {name!r} has vectors of {found[0]} and of {found[-1]} numbers.")
    return int(found[0]) if len(found) else 0


def in_form(X: Matrix, sparse: bool, width: int) -> Matrix:
    """Return a matrix in the common form of all pieces: sparse or dense, with this many columns."""
    if not sparse:
        return X.toarray() if is_sparse(X) else X
    X = sp.csr_array(X)
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
