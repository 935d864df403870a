"""CPU time of ``DiscriminativeMaxEnt()`` compared with the solvers of scikit-learn's logistic regression.

Run with ``make bench-conditional``. All are fitted to tf-idf rows of the training part of 20 Newsgroups (20
classes) with the same penalty, in one thread. Each solver of scikit-learn has the largest tolerance of a list
at which its objective is within 1e-4 of the optimum; the optimum is that of the dual at a gap of 1e-10.
Solvers take turns, and the least time of each counts, so that other work on the machine matters little.
"""

from __future__ import annotations

import json
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from text import newsgroups
from timing import best_seconds, stamp

from maxdisc import DiscriminativeMaxEnt

RESULTS = Path(__file__).resolve().parent / "results" / "conditional_solvers.json"
WITHIN, GOAL, TURNS = 1e-4, 5.0, 20
#: Slow solvers take fewer turns: they end with this many seconds.
BUDGET = 15.0
TOLERANCES = (0.03, 0.02, 0.01, 0.001, 1e-4, 3e-5, 1e-5)


def objective(model: Any, X: Any, y: np.ndarray) -> float:
    """Log-loss summed over rows, and half the squares of the weights."""
    log_p = model.predict_log_proba(X)
    seen = log_p[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(0.5 * (model.coef_**2).sum() - seen.sum())


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    texts, y = newsgroups("train")
    X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
    optimum = objective(DiscriminativeMaxEnt("dual", tol=1e-10).fit(X, y), X, y)
    models: dict[str, Any] = {"DiscriminativeMaxEnt()": DiscriminativeMaxEnt()}
    for solver in ("lbfgs", "newton-cg", "sag", "saga"):
        for tol in TOLERANCES:
            model = LogisticRegression(solver=solver, tol=tol, max_iter=1000, random_state=0).fit(X, y)
            if objective(model, X, y) <= (1 + WITHIN) * optimum:
                models[f"LogisticRegression, {solver}, tol={tol:g}"] = model
                break
    works = {name: partial(model.fit, X, y) for name, model in models.items()}
    seconds = best_seconds(works, TURNS, BUDGET, time.process_time)
    table = {
        name: {
            "CPU seconds": seconds[name],
            "above the optimum": objective(model, X, y) / optimum - 1,
            "steps": int(np.max(model.n_iter_)),
        }
        for name, model in models.items()
    }
    for name, row in table.items():
        print(
            f"{name:42} {row['CPU seconds']:7.3f} s of CPU, {row['steps']:4} steps, "
            f"{row['above the optimum']:8.1e} above the optimum"
        )
    ours, *theirs = seconds.values()
    print(f"the quickest of scikit-learn takes {min(theirs) / ours:.1f} times as long, goal {GOAL:g}")
    mine = models["DiscriminativeMaxEnt()"]
    record = {
        **stamp("make bench-conditional"),
        "rows, columns, stored cells": [*X.shape, X.nnz],
        "solver": mine.solver_,
        "gap": mine.gap_,
        "fits": table,
        "times as long, quickest of scikit-learn": min(theirs) / ours,
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
