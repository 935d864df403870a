"""The conditional model (DME) on the paper's eleven text rows, beside the paper's DME column.

Two folds, five seeds (the scalings: the first only), scaled counts of full posts. L-BFGS has its defaults,
the scalings stop early on a held-out tenth, as the paper's source (Nigam et al. 1999) advises. Run with
``make bench-dme``.
"""

from __future__ import annotations

import json
import platform
import time
import warnings
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
from paper_rows import text_rows  # which also finds the experiments
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from experiments.paper import PAPER_DME
from maxdisc import DiscriminativeMaxEnt

HERE = Path(__file__).resolve().parent
SEEDS = range(5)
MODELS = {
    "lbfgs": DiscriminativeMaxEnt("lbfgs"),
    "gis, stopped early": DiscriminativeMaxEnt("gis", max_iter=200, early_stopping=True, random_state=0),
    "iis, stopped early": DiscriminativeMaxEnt("iis", max_iter=200, early_stopping=True, random_state=0),
}


def accuracies(model, X, y, seeds):
    for seed in seeds:
        folds = StratifiedKFold(2, shuffle=True, random_state=seed)
        yield 100 * float((cross_val_predict(model, X, y, cv=folds) == y).mean())


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # 200 steps of scaling are meant to be few
    results = {name: {} for name in MODELS}
    seconds = dict.fromkeys(MODELS, 0.0)
    print(f"{'':38} {'paper':>6}" + "".join(f" {name:>24}" for name in MODELS))
    for (row, paper), (X, y) in zip(PAPER_DME.items(), text_rows(), strict=True):
        line = f"{row:38} {paper:6.2f}"
        for name, model in MODELS.items():
            start = time.perf_counter()
            scores = list(accuracies(model, X, y, SEEDS if name == "lbfgs" else range(1)))
            seconds[name] += (time.perf_counter() - start) / len(scores)
            results[name][row] = scores
            line += f" {np.mean(scores):7.2f} ({min(scores):.2f}..{max(scores):.2f})"
        print(line, flush=True)
    means = {name: float(np.mean([np.mean(s) for s in rows.values()])) for name, rows in results.items()}
    print(
        f"{'mean':38} {np.mean(list(PAPER_DME.values())):6.2f}"
        + "".join(f" {m:24.2f}" for m in means.values())
    )
    print(f"{'seconds for all rows':45}" + "".join(f" {s:24.1f}" for s in seconds.values()))
    worst = min(np.mean(results["lbfgs"][row]) - paper for row, paper in PAPER_DME.items())
    print(f"the row that is nearest to the paper's, or furthest behind it: {worst:+.2f}")
    record = {
        "command": "make bench-dme",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("maxdisc", "numpy", "scikit-learn", "scipy")},
        "paper": PAPER_DME,
        "accuracy by seed": results,
        "mean": means,
        "seconds for all rows, 2 folds": seconds,
    }
    (HERE / "results" / "dme_rows.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
