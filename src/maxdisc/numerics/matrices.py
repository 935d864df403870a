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
    """Whether ``X`` is any of scipy's sparse containers."""
    return bool(sp.issparse(X))


def blocks(length: int, width: int, cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Consecutive slices over ``length`` items of ``width`` cells each, about ``cells`` cells at a time.

    Examples
    --------
    >>> from maxdisc.numerics.matrices import blocks
    >>> list(blocks(5, 10, cells=20))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = batch_size(max(1, cells // max(1, width)))
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def on_lines(n_rows: int, n_columns: int) -> Floats:
    """An empty table that begins where a line of the processor's caches does.

    Rows that are read in no order then lie on as few lines as can be: with 20 numbers on 3, not on 4.

    Examples
    --------
    >>> from maxdisc.numerics.matrices import on_lines
    >>> table = on_lines(3, 5)
    >>> table.shape, table.ctypes.data % 64
    ((3, 5), 0)
    """
    line = 64 // 8
    room = np.empty(n_rows * n_columns + line)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + n_rows * n_columns].reshape(n_rows, n_columns)


def canonical(X: Matrix) -> Matrix:
    """A sparse matrix as CSR with one stored value for each cell; dense input as it is. Copies if it must.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from maxdisc.numerics.matrices import canonical
    >>> twice = sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    >>> canonical(twice).data
    array([3.])
    """
    if not is_sparse(X):
        return X
    # A new array would not know that it has been looked at before.
    csr = X if isinstance(X, sp.csr_array) else sp.csr_array(X)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def log_sum_exp(x: Floats) -> Floats:
    """Log of the sum of the exponentials of each row of (n, m), shape (n,); for few, scipy's is slow.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.numerics.matrices import log_sum_exp
    >>> log_sum_exp(np.log([[1.0, 2.0], [1e300, 1e300]])).round(3)
    array([  1.099, 691.469])
    """
    rows, best = np.arange(len(x)), x.argmax(axis=1)
    top = x[rows, best]
    with np.errstate(invalid="ignore"):  # of infinities, which are their own sum
        others = np.exp(x - top[:, None])
    # The largest is 1, and would swallow the others.
    others[rows, best] = 0.0
    return np.where(np.isfinite(top), top + np.log1p(others.sum(axis=1)), top)


def with_data(X: Matrix, data: npt.NDArray[Any]) -> Matrix:
    """The sparse matrix of ``X``'s structure whose stored cells are ``data``."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape, copy=False)


def row_totals(X: Matrix, terms: Floats) -> Floats:
    """Sums over the stored cells of each row of a CSR matrix, whatever is wide about it.

    Parameters
    ----------
    X : csr_array of shape (N, D)
        Whose rows they are.
    terms : ndarray of shape (..., nnz)
        One for each stored cell.

    Returns
    -------
    ndarray of shape (..., N)
        0 for rows that store nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from maxdisc.numerics.matrices import row_totals
    >>> X = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 4.0, 0.0]]))
    >>> row_totals(X, X.data)
    array([3., 0., 4.])
    """
    out = np.zeros((*terms.shape[:-1], X.shape[0]))
    stored = np.flatnonzero(X.indptr[1:] > X.indptr[:-1])
    if len(stored):
        out[..., stored] = np.add.reduceat(terms, X.indptr[stored], axis=-1)
    return out


def column_name(column: int, names: npt.ArrayLike | None = None) -> str:
    """How a message calls a column: by its name where there is one, else by its number."""
    return f"column {column}" if names is None else f"column {str(np.asarray(names)[column])!r}"
