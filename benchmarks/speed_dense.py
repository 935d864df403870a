"""Rows of the table of speed that are about dense tables in single precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from comparing import Comparison, Row, at_least, at_most
from floors import read
from sklearn.naive_bayes import GaussianNB
from speed_runs import Run
from speed_sparse import both_moments, counted, fitted

from maxdisc import MaxDiscClassifier

ONE_READ = "one read of the table"
PEER = "GaussianNB.fit"


def beside_one_read(
    run: Run, what: str, work: Callable[[np.ndarray, np.ndarray], Any], threads: int
) -> Iterable[Row]:
    """A work on the table, and on the same with cells missing, beside one read and GaussianNB."""
    X, gaps, y = run.dense
    seconds = run.best(
        {
            "plain": lambda: work(X, y),
            "gaps": lambda: work(gaps, y),
            "np.sum": lambda: X.sum(),
            "numba": lambda: read(X, threads),
            PEER: lambda: GaussianNB().fit(X, y),
        },
        threads,
    )
    goals = threads == run.threads
    facts = {"shape": X.shape, "classes": int(y.max()) + 1, "one thread by nature": [PEER]}
    yield Row.timed(
        f"{what}, {counted(threads)}",
        {**seconds, "ours": seconds["plain"], ONE_READ: min(seconds["np.sum"], seconds["numba"])},
        [
            Comparison(ONE_READ, None, "floor", at_most(3.0) if goals else None),
            Comparison(PEER, None, "peer", at_least(7.0) if goals else None),
        ],
        threads=threads,
        facts=facts,
    )
    yield Row.timed(
        f"{what}, 1 % of the cells missing, {counted(threads)}",
        {"ours": seconds["gaps"], "no cell missing": seconds["plain"]},
        [Comparison("no cell missing", None, "floor", at_most(1.3) if goals else None)],
        threads=threads,
        facts=facts | {"missing": float(np.isnan(gaps).mean())},
    )


def whole_fit(run: Run) -> Iterable[Row]:
    def fit(X: np.ndarray, y: np.ndarray) -> Any:
        size = min(1000, X.shape[1])
        model = MaxDiscClassifier("gaussian", n_features=size, evidence="raw", smoothing=1.0)
        return fitted(model, X, y)

    rows, columns = run.dense_shape
    return beside_one_read(run, f"dense fit, {rows:,} x {columns:,} float32", fit, run.threads)


def moments(run: Run, threads: int) -> Iterable[Row]:
    return beside_one_read(run, "class moments of the same table", both_moments, threads)
