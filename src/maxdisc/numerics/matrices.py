"""Array types, and the few things that dense and sparse matrices do differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.numerics.switches import batch_size

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.intp]
Booleans: TypeAlias = npt.NDArray[np.bool_]
# scipy's sparse classes (``sparray`` and ``spmatrix``) share no useful base class for type checkers.
Matrix: TypeAlias = Any

# A block of this many float64 cells (16 MiB) is large against Python's overhead and small against memory.
BLOCK_CELLS = 2**21


def is_sparse(X: Matrix) -> bool:
    """Return whether ``X`` is any of scipy's sparse containers."""
    return bool(sp.issparse(X))


def blocks(length: int, width: int, cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Yield slices over ``length`` items of ``width`` cells each, about ``cells`` cells at a time."""
    step = batch_size(max(1, cells // max(1, width)))
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def on_lines(n_rows: int, n_columns: int) -> Floats:
    """Return an empty table aligned to a cache line.

    Rows read in random order then touch as few lines as possible: 20 numbers lie on 3 lines, not 4.
    """
    line = 64 // 8
    room = np.empty(n_rows * n_columns + line)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + n_rows * n_columns].reshape(n_rows, n_columns)


def canonical(X: Matrix) -> Matrix:
    """Return a sparse matrix as CSR without duplicates, copied if needed; dense input unchanged."""
    if not is_sparse(X):
        return X
    # A new array would not know that it has been looked at before.
    csr = X if isinstance(X, sp.csr_array) else sp.csr_array(X)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def log_sum_exp(x: Floats) -> Floats:
    """Return the log-sum-exp of each row of (n, m), shape (n,); scipy's is slow for few rows."""
    rows, best = np.arange(len(x)), x.argmax(axis=1)
    top = x[rows, best]
    with np.errstate(invalid="ignore"):  # of infinities, which are their own sum
        others = np.exp(x - top[:, None])
    # The largest is 1, and would swallow the others.
    others[rows, best] = 0.0
    return np.where(np.isfinite(top), top + np.log1p(others.sum(axis=1)), top)


def with_data(X: Matrix, data: npt.NDArray[Any]) -> Matrix:
    """Return the sparse matrix of ``X``'s structure whose stored cells are ``data``."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape, copy=False)


def row_totals(X: Matrix, terms: Floats) -> Floats:
    """Sum terms (..., nnz) of the stored cells over each row of a CSR matrix; return shape (..., N)."""
    out = np.zeros((*terms.shape[:-1], X.shape[0]))
    stored = np.flatnonzero(X.indptr[1:] > X.indptr[:-1])
    if len(stored):
        out[..., stored] = np.add.reduceat(terms, X.indptr[stored], axis=-1)
    return out


def column_name(column: int, names: npt.ArrayLike | None = None) -> str:
    """Return how a message calls a column: by its name where there is one, else by its number."""
    return f"column {column}" if names is None else f"column {str(np.asarray(names)[column])!r}"
