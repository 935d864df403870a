"""What the benchmarks share: made-up data of known size, turns of timing, what a record says of itself."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

Name = TypeVar("Name")
#: As the system's header names them: what is large is part of the heap too, and the heap does not shrink.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
PACKAGES = (
    "maxdisc",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "polars",
    "duckdb",
    "vowpalwabbit",
    "fasttext-wheel",
    "dask",
)


def zipf_rows(
    n_rows: int,
    n_features: int,
    n_classes: int,
    cells_per_row: float,
    seed: int = 0,
    telling: float = 0.02,
) -> tuple[sp.csr_array, np.ndarray]:
    """Counts as in language: frequencies by Zipf and Mandelbrot, lengths log-normal, columns in no order.

    In each class some words (a share of ``telling``), others for every class, are three times as frequent.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    share = 1.0 / (np.arange(n_features) + 2.7)
    rng.shuffle(share)
    lengths = np.maximum(rng.lognormal(np.log(cells_per_row) - 0.125, 0.5, n_rows), 1.0).astype(np.int64)
    rows, columns = [], []
    words = np.arange(n_features, dtype=np.int32)
    for c in range(n_classes):
        mine = np.flatnonzero(labels == c).astype(np.int32)
        own = share * np.where(rng.random(n_features) < telling, 3.0, 1.0)
        # How often each word occurs in the class, and then in which rows: rows come out sorted by column.
        at = np.repeat(mine, lengths[mine])
        rng.shuffle(at)
        rows.append(at)
        columns.append(np.repeat(words, rng.multinomial(len(at), own / own.sum())))
    at, j = np.concatenate(rows), np.concatenate(columns)
    del rows, columns
    return sp.csr_array((np.ones(len(j)), (at, j)), shape=(n_rows, n_features)), labels


def keep_memory() -> bool:
    """Let freed memory be used again, of whatever size; whether the system's allocator can be told so."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return bool(mallopt and mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, 2**31 - 1))


def best_seconds(
    works: Mapping[Name, Callable[[], Any]],
    repeats: int = 5,
    budget: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, float]:
    """The best of several times of each, the works taking turns; a first time, uncounted, compiles.

    A work that has taken its budget of seconds takes no more turns, but each has one that counts.
    """
    best, spent = dict.fromkeys(works, float("inf")), dict.fromkeys(works, 0.0)
    for repeat in range(repeats + 1):
        for name, work in works.items():
            if spent[name] >= budget:
                continue
            gc.collect()
            start = clock()
            work()
            if repeat:
                took = clock() - start
                spent[name] += took
                best[name] = min(best[name], took)
    return best


def stamp(command: str) -> dict[str, Any]:
    """When, where and with what a record was made."""
    known = {}
    for name in PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "versions": known,
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }
