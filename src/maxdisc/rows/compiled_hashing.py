"""Hashes of the rows of a CSR matrix: those of ``row_sources.row_hashes``, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiling import inlined, kernel


@inlined
def _scrambled(word: Any) -> Any:
    """The finaliser of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def hash_rows(indptr: Any, columns: Any, data: Any, rows: Any, out: Any) -> None:
    """A sum of one mixed word for each cell that is not zero, mixed again, for each of some rows."""
    missing = np.float64(np.nan).view(np.uint64)
    for i in range(rows.size):
        total, row = np.uint64(0), rows[i]
        for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            value = np.float64(data[p])
            bits = value.view(np.uint64) if value == value else missing
            word = _scrambled(bits ^ _scrambled(np.uint64(np.uint32(columns[p])) + np.uint64(1)))
            total += word if value != 0 else np.uint64(0)
        out[i] = _scrambled(total)
