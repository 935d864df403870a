"""Array types, and operations that differ between dense and sparse matrices."""

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


#: What can be done about arrays of a sparse matrix that do not fit each other.
_AGAIN = ": build X again, and leave its arrays as they are."


def require_indices(X: Matrix) -> None:
    """Raise ``ValueError``, naming the row, for a sparse matrix whose indices lead out of it.

    scipy looks at little when a matrix is built, and at nothing when its arrays are changed. Compiled code,
    scipy's and ours, goes where they point, so this comes before any of it.
    """
    if not is_sparse(X) or X.ndim != 2:
        return
    if X.format in ("lil", "dok"):  # lists and a dict, of which no more is read than there is
        X = X.tocsr()
    if X.format in ("csr", "csc", "bsr"):
        _require_lines(X)
    elif X.format == "coo":
        _require_cells(X)
    elif X.format == "dia":
        _require_integers("X.offsets", X.offsets)
        if X.data.ndim != 2 or len(X.data) != len(X.offsets):
            raise ValueError(f"X has {len(X.offsets)} diagonals, but data of shape {X.data.shape}{_AGAIN}")


def _require_lines(X: Matrix) -> None:
    """Check a matrix that is stored by rows (CSR), by columns (CSC) or by rows of blocks (BSR)."""
    line, across = ("column", "row") if X.format == "csc" else ("row", "column")
    n_lines, n_across = X.shape[::-1] if X.format == "csc" else X.shape
    indptr, indices, shape = X.indptr, X.indices, X.data.shape
    _require_integers("X.indptr", indptr)
    _require_integers("X.indices", indices)
    if len(shape) != (3 if X.format == "bsr" else 1) or 0 in shape[1:]:
        raise ValueError(f"X.data has the shape {shape}, which that of a {X.format} matrix cannot be{_AGAIN}")
    height, width = shape[1:] or (1, 1)
    last = max(len(indptr) - 2, 0)
    if (len(indptr) - 1) * height != n_lines:
        raise ValueError(
            f"X has {n_lines} {line}s, but {line} {last * height} is its last by X.indptr{_AGAIN}"
        )
    if indptr[0] != 0:
        raise ValueError(f"{line} 0 of X begins at stored cell {indptr[0]}, not at 0{_AGAIN}")
    backwards = indptr[1:] < indptr[:-1]
    if backwards.any():
        at = int(np.argmax(backwards))
        ends = f"ends at stored cell {indptr[at + 1]}, before it begins at {indptr[at]}"
        raise ValueError(f"{line} {at * height} of X {ends}{_AGAIN}")
    n_cells = min(len(indices), shape[0])
    if not indptr[-1] == len(indices) == shape[0]:
        # The first that lacks cells; else the last, after which there are cells of no row.
        at = int(np.searchsorted(indptr, n_cells, side="right")) - 1 if indptr[-1] > n_cells else last
        counts = f"X.indptr ends at {indptr[-1]}, with {len(indices)} indices and {shape[0]} values"
        raise ValueError(f"{line} {at * height} of X does not end where its cells do: {counts}{_AGAIN}")
    outside = _first_outside(indices, n_across // width)
    if outside is not None:
        owner = int(np.searchsorted(indptr, outside, side="right")) - 1
        found = f"{across} {int(indices[outside]) * width}, but X has {n_across} {across}s"
        raise ValueError(f"{line} {owner * height} of X has a cell in {found}{_AGAIN}")


def _require_cells(X: Matrix) -> None:
    """Check a matrix that is stored cell by cell (COO)."""
    for line, found, n_lines in zip(("row", "column"), X.coords, X.shape, strict=True):
        _require_integers("X.coords", found)
        if len(found) != len(X.data):
            raise ValueError(f"X has {len(found)} {line}s of cells, but {len(X.data)} values{_AGAIN}")
        at = _first_outside(found, n_lines)
        if at is not None:
            raise ValueError(f"cell {at} of X is in {line} {found[at]}, but X has {n_lines} {line}s{_AGAIN}")


def _require_integers(name: str, found: Any) -> None:
    if not isinstance(found, np.ndarray) or found.ndim != 1 or found.dtype not in (np.int32, np.int64):
        is_array = isinstance(found, np.ndarray)
        shown = f"{found.dtype} of shape {found.shape}" if is_array else type(found).__name__
        raise ValueError(f"{name} must be int32 or int64 of one axis, got {shown}{_AGAIN}")


def _first_outside(indices: Integers, n: int) -> int | None:
    """Return the position of the first index that is negative or not below ``n``, if there is one."""
    # A negative one is a very large one without its sign: one look for both.
    unsigned: Any = indices.view(np.uint32 if indices.dtype == np.int32 else np.uint64)
    if unsigned.max(initial=0) < n or not len(indices):
        return None
    return int(np.argmax(unsigned >= n))


def canonical(X: Matrix) -> Matrix:
    """Return a sparse matrix as CSR without duplicates, copied if needed; dense input unchanged.

    Raise ``ValueError`` where indices lead out of it.
    """
    if not is_sparse(X):
        return X
    require_indices(X)
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
    """Return the name of a column for messages, or its number."""
    return f"column {column}" if names is None else f"column {str(np.asarray(names)[column])!r}"
