"""``baselines``: maxdisc and the usual classifiers on the same folds."""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxdisc.cli.console import Speech, results, say_json, size_of
from maxdisc.cli.failures import BadInputError, command
from maxdisc.cli.fit.options import DataOptions, LearningOptions, StreamOptions, WordOptions, WorkerOptions
from maxdisc.cli.fit.reading import open_data, read_rows
from maxdisc.cli.fit.request import FitRequest
from maxdisc.cli.option_groups import flatten_groups
from maxdisc.cli.options import LEARNING, DataArgument, FileOptions, JsonOption, QuietOption

if TYPE_CHECKING:
    from maxdisc.cli.labelled import LabelledRows

OURS = "maxdisc"
#: A label that a model thinks impossible costs this much at most, as in scikit-learn.
_TINY = 1e-15
#: A table of fewer cells is fitted by one thread.
_SMALL_CELLS = 10**6
#: The figures of the methods need this many columns.
_WIDTH = 66


@command
@flatten_groups
def baselines(
    data: DataArgument,
    *,
    folds: Annotated[
        int,
        typer.Option("--folds", min=2, max=100, help="Number of folds.", rich_help_panel=LEARNING),
    ] = 5,
    columns: DataOptions,
    files: FileOptions,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare maxdisc with the usual classifiers on the same folds of labelled rows.

    They are a linear SVM, logistic regression, naive Bayes and, for tables,
    gradient boosting, from scikit-learn. Each is tuned on inner folds of its
    training rows; text is tf-idf of words and pairs of words. Columns are
    guessed as by fit.

    [bold]Examples[/]

    maxdisc baselines train.csv --text body --label topic

    maxdisc baselines people.csv --label income --folds 10 --json
    """
    speech = Speech(quiet)
    if columns.unlabelled is not None:
        raise BadInputError("the baselines learn from labelled rows alone: leave out --unlabelled.")
    request = FitRequest.of(
        columns, files, LearningOptions(), WordOptions(), StreamOptions(), WorkerOptions()
    )
    from maxdisc.cli.fit.summary import note_roles
    from maxdisc.cli.model import note_values

    dataset = open_data(data, columns, files)
    roles = request.roles(dataset)
    parameters = request.parameters(roles, dataset.name)
    note_values(dataset, speech)
    request.require_words(dataset.preview(), roles, speech, by_option=False)
    rows = read_rows(request, dataset, roles, speech)
    note_roles(roles, rows, speech)
    speech.say_notes(done=False)
    comparison = Comparison.of(rows, folds, parameters, speech)
    with speech.progress("fitting", len(comparison.methods) * len(comparison.folds)) as tell, rows.located():
        for done, what in enumerate(comparison.run()):
            tell(0, done, what)
    speech.say_notes()
    facts = comparison.facts()
    say_json(facts) if json else _show(facts)


@dataclass
class Scores:
    """What one method got in each fold."""

    accuracy: list[float] = field(default_factory=list)
    log_loss: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    n_bytes: list[int] = field(default_factory=list)
    chosen: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rows, folds, and the methods that are fitted to them."""

    X: Any
    ours: Any
    y: Any  # (N,) codes
    classes: Any
    folds: list[tuple[Any, Any]]
    parameters: dict[str, Any]
    methods: dict[str, Scores]

    @classmethod
    def of(cls, rows: LabelledRows, n_folds: int, parameters: dict[str, Any], speech: Speech) -> Comparison:
        """Deal the rows into folds; there are at most as many as the smallest class has rows."""
        import numpy as np
        from sklearn.model_selection import StratifiedKFold

        from maxdisc.cli.comparison.peers import peers_of

        classes, y, counts = np.unique(rows.y, return_inverse=True, return_counts=True)
        smallest = int(counts.min())
        used = max(2, min(n_folds, smallest))
        if used < n_folds:
            label = str(classes[counts.argmin()])
            speech.note(f"{used} folds instead of {n_folds}: class {label!r} has only {smallest} rows")
        if smallest < used:
            label = str(classes[counts.argmin()])
            raise BadInputError(
                f"class {label!r} has a single row, which is either trained on or tested: leave it out, or "
                "join it with another class."
            )
        splitter = StratifiedKFold(used, shuffle=True, random_state=0)
        X = framed(rows.X)
        methods = {name: Scores() for name in (OURS, *peers_of(X, 2))}
        return cls(X, rows.X, y, classes, list(splitter.split(y, y)), parameters, methods)

    def run(self) -> Iterator[str]:
        """Fit every method to every fold; yield what comes next."""
        import numpy as np

        from maxdisc.cli.comparison.peers import chosen, peers_of

        for number, (train, test) in enumerate(self.folds, 1):
            X, held_out = rows_at(self.X, train), rows_at(self.X, test)
            peers = peers_of(X, int(np.bincount(self.y[train]).min()))
            for name, scores in self.methods.items():
                yield f"fold {number} of {len(self.folds)}: {name}"
                if name == OURS:
                    model, seconds = self._fit_ours(train)
                    self._judge(scores, model, rows_at(self.ours, test), test)
                    scores.n_bytes.append(_size_of_ours(model))
                else:
                    model, seconds = self._fit_peer(peers[name], X, self.y[train])
                    self._judge(scores, model, held_out, test)
                    best, parameters = chosen(model)
                    scores.n_bytes.append(len(pickle.dumps(best, protocol=5)))
                    scores.chosen.append(parameters)
                scores.seconds.append(seconds)

    def _fit_ours(self, train: Any) -> tuple[Any, float]:
        """Fit our default; what is compiled on the way is compiled once, and is not its time."""
        from maxdisc import MaxDiscClassifier
        from maxdisc.numerics.compiling import compiled_so_far

        before = compiled_so_far()[1]
        X = rows_at(self.ours, train)
        model, seconds = _timed(lambda: MaxDiscClassifier(**self.parameters).fit(X, self.y[train]))
        return model, seconds - (compiled_so_far()[1] - before)

    def _fit_peer(self, peer: Any, X: Any, y: Any) -> tuple[Any, float]:
        """Fit one of the others; threads that wait for each other would make small tables slow."""
        from maxdisc.numerics.blas_threads import limited_blas, limited_openmp

        is_small = not isinstance(X, list) and X.shape[0] * X.shape[1] < _SMALL_CELLS
        most = 1 if is_small else None
        with limited_openmp(most), limited_blas(most):
            return _timed(lambda: peer.fit(X, y))

    def _judge(self, scores: Scores, model: Any, X: Any, test: Any) -> None:
        """Add accuracy and, of probabilities, the log-loss of held-out rows."""
        import numpy as np

        truth = self.y[test]
        if not hasattr(model, "predict_proba"):
            scores.accuracy.append(float(np.mean(model.predict(X) == truth)))
            return
        found = model.predict_proba(X)
        proba = np.zeros((len(truth), len(self.classes)))
        proba[:, model.classes_] = found
        scores.accuracy.append(float(np.mean(model.classes_[found.argmax(axis=1)] == truth)))
        of_truth = proba[np.arange(len(truth)), truth]
        scores.log_loss.append(float(-np.log(np.maximum(of_truth, _TINY)).mean()))

    def facts(self) -> dict[str, Any]:
        """Return the means over the folds."""
        import numpy as np

        def mean(values: list[Any]) -> float | None:
            return float(np.mean(values)) if values else None

        counts = np.bincount(self.y)
        methods = [
            {
                "method": name,
                "accuracy": mean(scores.accuracy),
                "accuracy_standard_error": float(
                    np.std(scores.accuracy, ddof=1) / np.sqrt(len(scores.accuracy))
                ),
                "log_loss": mean(scores.log_loss),
                "fit_seconds": mean(scores.seconds),
                "model_bytes": mean(scores.n_bytes),
                "chosen": scores.chosen,
            }
            for name, scores in self.methods.items()
        ]
        return {
            "rows": len(self.y),
            "classes": len(self.classes),
            "folds": len(self.folds),
            "majority_accuracy": float(counts.max() / len(self.y)),
            "methods": methods,
        }


def framed(X: Any) -> Any:
    """Return a table as a frame whose columns of words are objects; other rows as they are."""
    if not hasattr(X, "column_names"):
        return X
    frame = X.to_pandas()
    for name in frame.columns:
        if frame[name].dtype.kind not in "fiub":
            # What is missing is a level of its own.
            frame[name] = frame[name].astype(object).where(frame[name].notna(), "")
        else:
            frame[name] = frame[name].astype(float)
    return frame


def rows_at(X: Any, rows: Any) -> Any:
    """Return some rows of documents, of a table, a frame or a matrix."""
    if isinstance(X, list):
        return [X[row] for row in rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if hasattr(X, "column_names") else X[rows]


def _timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """Return a fitted model, and the seconds that it took; what a method warns of is its own matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model = fit()
        return model, time.perf_counter() - start


def _size_of_ours(model: Any) -> int:
    from maxdisc.model_file.persistence import to_bytes

    return len(to_bytes(model))


def _show(facts: dict[str, Any]) -> None:
    """Show a line for each method, ours first."""
    from rich.table import Table

    out = results(_WIDTH)
    out.print(
        f"{facts['folds']} folds of {facts['rows']:,} rows in {facts['classes']} classes "
        f"(the largest class alone: {facts['majority_accuracy']:.1%})",
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("method", no_wrap=True)
    for name in ("accuracy", "log-loss", "fit time", "model size"):
        table.add_column(name, justify="right")
    methods = facts["methods"]
    best = max(m["accuracy"] for m in methods)
    least = min((m["log_loss"] for m in methods if m["log_loss"] is not None), default=None)
    for m in methods:
        accuracy = f"{m['accuracy']:.1%} ± {m['accuracy_standard_error']:.1%}"
        loss = "-" if m["log_loss"] is None else f"{m['log_loss']:.3f}"
        table.add_row(
            m["method"],
            f"[bold]{accuracy}[/]" if m["accuracy"] == best else accuracy,
            f"[bold]{loss}[/]" if m["log_loss"] == least else loss,
            f"{m['fit_seconds']:.2f} s",
            size_of(int(m["model_bytes"])),
        )
    out.print(table)
