"""Every goal of speed in one table, with floors and peers measured in the same run: ``make bench``.

All works of a row take turns in one process, under the same limit of threads; the best time of each counts.
Rows about streams, Dask and growth run the benchmarks of their own. The table goes to the terminal and, row
by row, to ``benchmarks/results/speed.json``, from which ``docs/performance.md`` is made. ``--quick`` takes
small sizes and stores nothing; ``--list`` names the rows, and ``--only`` runs some of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import speed_dense
import speed_scripts
import speed_sparse
import speed_text
from comparing import Row, as_text
from sklearn.exceptions import ConvergenceWarning
from speed_runs import Run
from timing import keep_memory, stamp

RESULTS = Path(__file__).resolve().parent / "results" / "speed.json"

#: By name: what makes one row, or several that share their times. In the order of the table.
ROWS: dict[str, Callable[[Run], Row | Iterable[Row]]] = {
    "sums-S": lambda run: speed_sparse.sums_small(run, run.threads),
    "sums-S-1": lambda run: speed_sparse.sums_small(run, 1),
    "sums-B": lambda run: speed_sparse.sums_large(run, run.threads),
    "sums-B-1": lambda run: speed_sparse.sums_large(run, 1),
    "fit": speed_sparse.whole_fits,
    "path": lambda run: speed_sparse.path(run, run.threads),
    "path-1": lambda run: speed_sparse.path(run, 1),
    "predict": lambda run: speed_sparse.prediction(run, run.threads),
    "predict-1": lambda run: speed_sparse.prediction(run, 1),
    "dense-fit": speed_dense.whole_fit,
    "dense-moments": lambda run: speed_dense.moments(run, run.threads),
    "dense-moments-1": lambda run: speed_dense.moments(run, 1),
    "text": speed_text.raw_text,
    "threads-sums": speed_sparse.threads_on_sums,
    "threads-fit": speed_sparse.threads_on_fit,
    "stream": speed_scripts.stream,
    "dask": speed_scripts.dask,
    "growth": speed_scripts.growth,
}


def found(run: Run, name: str) -> list[Row]:
    rows = ROWS[name](run)
    return [rows] if isinstance(rows, Row) else list(rows)


def store(name: str, rows: list[Row], command: str) -> None:
    """Put these rows in the place of those that the name had, each with where and when it was measured."""
    record: dict[str, Any] = {"command": "make bench", "rows": {}}
    if RESULTS.exists():
        record = json.loads(RESULTS.read_text(encoding="utf-8"))
    record["rows"][name] = {"measured": stamp(command), "rows": [row.record() for row in rows]}
    record["rows"] = {name: record["rows"][name] for name in ROWS if name in record["rows"]}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(ROWS), help="only these rows")
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats, nothing stored")
    parser.add_argument("--list", action="store_true", help="the names of all rows")
    parser.add_argument("--threads", type=int, default=2, help="for both sides (2)")
    options = parser.parse_args()
    if options.list:
        print("\n".join(ROWS))
        return
    # Some peers stop before they have converged; that is their time as most would run them.
    warnings.simplefilter("ignore", ConvergenceWarning)
    os.environ["POLARS_MAX_THREADS"] = str(options.threads)  # read when it is imported, which is later
    os.environ["OMP_WAIT_POLICY"] = "passive"
    # A virtual machine may take longer to find memory than any of these works take to fill it, or not.
    keep_memory()
    run = Run.small(options.threads) if options.quick else Run(threads=options.threads)
    names = [name for name in ROWS if not options.only or name in options.only]
    table: list[Row] = []
    for name in names:
        if ROWS[name].__module__ == speed_scripts.__name__:
            run.forget()
        print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
        start = time.perf_counter()
        rows = found(run, name)
        print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        table += rows
        if not options.quick:
            store(name, rows, "make bench" if not options.only else f"benchmarks/speed.py --only {name}")
    print(as_text(table))
    if options.quick:
        print("Small sizes: that all runs is seen, not how fast it is; the goals are for the full ones.")


if __name__ == "__main__":
    main()
