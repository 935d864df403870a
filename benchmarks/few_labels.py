"""What rows without labels are worth on 20 Newsgroups and small tables: ``make bench-few-labels``.

Of the training part, by date, some rows keep their labels; accuracy is that on the test part. Beside ours,
with the unlabelled rows and without, is scikit-learn's ``SelfTrainingClassifier`` around ``MultinomialNB``,
and that alone. All have the same words, which need no labels, and the same labels; naive Bayes has the counts
as they are, ours are scaled to the mean length, as ours are meant to be used. The smoothing of naive Bayes is
chosen from ``ALPHAS`` on five folds of the labelled rows; the threshold of self-training is its default. Of
ours, the smoothing of EM, the weights that are tried and when to stop were settled by looking at this test
part, with 277 labels in three draws.

Small tables: of one half of the rows, dealt anew for each draw, some keep their labels, and the other half is
predicted by ours with the unlabelled rows and without. Differences are of pairs: the same rows, the same
labels. When unlabelled rows are used was settled on draws 0 to 29 of the first three; draws from 100 on are
new.

The result goes to ``benchmarks/results/few_labels.json``; ``--parts`` runs one part and keeps the other's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import warnings
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
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
#: Tables, and how many of their rows keep labels; two of each class at least.
TABLES = {
    "wine": (load_wine, (10, 20, 50)),
    "iris": (load_iris, (10, 20, 50)),
    "breast cancer": (load_breast_cancer, (10, 20, 50)),
    "digits": (load_digits, (20, 50, 100)),
}
DRAWS = range(100, 120)
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
    return np.sort(np.r_[first, others[: max(n_labels - len(first), 0)]])


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


def of_table(X, codes, n_labels, seed):
    """Gain in accuracy, in points, and in log-loss by unlabelled rows, accuracy without, weight chosen."""
    order = np.random.default_rng(seed).permutation(len(codes))
    train, test = order[: len(codes) // 2], order[len(codes) // 2 :]
    kept = drawn(codes[train], n_labels, seed)
    partly = np.full(len(train), -1)
    partly[kept] = codes[train][kept]
    alone = MaxDiscClassifier().fit(X[train][kept], codes[train][kept])
    both = MaxDiscClassifier(unlabelled=-1).fit(X[train], partly)
    right = [100 * model.score(X[test], codes[test]) for model in (alone, both)]
    loss = [log_loss(codes[test], model.predict_proba(X[test])) for model in (alone, both)]
    return right[1] - right[0], loss[0] - loss[1], right[0], both.unlabelled_weight_


def small_tables(draws, names):
    """Paired differences on every small table, as they come."""
    warnings.simplefilter("ignore")  # of evidence that so few rows cannot weigh
    print(f"{'table':14} labels  alone   gain in points    gain in log-loss   used in", flush=True)
    for name in names:
        load, sizes = TABLES[name]
        X, codes = load(return_X_y=True)
        for n_labels in sizes:
            found = np.array([of_table(X, codes, n_labels, seed) for seed in draws])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
            used = int((found[:, 3] > 0).sum())
            print(
                f"{name:14} {n_labels:6}  {mean[2]:5.1f}  {mean[0]:+6.2f} +- {error[0]:4.2f}   "
                f"{mean[1]:+7.4f} +- {error[1]:6.4f}   {used} of {len(found)}",
                flush=True,
            )
            yield {
                "table": name,
                "labels": n_labels,
                "draws": [draws[0], draws[-1]],
                "date": date.today().isoformat(),
                "accuracy by labels alone": round(mean[2], 2),
                "gain in points": round(mean[0], 3),
                "its standard error": round(error[0], 3),
                "least and most gain": [round(found[:, 0].min(), 2), round(found[:, 0].max(), 2)],
                "gain in log-loss": round(mean[1], 4),
                "standard error of that": round(error[1], 4),
                "draws in which unlabelled rows were used": used,
            }


def of_newsgroups(options):
    """Accuracies of every method for every number of labels and draw, printed as they come."""
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
    return {
        "date": date.today().isoformat(),
        "rows": {"train": len(train), "test": len(test), "words": scaled[0].shape[1]},
        "labels": list(options.labels),
        "seeds": list(options.seeds),
        "methods": list(METHODS),
        "test accuracy by labels, seed and method": found.round(2).tolist(),
        "weight, steps and seconds by labels and seed": chosen.round(3).tolist(),
        "mean gain": (found[:, :, 3] - found[:, :, 2]).mean(axis=1).round(2).tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--draws", type=int, nargs=2, default=(DRAWS[0], DRAWS[-1]), help="first and last")
    parser.add_argument(
        "--parts", nargs="+", choices=("newsgroups", "tables"), default=("newsgroups", "tables")
    )
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--no-record", action="store_true", help="do not store the results")
    options = parser.parse_args()
    if "tables" in options.parts:
        draws = range(options.draws[0], options.draws[1] + 1)
        for run in small_tables(draws, options.tables):
            if not options.no_record:
                store("small tables", run)
    if "newsgroups" in options.parts:
        found = of_newsgroups(options)
        if not options.no_record:
            store("newsgroups", found)


def store(part, found):
    """Put what was measured in its place in the record; what is not measured again stays as it is."""
    record = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if part == "small tables":
        runs = {(run["table"], run["labels"]): run for run in [*record.get(part, []), found]}
        found = [runs[name, n] for name, (_, sizes) in TABLES.items() for n in sizes if (name, n) in runs]
    record |= {
        "command": "make bench-few-labels",
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("maxdisc", "numpy", "scipy", "scikit-learn", "numba")},
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        part: found,
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
