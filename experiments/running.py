"""Running a table: every method on the same outer folds, cell by cell, going on where a run was stopped."""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from experiments.data import Task, gene_set, text_task
from experiments.methods import METHODS, Method, Outcome
from experiments.records import Cells, Key, Record, provenance

BINS = 15
# Results are written this often; a kill loses no more.
SECONDS_BETWEEN_WRITES = 2.0

#: What makes a cell of a table's data.
Compute: TypeAlias = "Callable[[Table, Key], dict[str, Any]]"


@dataclass(frozen=True)
class Table:
    """A table: its rows, its methods, and how often and into how many folds the rows are dealt."""

    name: str
    data: str
    kind: str
    rows: tuple[str, ...]
    n_folds: int
    compute: Compute
    n_repeats: int = 5
    n_quick_repeats: int = 2

    @property
    def methods(self) -> dict[str, Method]:
        return METHODS[self.kind]

    def task(self, row: str) -> Task:
        return gene_set(row) if self.data == "genes" else text_task(self.data, row)

    def folds(self, task: Task, seed: int) -> list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
        """The outer folds of a repeat, the same for all methods."""
        with warnings.catch_warnings():
            # One gene set has a class of six rows: it is missing in some of the ten folds.
            warnings.filterwarnings("ignore", "The least populated class")
            dealt = StratifiedKFold(self.n_folds, shuffle=True, random_state=seed)
            return list(dealt.split(np.zeros(len(task.y)), task.y))


# ------------------------------------------------------------------ one cell


def expected_calibration_error(probabilities: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> float:
    """How far stated and actual accuracy differ, on average over bins of the stated one."""
    stated = probabilities.max(axis=1)
    bins = np.minimum((stated * BINS).astype(int), BINS - 1)
    gap = np.bincount(bins, weights=stated - right, minlength=BINS)
    return float(np.abs(gap).sum() / len(right))


def log_loss(probabilities: npt.NDArray[np.float64], codes: npt.NDArray[np.intp]) -> float:
    """Mean of -log P(class); a probability of zero counts as the smallest that a double can hold."""
    given = probabilities[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(given, np.finfo(float).tiny)).mean())


def judged(outcome: Outcome, codes: npt.NDArray[np.intp]) -> dict[str, Any]:
    """Accuracy, and what probabilities are worth, where there are any."""
    right = outcome.predicted == codes
    cell: dict[str, Any] = {"accuracy": float(right.mean())}
    if outcome.probabilities is not None:
        cell["log_loss"] = log_loss(outcome.probabilities, codes)
        cell["ece"] = expected_calibration_error(outcome.probabilities, right)
    return cell


def classified(table: Table, key: Key) -> dict[str, Any]:
    """The cell of a method that classifies."""
    task = table.task(key.row)
    train, test = table.folds(task, key.seed)[key.fold]
    X, y, held = task.X[train], task.y[train], task.X[test]
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = table.methods[key.method].function(X, y, held, key.seed)
    seconds = time.process_time() - start
    chosen = {name: _plain(value) for name, value in outcome.chosen.items()}
    return {**judged(outcome, task.y[test]), "seconds": round(seconds, 3), "chosen": chosen}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# ------------------------------------------------------------------ all cells


def keys(table: Table, rows: Sequence[str], methods: Sequence[str], seeds: Sequence[int]) -> list[Key]:
    """All cells, method by method."""
    return [
        Key(row, seed, fold, method)
        for method in methods
        for row in rows
        for seed in seeds
        for fold in range(table.n_folds)
    ]


def run(
    table: Table,
    record: Record,
    rows: Sequence[str],
    methods: Sequence[str],
    seeds: Sequence[int],
    jobs: int = 1,
    command: str = "",
) -> list[tuple[Key, str]]:
    """Compute the cells that the record lacks; returns those that failed, with the reason."""
    wanted = keys(table, rows, methods, seeds)
    known = record.cells()
    missing = [key for key in wanted if key not in known]
    this_run = provenance(command)
    new: Cells = {}
    failed = []
    last = time.monotonic()
    with progress(table.name, len(wanted), len(wanted) - len(missing)) as show:
        try:
            for key, cell in _results(table, missing, jobs):
                if isinstance(cell, str):
                    failed.append((key, cell))
                else:
                    new[key] = cell
                show(f"{key.method}, {key.row}, seed {key.seed}")
                if new and time.monotonic() - last > SECONDS_BETWEEN_WRITES:
                    record.add(new, this_run)
                    new, last = {}, time.monotonic()
        finally:
            if new:
                record.add(new, this_run)
    return failed


def _results(table: Table, missing: Sequence[Key], jobs: int) -> Iterator[tuple[Key, dict[str, Any] | str]]:
    attempt = partial(_attempt, table)
    if jobs == 1:
        for key in missing:
            yield key, attempt(key)
        return
    # Processes that start afresh: forks of a process with threads may hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_know_all_methods) as pool:
        waiting = {pool.submit(attempt, key): key for key in missing}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _know_all_methods() -> None:
    import_module("experiments.tables")


def _attempt(table: Table, key: Key) -> dict[str, Any] | str:
    """A cell, or the last line of what went wrong: one method's failure does not end the others."""
    try:
        return table.compute(table, key)
    except Exception as error:
        return traceback.format_exception_only(error)[-1].strip()


# ------------------------------------------------------------------ progress


class Show(Protocol):
    def __call__(self, what: str) -> None: ...


@contextmanager
def progress(title: str, total: int, done: int) -> Iterator[Show]:
    """A bar where there is a terminal and rich; lines of text elsewhere."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        rich = False
    else:
        rich = (console := Console(stderr=True)).is_terminal
    if not rich:
        yield _Lines(title, total, done)
        return
    columns = (TextColumn("{task.fields[title]}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as bar:
        task = bar.add_task("", total=total, completed=done, title=title)
        yield lambda what: bar.update(task, advance=1, description=what)


class _Lines:
    """A line now and then."""

    def __init__(self, title: str, total: int, done: int) -> None:
        self.title, self.total, self.done = title, total, done
        self.last = -np.inf
        self("start", advance=0)

    def __call__(self, what: str, advance: int = 1) -> None:
        self.done += advance
        if time.monotonic() - self.last > 15 or self.done == self.total:
            print(f"{self.title}: {self.done} of {self.total}, {what}", file=sys.stderr, flush=True)
            self.last = time.monotonic()
