"""AnnData's h5ad files: columns of obs as a table, values of cells as a matrix, some cells at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from maxdisc.files.batches import Opened
from maxdisc.files.byte_streams import Stream, batch_bytes
from maxdisc.files.places import SourceError
from maxdisc.files.roles import nearest
from maxdisc.numerics.installation import pip_line
from maxdisc.numerics.matrices import Matrix, canonical, is_sparse

try:
    import h5py
    from anndata.io import read_elem, sparse_dataset
except ImportError as error:
    raise ImportError(f"h5ad files need anndata: {pip_line('anndata')}") from error

#: The column with the names of the cells.
CELLS = "obs_names"


def open_h5ad(stream: Stream, columns: Collection[str] | None = None, layer: str | None = None) -> Opened:
    """Open an h5ad file; by default its raw matrix if there is one, else X."""
    name = stream.name
    with _readable(name):
        file = h5py.File(stream.seekable(), "r")
    if "obs" not in file or "var" not in file:
        raise SourceError(
            f"{name} is an HDF5 file, but not an h5ad file: it has no table of obs, or none of var."
        )
    place, values = _place(file, layer, name)
    with _readable(name):
        obs = read_elem(file["obs"])
        genes = [str(gene) for gene in read_elem(file["raw/var" if place == "raw/X" else "var"]).index]
        X = file[place]
        X = sparse_dataset(X) if isinstance(X, h5py.Group) else X
        shape = tuple(int(n) for n in X.shape)
    if shape != (len(obs), len(genes)):
        raise SourceError(
            f"{name} is damaged: {values} is {shape[0]:,} x {shape[1] if len(shape) > 1 else 0:,}, for "
            f"{len(obs):,} cells and {len(genes):,} genes."
        )
    if len(set(genes)) < len(genes):
        twice = next(gene for gene, count in Counter(genes).items() if count > 1)
        raise SourceError(
            f"{name} has more than one gene {twice!r}: call adata.var_names_make_unique() and write it again."
        )
    obs.columns = [str(column) for column in obs.columns]
    obs = obs[[column for column in obs.columns if column != CELLS]]
    obs[CELLS] = [str(cell) for cell in obs.index]
    # A table without columns would have no rows.
    wanted = [column for column in obs.columns if columns is None or column in columns or column == CELLS]
    return Opened(list(obs.columns), _tables(X, obs[wanted], name), shape[0], genes, values)


def _place(file: Any, layer: str | None, name: str) -> tuple[str, str]:
    """Return where the matrix is in the file, and what messages call it."""
    layers = list(file["layers"]) if isinstance(file.get("layers"), h5py.Group) else []
    if layer in layers:
        return f"layers/{layer}", f"layer {layer!r}"
    has_raw = "raw/X" in file and "raw/var" in file
    if layer == "raw" or (layer is None and has_raw):
        if has_raw:
            return "raw/X", "raw"
    elif layer in (None, "X"):
        if "X" in file:
            return "X", "X"
        raise SourceError(f"{name} has no X: say --layer{nearest('X', layers) if layers else '.'}")
    others = [*(["X"] if "X" in file else []), *(["raw"] if has_raw else []), *layers]
    raise SourceError(f"{name} has no layer {layer!r}{nearest(str(layer), others)}")


def _tables(X: Any, obs: Any, name: str) -> Iterator[tuple[pa.Table, Matrix]]:
    with _readable(name):
        if getattr(X, "format", "") == "csc":
            # Cells do not lie together there, so all are read before the first.
            X = canonical(X.to_memory())
        n_cells, width = X.shape
        stored = X.group["data"].shape[0] if hasattr(X, "group") else getattr(X, "nnz", n_cells * width)
    step = max(1, int(batch_bytes() // (12 * max(1.0, stored / max(n_cells, 1)))))
    for start in range(0, n_cells, step):
        some = slice(start, min(start + step, n_cells))
        with _readable(name):
            matrix = _numbers(X[some], name)
            table = pa.Table.from_pandas(obs.iloc[some], preserve_index=False).replace_schema_metadata(None)
        yield table, matrix


def _numbers(X: Any, name: str) -> Matrix:
    if is_sparse(X):
        X = canonical(X)
    if X.dtype.kind not in "fiub":
        raise SourceError(f"{name} holds {X.dtype} in place of the values of cells.")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Whatever HDF5 and its readers make of a file that is damaged, or of another kind, as one line."""
    try:
        yield
    except (SourceError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk, not the content
        told = " ".join(str(error).split())[:200].rstrip(".")
        raise SourceError(f"{name} is not a whole h5ad file: {told}.") from None
