"""What nobody can be faster than: every cell read once, or added once to a vector as long as a row."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def _scatter(columns: Any, data: Any, first: int, last: int, out: Any) -> None:
    for p in range(np.uint64(first), np.uint64(last)):
        out[np.uint32(columns[p])] += data[p]


@numba.njit(cache=True, nogil=True, fastmath=True)
def _total(values: Any, first: int, last: int) -> float:
    total = values.dtype.type(0)
    for p in range(first, last):
        total += values[p]
    return total


def _in_ranges(work: Callable[[int, int], Any], size: int, threads: int) -> list[Any]:
    """Work over as many equal ranges as there are threads."""
    edges = np.linspace(0, size, threads + 1).astype(np.int64).tolist()
    if threads == 1:
        return [work(0, size)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, edges[:-1], edges[1:]))


def scattered(X: Any, threads: int = 1) -> np.ndarray:
    """Sums of the columns of CSR rows, whatever their classes: a private vector for each thread."""

    def part(first: int, last: int) -> np.ndarray:
        out = np.zeros(X.shape[1])
        _scatter(X.indices, X.data, first, last, out)
        return out

    return np.sum(_in_ranges(part, X.nnz, threads), axis=0)


def read(values: np.ndarray, threads: int = 1) -> float:
    """The sum of all cells of a dense table, in one pass over its memory."""
    flat = values.reshape(-1)
    return float(sum(_in_ranges(lambda first, last: _total(flat, first, last), flat.size, threads)))
