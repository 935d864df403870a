"""How a run of the benchmarks is set up: sizes, threads, and the data that its rows share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_seconds, zipf_rows

from maxdisc.numerics.threads import limited_threads

#: Rows, features, classes, and words per row (some of them the same word).
Size = tuple[int, int, int, float]


@contextmanager
def threads_held(n: int) -> Iterator[None]:
    """So many threads for maxdisc, and for the libraries below numpy and scikit-learn."""
    with limited_threads(n), threadpool_limits(n):
        yield


@dataclass
class Run:
    """Sizes and data. S and B are sparse; a part of B is fitted where the whole would take too long.

    ``budget`` is how many seconds one work may take in all its turns: what is slow takes fewer. On a shared
    machine turns differ by half, the best of many by much less.
    """

    quick: bool = False
    threads: int = 2
    repeats: int = 40
    budget: float = 8.0
    S: Size = (20_000, 100_000, 20, 190)
    B: Size = (800_000, 50_000, 100, 95)
    n_fitted: int = 100_000
    dense_shape: tuple[int, int] = (4_000, 20_000)
    n_held_out: int = 4_000

    @classmethod
    def small(cls, threads: int = 2) -> Run:
        """Sizes that take seconds: to see that everything runs, not how fast it is."""
        return cls(
            quick=True,
            threads=threads,
            repeats=1,
            budget=2.0,
            S=(1_200, 3_000, 5, 40),
            B=(4_000, 2_000, 10, 40),
            n_fitted=2_000,
            dense_shape=(200, 500),
            n_held_out=300,
        )

    def best(self, works: Mapping[str, Callable[[], Any]], threads: int | None = None) -> dict[str, float]:
        """The best times of some works, all under the same limit of threads."""
        with threads_held(threads or self.threads):
            return best_seconds(works, self.repeats, self.budget)

    @cached_property
    def sparse(self) -> tuple[Any, np.ndarray]:
        """S and its classes."""
        return zipf_rows(*self.S)

    @cached_property
    def large(self) -> tuple[Any, np.ndarray]:
        """B and its classes."""
        return zipf_rows(*self.B, seed=1)

    @cached_property
    def dense(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A table in single precision, the same with cells missing, and 14 classes."""
        rng = np.random.default_rng(2)
        y = rng.integers(0, 14, self.dense_shape[0])
        X = rng.standard_normal(self.dense_shape, dtype=np.float32)
        X[:, ::20] += 0.5 * y[:, None].astype(np.float32)
        gaps = X.copy()
        gaps[rng.random(X.shape, dtype=np.float32) < 0.01] = np.nan
        return X, gaps, y

    def forget(self) -> None:
        """Give back the memory of all data: rows that run processes of their own need none."""
        for name in ("sparse", "large", "dense"):
            self.__dict__.pop(name, None)
