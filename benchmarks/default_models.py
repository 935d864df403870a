"""The record of the default: ``make bench-default``.

Compare the defaults of maxdisc, and nothing else of it, with competitors that are tuned on inner folds of the
same training rows, on all corpora and gene sets of the data folder (``MAXDISC_DATA``). The record is
``benchmarks/results/default.json``, with one entry for each set, fold and method; ``default_page.py`` writes
``docs/results/default.md`` from it. A run goes on where another was stopped: it keeps entries of competitors,
and those of maxdisc while its source is the same. ``--only`` names sections or rows (``text``,
``tables/colon``), ``--methods`` names methods, ``--again`` runs entries that the record has.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sklearn.metrics import f1_score
from threadpoolctl import threadpool_limits

import maxdisc
from benchmarks import default_page
from benchmarks.default_data import SECTIONS, Trial, make_trials, row_names
from benchmarks.default_methods import METHODS, OURS, describe_competitor, describe_ours
from experiments.data import DataError
from experiments.methods import fitted_outcome
from experiments.records import Cells, Key, Record, provenance
from experiments.running import judged

RESULTS = Path(__file__).resolve().parent / "results" / "default.json"


def hash_source() -> str:
    """Return a key of the version of our code: a digest of all its modules."""
    digest = hashlib.sha256()
    folder = Path(maxdisc.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def choose_rows(only: Sequence[str]) -> list[str]:
    """Return the rows that ``--only`` names; a section stands for all its rows."""
    sections = [s for s in SECTIONS if not only or any(name.split("/")[0] == s for name in only)]
    rows = [row for section in sections for row in row_names(section)]
    known = {*SECTIONS, *rows}
    if unknown := [name for name in only if name not in known]:
        raise DataError(f"Unknown row {unknown[0]!r} in --only. Use one of: {', '.join(sorted(known))}.")
    return [row for row in rows if not only or row in only or row.split("/")[0] in only]


def is_current(cell: dict[str, Any] | None, method: str, code: str) -> bool:
    """Return whether an entry need not be run again."""
    return cell is not None and (method != OURS or cell["code"] == code)


def measure(trial: Trial, name: str, code: str) -> Cells:
    """Fit a method once, with the processor time of the fit, and judge it on all test rows of the trial."""
    method, (X, y) = METHODS[name], trial.train
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = method.fit(X, y)
        seconds = time.process_time() - start
        facts = {"code": code, **describe_ours(model, X)} if name == OURS else describe_competitor(model)
        cells = {}
        for row, test in trial.tests.items():
            outcome = fitted_outcome(model, test.X)
            f1 = float(f1_score(test.y, outcome.predicted, average="macro"))
            figures = {**judged(outcome, test.y), "macro_f1": f1, "cpu_seconds": seconds}
            cells[Key(row, trial.seed, trial.fold, name)] = {**figures, **facts}
    return cells


def run(rows: Sequence[str], methods: Sequence[str], again: bool, record: Record) -> Iterator[Cells]:
    """Measure what the record lacks and put it there."""
    code, known, command = hash_source(), record.cells(), provenance("make bench-default")
    compiled: set[str] = set()
    for trial in make_trials(list(rows)):
        for name in methods:
            keys = [Key(row, trial.seed, trial.fold, name) for row in trial.tests]
            if trial.section not in METHODS[name].sections:
                continue
            if not again and all(is_current(known.get(key), name, code) for key in keys):
                continue
            if name == OURS and trial.section not in compiled:
                # Code is compiled at the first fit of a kind; the record is not about that.
                measure(trial, name, code)
                compiled.add(trial.section)
            cells = measure(trial, name, code)
            record.add(cells, command)
            yield cells


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="sections or rows")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--again", action="store_true", help="run entries that the record has")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the record")
    parser.add_argument("--page", type=Path, default=default_page.PAGE, help="the page")
    options = parser.parse_args(arguments)
    record = Record(options.results)
    try:
        for cells in run(choose_rows(options.only), options.methods, options.again, record):
            for key, cell in cells.items():
                figures = f"accuracy {cell['accuracy']:.4f}, {cell['cpu_seconds']:.2f} CPU s"
                print(f"{key.row}, seed {key.seed}, fold {key.fold}, {key.method}: {figures}", flush=True)
    except DataError as error:
        sys.exit(str(error))
    default_page.write(record, options.page)


if __name__ == "__main__":
    main()
