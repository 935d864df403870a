"""Feature selection as such: other classifiers on the best K columns of every ranking, and its stability."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.svm import SVC, LinearSVC

import experiments.rankings  # noqa: F401  # fills the registry
from experiments.gene_methods import rotated, standardised
from experiments.methods import Codes, Matrix
from experiments.records import Key
from experiments.running import Table
from experiments.text_methods import log_scaled, weighted

TEXT_SIZES = (10, 30, 100, 300, 1000, 3000)
GENE_SIZES = (10, 30, 100, 300, 1000)
STABILITY_SIZES = (10, 30, 100, 300)
N_RESAMPLES = 4

#: From the best columns to what is classified: names of classifiers and their accuracies.
Judge = Callable[[Codes], Iterator[tuple[str, float]]]


def text_judge(X: Matrix, y: Codes, held: Matrix, truth: Codes) -> Judge:
    logs, tf_idf = (log_scaled(X, X), log_scaled(held, X)), weighted(X, held)
    models = {
        "naive Bayes": (MultinomialNB(), logs),
        "linear SVM": (LinearSVC(C=0.3, random_state=0), tf_idf),
        "logistic regression": (LogisticRegression(C=10.0, max_iter=300, tol=1e-3), tf_idf),
    }

    def judge(kept: Codes) -> Iterator[tuple[str, float]]:
        for name, (model, (A, B)) in models.items():
            yield name, float(model.fit(A[:, kept], y).score(B[:, kept], truth))

    return judge


def gene_judge(X: Matrix, y: Codes, held: Matrix, truth: Codes) -> Judge:
    A, B = standardised(X, held, "log")

    def judge(kept: Codes) -> Iterator[tuple[str, float]]:
        inside, outside = A[:, kept], B[:, kept]
        yield "naive Bayes", float(GaussianNB(var_smoothing=0.1).fit(inside, y).score(outside, truth))
        inside, outside = rotated(inside, outside)
        yield "linear SVM", float(SVC(kernel="linear", C=10.0).fit(inside, y).score(outside, truth))
        logistic = LogisticRegression(C=10.0, max_iter=2000).fit(inside, y)
        yield "logistic regression", float(logistic.score(outside, truth))

    return judge


def selected(table: Table, key: Key) -> dict[str, Any]:
    """The cell of a ranking: accuracy of each classifier with the best K columns of the training rows."""
    task = table.task(key.row)
    train, test = table.folds(task, key.seed)[key.fold]
    X, y = task.X[train], task.y[train]
    text = table.data != "genes"
    sizes = [k for k in (TEXT_SIZES if text else GENE_SIZES) if k <= X.shape[1]]
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        order = table.methods[key.method].function(X, y, max(sizes))
        seconds = time.process_time() - start
        judge = (text_judge if text else gene_judge)(X, y, task.X[test], task.y[test])
        found: dict[str, dict[str, float]] = {}
        for size in sizes:
            for name, accuracy in judge(np.sort(order[:size])):
                found.setdefault(name, {})[str(size)] = accuracy
    return {"accuracy": found, "seconds": round(seconds, 3)}


# ------------------------------------------------------------------ stability


def mean_jaccard(sets: npt.NDArray[np.bool_]) -> float:
    """Of all pairs of sets, given as rows: the share that they have in common."""
    pairs = combinations(sets, 2)
    return float(np.mean([(a & b).sum() / (a | b).sum() for a, b in pairs]))


def nogueira(sets: npt.NDArray[np.bool_]) -> float:
    """Stability by Nogueira, Sechidis and Brown (2018): 1 for equal sets, 0 on average for random ones."""
    n, d = sets.shape
    often = sets.mean(axis=0)
    share = sets.sum() / n / d
    return float(1 - (n / (n - 1) * often * (1 - often)).mean() / (share * (1 - share)))


def resampled(table: Table, key: Key) -> dict[str, Any]:
    """The cell of a ranking: how much its best K columns agree between random halves of the rows."""
    task = table.task(key.row)
    halves = StratifiedShuffleSplit(N_RESAMPLES, train_size=0.5, random_state=key.seed)
    sizes = [k for k in STABILITY_SIZES if k < task.X.shape[1]]
    chosen = np.zeros((len(sizes), N_RESAMPLES, task.X.shape[1]), dtype=bool)
    start = time.process_time()
    for i, (half, _) in enumerate(halves.split(np.zeros(len(task.y)), task.y)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            order = table.methods[key.method].function(task.X[half], task.y[half], max(sizes))
        for s, size in enumerate(sizes):
            chosen[s, i, order[:size]] = True
    return {
        "jaccard": {str(k): mean_jaccard(sets) for k, sets in zip(sizes, chosen, strict=True)},
        "nogueira": {str(k): nogueira(sets) for k, sets in zip(sizes, chosen, strict=True)},
        "seconds": round(time.process_time() - start, 3),
    }
