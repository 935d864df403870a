"""Accuracy against the number of features kept: the paper's plot, on held-out rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

from experiments.methods import method
from experiments.records import Key
from experiments.running import Table
from experiments.text_methods import frequencies, log_scaled
from maxdisc import MaxDiscClassifier

#: Shares of the words that are kept.
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def paper(n_features: int) -> MaxDiscClassifier:
    return MaxDiscClassifier("exponential", divergence="jeffreys", evidence="raw", n_features=n_features)


def poisson(evidence: str, **settings: Any) -> Callable[[int], MaxDiscClassifier]:
    def model(n_features: int) -> MaxDiscClassifier:
        return MaxDiscClassifier("poisson", evidence=evidence, n_features=n_features, **settings)

    return model


method("paths", "memd_j", "MeMd-J", ours=True)(paper)
for evidence in ("raw", "calibrated", "refined"):
    method("paths", evidence, f"Poisson, {evidence}", ours=True)(poisson(evidence))
for evidence in ("raw", "calibrated"):
    title = f"Poisson, {evidence}, rao, redundancy 1"
    method("paths", f"{evidence}_rao", title, ours=True, quick=False)(
        poisson(evidence, divergence="rao", redundancy=1.0)
    )


def swept(table: Table, key: Key) -> dict[str, Any]:
    """The cell of a model: accuracy with each share of the words, best first."""
    task = table.task(key.row)
    train, test = table.folds(task, key.seed)[key.fold]
    X, y, held = task.X[train], task.y[train], task.X[test]
    if key.method == "memd_j":
        A, B = frequencies(X), frequencies(held)
    else:
        A, B = log_scaled(X, X), log_scaled(held, X)
    start = time.process_time()
    found = {}
    for share in SHARES:
        size = max(round(share * X.shape[1]), 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = table.methods[key.method].function(size).fit(A, y)
        found[str(share)] = float(model.score(B, task.y[test]))
    return {"accuracy": found, "features": X.shape[1], "seconds": round(time.process_time() - start, 3)}
