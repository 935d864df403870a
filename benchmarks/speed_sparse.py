"""Rows of the table of speed that are about sparse counts: class sums, whole fits, the K path, prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from comparing import Comparison, Row, at_least, at_most
from floors import scattered
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC
from speed_runs import Run, threads_held

from maxdisc import MaxDiscClassifier, Smoothing
from maxdisc.decisions.linear import ranked_decision, sweep
from maxdisc.divergences import js_gm
from maxdisc.families import Gaussian, Poisson
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.counting import class_moments
from maxdisc.selection.fold_models import size_grid
from maxdisc.selection.held_out import band_edges

#: Sizes on the path of numbers of features.
N_SIZES = 50
#: So many of the most frequent words are left out where few cells are to be kept: 4 in 100.
STOP_WORDS = 0.04


def sized(X: Any, y: np.ndarray) -> dict[str, int]:
    """What a record says of sparse rows."""
    return {"rows": X.shape[0], "features": X.shape[1], "classes": len(np.unique(y)), "cells": X.nnz}


def both_moments(X: Any, y: np.ndarray) -> ClassMoments:
    """Sums and sums of squares of every class and feature."""
    return class_moments(Gaussian().statistics, X, y, int(y.max()) + 1, powers=True)


def raw_model(**more: Any) -> MaxDiscClassifier:
    return MaxDiscClassifier("poisson", **{"evidence": "raw", "smoothing": 0.1, **more})


def fitted(model: MaxDiscClassifier, X: Any, y: np.ndarray) -> Any:
    """A model with its decision, which a fit may leave to whoever asks first."""
    return model.fit(X, y).decision_


def class_sums(
    run: Run, name: str, data: tuple[Any, np.ndarray], threads: int, of_floor: float, of_peer: float
) -> Row:
    X, y = data
    goals = threads == run.threads
    floor = f"all cells into one vector, {threads} threads" if threads > 1 else "all cells into one vector"
    seconds = run.best(
        {
            "ours": lambda: both_moments(X, y),
            floor: lambda: scattered(X, threads),
            "MultinomialNB.fit": lambda: MultinomialNB().fit(X, y),
        },
        threads,
    )
    others = [
        Comparison(floor, None, "floor", at_most(of_floor) if goals else None),
        Comparison("MultinomialNB.fit", None, "peer", at_least(of_peer) if goals else None),
    ]
    what = f"class sums of CSR, both moments, {name}, {counted(threads)}"
    facts = sized(X, y) | {"one thread by nature": ["MultinomialNB.fit"]}
    return Row.timed(what, seconds, others, threads=threads, facts=facts)


def counted(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def sums_small(run: Run, threads: int) -> Row:
    return class_sums(run, "S", run.sparse, threads, 3, 5)


def sums_large(run: Run, threads: int) -> Row:
    return class_sums(run, "B", run.large, threads, 6, 15)


def choosing_nothing(X: Any, y: np.ndarray) -> None:
    """What scikit-learn's selector and its classifier take, with a number of features that is given."""
    SelectKBest(chi2, k=min(1000, X.shape[1])).fit(X, y)
    MultinomialNB().fit(X, y)


def whole_fits(run: Run) -> Iterable[Row]:
    """Raw and calibrated, with their peers all in turns."""
    X, y = run.sparse
    chosen = "SelectKBest(chi2).fit + MultinomialNB.fit"
    seconds = run.best(
        {
            "raw": lambda: fitted(raw_model(), X, y),
            "calibrated": lambda: fitted(raw_model(evidence="calibrated"), X, y),
            chosen: lambda: choosing_nothing(X, y),
            "LinearSVC.fit": lambda: LinearSVC().fit(X, y),
        }
    )
    facts = sized(X, y) | {"one thread by nature": [chosen, "LinearSVC.fit"]}
    raw = [
        Comparison(chosen, None, goal=at_most(1.0)),
        Comparison("LinearSVC.fit", None, goal=at_most(1 / 20)),
    ]
    calibrated = [
        Comparison("raw", None, goal=at_most(2.0)),
        Comparison("LinearSVC.fit", None, goal=at_most(1 / 8)),
    ]
    n_tried = {"raw": len(size_grid(X.shape[1])), "calibrated": len(band_edges(X.shape[1]))}
    for what, others in (("raw", raw), ("calibrated", calibrated)):
        yield Row.timed(
            f"whole fit on S, {what} evidence: sums, ranking, 5 folds, {n_tried[what]} sizes",
            {**seconds, "ours": seconds[what]},
            others,
            threads=run.threads,
            facts=facts,
        )


