"""What the benchmarks share: made-up data of known size, turns of timing, and what a record says of itself."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse as sp


def zipf_rows(
    n_rows: int, n_features: int, n_classes: int, cells_per_row: float, seed: int = 0
) -> tuple[sp.csr_array, np.ndarray]:
    """Counts as in language: frequencies by Zipf and Mandelbrot, lengths log-normal, columns in no order.

    In each class some words, others for every class, are three times as frequent.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    share = 1.0 / (np.arange(n_features) + 2.7)
    rng.shuffle(share)
    lengths = np.maximum(rng.lognormal(np.log(cells_per_row) - 0.125, 0.5, n_rows), 1.0).astype(np.int64)
    rows, columns = [], []
    for c in range(n_classes):
        mine = np.flatnonzero(labels == c)
        telling = np.where(np.random.default_rng([seed, c]).random(n_features) < 0.02, 3.0, 1.0)
        ends = np.cumsum(share * telling)
        drawn = rng.random(int(lengths[mine].sum())) * ends[-1]
        rows.append(np.repeat(mine, lengths[mine]))
        columns.append(np.searchsorted(ends, drawn).astype(np.int32))
    at, j = np.concatenate(rows), np.concatenate(columns)
    X = sp.csr_array((np.ones(len(j)), (at, j)), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, labels


def best_seconds(works: Mapping[str, Callable[[], Any]], repeats: int = 5) -> dict[str, float]:
    """The best of several times of each, the works taking turns; a first time, uncounted, compiles."""
    best = dict.fromkeys(works, float("inf"))
    for repeat in range(repeats + 1):
        for name, work in works.items():
            gc.collect()
            start = time.perf_counter()
            work()
            took = time.perf_counter() - start
            if repeat:
                best[name] = min(best[name], took)
    return best


def stamp(command: str) -> dict[str, Any]:
    """When, where and with what a record was made."""
    known = {}
    for name in ("maxdisc", "numpy", "scipy", "scikit-learn", "numba", "polars", "duckdb", "dask"):
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
