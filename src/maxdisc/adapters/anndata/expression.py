"""Expression values in chunks of cells: X, a layer or raw, dense or sparse, in memory or on disk."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maxdisc.numerics.matrices import Integers, Matrix, canonical, is_sparse, require_indices
from maxdisc.numerics.switches import batch_size

#: Number of values (stored ones, if sparse) in a chunk.
DENSE_VALUES, SPARSE_VALUES = 2**22, 2**23


@dataclass(frozen=True, eq=False)
class Expression:
    """Expression matrix, read in chunks of cells.

    Chunks end at the same cells wherever the matrix is stored, so sums over them are bit-identical.
    """

    rows: Callable[[slice], Any]
    shape: tuple[int, int]
    var: pd.DataFrame
    per_cell: float
    layer: str | None
    use_raw: bool

    @property
    def names(self) -> npt.NDArray[np.object_]:
        """Names of the genes, shape (D,)."""
        return np.array([str(name) for name in self.var.index], dtype=object)

    def chunks(self, width: int = 0) -> Iterator[tuple[slice, Matrix]]:
        """Yield ranges of cells with their values, CSR or dense; ``width`` is values per cell once padded."""
        step = max(1, int(batch_size(SPARSE_VALUES) // max(self.per_cell, 1.0)))
        if width or self.per_cell >= self.shape[1]:
            step = max(1, batch_size(DENSE_VALUES) // max(width, self.shape[1], 1))
        for start in range(0, self.shape[0], step):
            some = slice(start, min(start + step, self.shape[0]))
            yield some, _numbers(self.rows(some))


def _numbers(X: Any) -> Matrix:
    if hasattr(X, "compute"):
        X = X.compute()
    X = canonical(X) if is_sparse(X) else np.asarray(X)
    if X.dtype.kind not in "fiub":
        raise ValueError(f"the values of cells must be numbers, got {X.dtype}.")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def expression_of(adata: Any, layer: str | None = None, use_raw: bool | None = None) -> Expression:
    """Return the requested matrix; by default raw if there is one, as in scanpy's tests."""
    if not hasattr(adata, "obs") or not hasattr(adata, "var"):
        raise ValueError(f"an AnnData is needed, got {type(adata).__name__}.")
    if layer is not None and use_raw:
        raise ValueError("a layer is not part of raw: give layer=... or use_raw=True, not both.")
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"there is no layer {layer!r}{nearest(layer, list(adata.layers))}")
    if use_raw and adata.raw is None:
        raise ValueError("use_raw=True, but this AnnData has no raw: leave it out, or name a layer.")
    raw = adata.raw is not None and layer is None if use_raw is None else use_raw
    var = adata.raw.var if raw else adata.var
    shape = (adata.n_obs, len(var))
    # Of a view of a file, the part that is viewed is read; of a file, nothing yet.
    X = adata.raw.X if raw else adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError("this AnnData has no X: name a layer.")
    require_indices(X)
    if getattr(X, "format", "csr") != "csr":
        # Cells of such a matrix do not lie together.
        X = canonical(X if is_sparse(X) else X.to_memory())
    return Expression(X.__getitem__, shape, var, _stored(X) / max(shape[0], 1), layer, raw)


def _stored(X: Any) -> float:
    if is_sparse(X):
        return float(X.nnz)
    if hasattr(X, "group"):  # sparse, on disk
        return float(X.group["data"].shape[0])
    return float(X.shape[0]) * X.shape[1]


def require_target(adata: Any, copy: bool) -> None:
    """Raise ``ValueError`` for an AnnData that results cannot be written into."""
    if getattr(adata, "isbacked", False) and copy:
        raise ValueError("a backed AnnData is not copied: leave out copy=True.")
    if getattr(adata, "isbacked", False) and adata.is_view:
        raise ValueError("nothing can be written into a part of a backed AnnData: use its to_memory() first.")


def require_unique(names: npt.NDArray[np.object_]) -> None:
    """Raise ``ValueError`` for repeated gene names."""
    unique, counts = np.unique(names.astype(str), return_counts=True)
    if (counts > 1).any():
        twice = unique[counts > 1]
        raise ValueError(
            f"names of genes must be unique, and {len(twice):,} are not, such as {str(twice[0])!r}: call "
            "adata.var_names_make_unique() first."
        )


def labels_of(adata: Any, column: str) -> tuple[Integers, list[Any]]:
    """Return the group of each cell (-1 without a label) and the groups, in the order of the categories."""
    if column not in adata.obs:
        raise ValueError(f"obs has no column {column!r}{nearest(column, list(adata.obs.columns))}")
    values = adata.obs[column]
    if not isinstance(values.dtype, pd.CategoricalDtype):
        kind = pd.api.types.infer_dtype(values, skipna=True)
        if kind != "string":
            raise ValueError(
                f"column {column!r} of obs holds {values.dtype}, not groups: if they are meant, say "
                f"adata.obs[{column!r}] = adata.obs[{column!r}].astype(str).astype('category')."
            )
        values = values.astype("category")
    codes = values.cat.codes.to_numpy().astype(np.intp)
    if (codes < 0).all():
        raise ValueError(f"no cell has a label in column {column!r} of obs.")
    return codes, values.cat.categories.tolist()


def nearest(name: Any, names: Sequence[Any]) -> str:
    """Return the end of an error message: the closest name, or the available ones."""
    close = difflib.get_close_matches(str(name), [str(n) for n in names], n=1)
    if close:
        return f": did you mean {close[0]!r}?"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f" (there are {', '.join(str(n) for n in names[:8])}{more})." if names else " (there are none)."
