"""``maxdisc demo``: the default classifier on text and on a table, compared with others on the same folds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from maxdisc import MaxDiscClassifier
from maxdisc.datasets import load_docstrings
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.odds import log_odds
from maxdisc.inspection.ranking import ranking_table
from maxdisc.model_file.atomic_writes import atomic_write
from maxdisc.numerics.blas_threads import limited_blas
from maxdisc.report import evaluate

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
OURS = "maxdisc"


@dataclass(frozen=True, eq=False)
class Task:
    """A data set, the classifiers to compare on it, and what its rows and features are called."""

    title: str
    rows: str
    features: str
    X: npt.NDArray[Any]
    y: npt.NDArray[np.str_]
    peers: Mapping[str, Any]
    setup: str
    names: npt.NDArray[np.generic] | None = None


@dataclass(frozen=True)
class Result:
    """Means over the folds; ``log_loss`` is None for a classifier without probabilities."""

    accuracy: float
    log_loss: float | None
    seconds: float


def docstring_task(min_documents: int = 250) -> Task:
    """Which subpackage does a docstring document?"""
    documents = load_docstrings(min_documents=min_documents)
    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    return Task(
        "Text: which subpackage does a docstring document?",
        "documents",
        "words and pairs of words",
        np.array(documents.data, dtype=object),
        documents.target,
        {
            "LinearSVC": make_pipeline(words, tuned(LinearSVC(), C=[0.1, 1, 10])),
            "logistic regression": make_pipeline(
                words, tuned(LogisticRegression(max_iter=1000), C=[1, 10, 100])
            ),
            "naive Bayes": make_pipeline(words, tuned(MultinomialNB(), alpha=[0.01, 0.1, 1])),
        },
        "tf-idf of words; C or alpha tuned on inner folds",
    )


def breast_cancer_task() -> Task:
    """Is a tumour malignant?"""
    data = load_breast_cancer()
    return Task(
        "Table: is a breast tumour malignant?",
        "rows",
        "columns",
        data.data,
        data.target_names[data.target],
        {
            "LinearSVC": make_pipeline(
                StandardScaler(), tuned(LinearSVC(max_iter=100_000), C=[0.01, 0.1, 1, 10])
            ),
            "logistic regression": make_pipeline(
                StandardScaler(), tuned(LogisticRegression(max_iter=1000), C=[0.01, 0.1, 1, 10])
            ),
            "naive Bayes": tuned(GaussianNB(), var_smoothing=[1e-12, 1e-9, 1e-6]),
        },
        "standardized columns (not naive Bayes); C or var_smoothing tuned on inner folds",
        data.feature_names,
    )


def tuned(classifier: Any, **grid: list[float]) -> GridSearchCV:
    """Return the classifier with a parameter chosen on three inner folds."""
    return GridSearchCV(classifier, grid, cv=3)


def run(task: Task, say: Callable[[str], None] = print) -> tuple[dict[str, Result], Any]:
    """Compare all classifiers on the same folds; return their results and our model of the first fold."""
    n_classes = len(np.unique(task.y))
    say(f"\n{task.title}\n  {len(task.y):,} {task.rows}, {n_classes} classes\n")
    results, fitted = {}, None
    for name, model in {OURS: MaxDiscClassifier(), **task.peers}.items():
        with progress(f"fitting {name} on {FOLDS.n_splits} folds"):
            results[name], first = cross_validate(task, model)
        fitted = first if name == OURS else fitted
    say(f"  {'classifier':<20} {'accuracy':>9} {'log-loss':>9} {'fit':>8}")
    for name, result in results.items():
        loss = "" if result.log_loss is None else f"{result.log_loss:.3f}"
        say(f"  {name:<20} {result.accuracy:>9.1%} {loss:>9} {result.seconds:>6.2f} s")
    say(f"\n  Means over {FOLDS.n_splits} folds, the same for all, with one BLAS thread.")
    say("  maxdisc: MaxDiscClassifier(), no parameter set; its fit selects features and calibrates.")
    say(f"  Others: {task.setup}.")
    say("  LinearSVC has no probabilities, so it has no log-loss.")
    classifier = ModelView.of(fitted, task.names).classifier
    say(f"\n  Selected: {classifier.n_selected_:,} of {classifier.n_features_in_:,} {task.features}.")
    say("  Features that distinguish the largest classes (-: lower than in other classes):")
    top = top_features(fitted, task.names, n=5)
    width = max(map(len, top))
    for label, features in top.items():
        say(f"    {label:<{width}}  {', '.join(features)}")
    return results, fitted


def cross_validate(task: Task, model: Any) -> tuple[Result, Any]:
    """Return the mean figures of a classifier on the folds, and the model of the first fold."""
    fitted, figures = [], []
    for train, test in FOLDS.split(task.y, task.y):
        start = time.perf_counter()
        with limited_blas(1):  # on small data, more threads wait for each other and make times random
            fitted.append(clone(model).fit(task.X[train], task.y[train]))
            seconds = time.perf_counter() - start
            accuracy = fitted[-1].score(task.X[test], task.y[test])
            loss = np.nan
            if hasattr(fitted[-1], "predict_proba"):
                loss = log_loss(task.y[test], fitted[-1].predict_proba(task.X[test]))
        figures.append((accuracy, loss, seconds))
    accuracy, loss, seconds = np.mean(figures, axis=0).tolist()
    return Result(accuracy, None if np.isnan(loss) else loss, seconds), fitted[0]


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show what is running while it runs, if standard error is a terminal."""
    watched = sys.stderr.isatty()
    if watched:
        print(f"  {what} ...", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if watched:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def top_features(model: Any, names: Any, n: int) -> dict[str, list[str]]:
    """Return the selected features that distinguish the largest classes; a minus means lower values."""
    table, classifier = ranking_table(model, names), ModelView.of(model).classifier
    largest = classifier.classes_[np.argsort(-classifier.class_prior_, kind="stable")[:8]]
    return {
        str(label): [f"{'' if sign > 0 else '-'}{name}" for name, sign, _ in table.of_class(label, n)]
        for label in largest
    }


def explain_one(task: Task, model: Any, say: Callable[[str], None] = print) -> None:
    """Explain the prediction of a typical held-out row: the one whose probability is the median."""
    _, test = next(FOLDS.split(task.y, task.y))
    probability = model.predict_proba(task.X[test]).max(axis=1)
    at = int(np.argsort(probability, kind="stable")[len(test) // 2])
    row, label = task.X[test][at : at + 1], task.y[test][at]
    odds = log_odds(model, row, n=6)
    say(f"\nOne prediction explained: a held-out {task.rows.removesuffix('s')} of {label}")
    if isinstance(row[0], str):
        text = " ".join(row[0].split())
        say(f'  "{text if len(text) <= 90 else text[:89] + "…"}"')
    say(f"  Predicted: {odds.first}, probability {probability[at]:.1%}; the runner-up is {odds.second}.")
    say(f"  Log-odds of {odds.first} versus {odds.second}; the lines add up to the total:")
    lines = [*zip(odds.odds, odds.features, strict=True)]
    lines += [(odds.others, "(all other selected features)"), (odds.prior, "(class prior)")]
    for value, name in [*lines, (odds.total, "total")]:
        say(f"    {value:>+7.2f}  {name}")


def write_report(task: Task, model: Any, path: str | Path) -> None:
    """Write a report on the model of the first fold, evaluated on that fold's held-out rows."""
    _, test = next(FOLDS.split(task.y, task.y))
    report = evaluate(model, list(task.X[test]), task.y[test], title=task.title)
    with atomic_write(path) as file:
        file.write(report.html().encode("utf-8"))


def main(report: str | Path = "demo-report.html") -> None:
    """Compare classifiers on a text and a table, explain one prediction, and write a report on the text."""
    start = time.perf_counter()
    with progress("reading the docstrings of the installed packages"):
        text = docstring_task()
    _, model = run(text)
    explain_one(text, model)
    run(breast_cancer_task())
    with progress(f"writing {report}"):
        write_report(text, model, report)
    print(f"\nWrote {report}, a report on the text model: open it in a browser.")
    print(f"Done in {time.perf_counter() - start:.0f} s. README.md shows how to fit your own data.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