def path(run: Run, threads: int) -> Row:
    """All sizes on held-out rows, by a decision of all features, beside one prediction with all of them."""
    X, y = run.sparse
    n = run.n_held_out
    T, held = sp.csr_array(X[:n]), y[:n]
    moments = class_moments(Poisson().statistics, X[n:], y[n:], int(y.max()) + 1)
    _, decision = ranked_decision(Poisson(), moments, Smoothing(0.1), js_gm)
    sizes = np.unique(np.geomspace(1, X.shape[1], N_SIZES).round().astype(np.int64))
    if len(sizes) < N_SIZES:  # small sizes fall together: as many sizes, from a later beginning
        sizes = np.unique(np.geomspace(N_SIZES, X.shape[1], N_SIZES).round().astype(np.int64))
    weights = np.ones(n)
    dense = np.zeros((X.shape[1], decision.n_classes))
    dense[decision.columns] = decision.weights[0].T
    bias = decision.log_prior - decision.baseline.sum(axis=1)
    one = "one scipy prediction, all features"
    seconds = run.best(
        {
            "ours": lambda: sweep(decision, T, held, weights, sizes),
            one: lambda: (T @ dense + bias).argmax(axis=1),
        },
        threads,
    )
    right = float(((T @ dense + bias).argmax(axis=1) == held).sum())
    if sweep(decision, T, held, weights, sizes).correct[-1] != right:
        raise AssertionError("the path does not end where the prediction is")
    goal = at_most(1.5) if threads == run.threads else None
    return Row.timed(
        f"K path, {len(sizes)} sizes, {n:,} held-out rows of S, {counted(threads)}",
        seconds,
        [Comparison(one, None, "floor", goal)],
        threads=threads,
        facts=sized(T, held) | {"sizes": len(sizes), "one thread by nature": [one]},
    )


def without_frequent(X: Any) -> Any:
    """The same rows, the cells of the most frequent words emptied, as if they were stop words."""
    cells = np.bincount(X.indices, minlength=X.shape[1])
    kept = np.ones(X.shape[1], dtype=bool)
    kept[np.argsort(-cells, kind="stable")[: int(STOP_WORDS * X.shape[1])]] = False
    some = X.copy()
    some.data[~kept[X.indices]] = 0.0
    some.eliminate_zeros()
    return some


def prediction(run: Run, threads: int) -> Row:
    X, y = run.sparse
    model = raw_model(n_features=X.shape[1] // 10).fit(without_frequent(X), y)
    peer = MultinomialNB().fit(X, y)
    kept = np.zeros(X.shape[1], dtype=bool)
    kept[model.ranking_[: model.n_selected_]] = True
    share = float(kept[X.indices].mean())
    all_of_them = "MultinomialNB.predict, all features"
    seconds = run.best({"ours": lambda: model.predict(X), all_of_them: lambda: peer.predict(X)}, threads)
    goal = at_least(3.0) if threads == run.threads else None
    return Row.timed(
        f"predict S, {model.n_selected_:,} kept features hold {share:.1%} of the cells, {counted(threads)}",
        seconds,
        [Comparison(all_of_them, None, goal=goal)],
        threads=threads,
        facts=sized(X, y) | {"share of cells": share, "one thread by nature": [all_of_them]},
    )


def against_one_thread(run: Run, what: str, work: Callable[[], Any], facts: dict[str, Any]) -> Row:
    """The same work under two limits of threads, in turns."""

    def limited(threads: int) -> None:
        with threads_held(threads):
            work()

    seconds = run.best({"ours": partial(limited, 2), "1 thread": partial(limited, 1)}, 2)
    others = [Comparison("1 thread", None, goal=at_least(1.6))]
    return Row.timed(f"2 threads, {what}", seconds, others, threads=2, facts=facts)


def threads_on_sums(run: Run) -> Row:
    X, y = run.large
    return against_one_thread(run, "class sums, B", lambda: both_moments(X, y), sized(X, y))


def threads_on_fit(run: Run) -> Row:
    X, y = run.large
    X, y = X[: run.n_fitted], y[: run.n_fitted]
    what = f"whole raw fit, {len(y):,} rows of B"
    return against_one_thread(run, what, lambda: fitted(raw_model(), X, y), sized(X, y))
