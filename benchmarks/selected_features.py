"""How many features the default selects: ``make bench-selected``.

On each fold of each corpus: features, accuracy and log-loss of the default and of ``rule="best"``, and the
ratio of the numbers of features that the default selects on two random halves of the training rows.
``MAXDISC_DATA`` names the folder of the data.
"""

from __future__ import annotations

import argparse
import json
import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.default_data import CORPORA, Rows, make_text_trials
from maxdisc import MaxDiscClassifier

RESULTS = Path(__file__).resolve().parent / "results" / "selected_features.json"


def judge(rule: str, train: Rows, test: Rows) -> dict[str, float]:
    """Return features, accuracy in percent and log-loss on the test rows."""
    model = MaxDiscClassifier(rule=rule).fit(train.X, train.y)
    P = model.predict_proba(test.X)
    known = np.isin(test.y, model.classes_)
    return {
        "features": model.n_selected_,
        "accuracy": 100 * float((model.classes_[P.argmax(axis=1)] == test.y).mean()),
        "log_loss": float(log_loss(test.y[known], P[known], labels=model.classes_)),
    }


def ratio_of_halves(train: Rows, seed: int = 0) -> float:
    """Return the larger number of features over the smaller one, of two halves of the rows."""
    # Classes of a single row are one stratum: they cannot be in both halves.
    _, place, count = np.unique(train.y, return_inverse=True, return_counts=True)
    strata = np.where(count[place] < 2, -1, place)
    halves = train_test_split(train.X, train.y, test_size=0.5, stratify=strata, random_state=seed)
    sizes = [MaxDiscClassifier().fit(halves[half], halves[half + 2]).n_selected_ for half in (0, 1)]
    return max(sizes) / min(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--no-record", action="store_true", help="do not store the results")
    options = parser.parse_args()
    rows = []
    for name in options.corpora:
        for trial in make_text_trials(name):
            (test,) = trial.tests.values()
            ours, best = (judge(rule, trial.train, test) for rule in ("auto", "best"))
            row = {"corpus": name, "fold": trial.fold, "default": ours, "best": best}
            rows.append(row | {"ratio of halves": ratio_of_halves(trial.train)})
            print(
                f"{name:14} fold {trial.fold}: {ours['features']:6} features, {ours['accuracy']:.2f} %, "
                f"{ours['log_loss']:.4f}; best {best['features']:6}, {best['accuracy']:.2f} %, "
                f"{best['log_loss']:.4f}; halves {rows[-1]['ratio of halves']:.2f}",
                flush=True,
            )
    lost = [r["best"]["accuracy"] - r["default"]["accuracy"] for r in rows]
    ratios = [r["ratio of halves"] for r in rows]
    print(f"below rule='best': mean {np.mean(lost):+.2f}, most {max(lost):+.2f} points", end="; ")
    print(f"ratio of halves: median {np.median(ratios):.2f}, largest {max(ratios):.2f}")
    if not options.no_record:
        record = {
            "command": "make bench-selected",
            "date": date.today().isoformat(),
            "python": platform.python_version(),
            "versions": {p: version(p) for p in ("maxdisc", "numpy", "scikit-learn")},
            "rows": rows,
        }
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
