"""Command line of the experiments: run tables, and write what is made of them.

    python -m experiments run posts bodies genes
    python -m experiments run posts --methods linear_svc logistic --rows talk --repeats 2 --jobs 2
    python -m experiments run posts --again automatic
    python -m experiments tables

A run that was stopped goes on where it was. Results are in experiments/results, tables in docs/results.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Processes are the unit of work: each has one thread, and seconds are comparable.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MAXDISC_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

HERE = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="compute the cells that are missing")
    run.add_argument("tables", nargs="+", metavar="TABLE", help="posts, bodies, genes")
    run.add_argument("--methods", nargs="+", metavar="METHOD", help="by default all")
    run.add_argument("--rows", nargs="+", metavar="ROW", help="by default all")
    run.add_argument("--repeats", type=int, help="by default 5")
    run.add_argument("--quick", action="store_true", help="2 repeats, and without the slowest methods")
    run.add_argument("--jobs", type=int, default=1, help="processes; results do not depend on it")
    run.add_argument("--again", nargs="+", default=[], metavar="METHOD", help="drop the cells of these first")
    run.add_argument("--first-seed", type=int, default=None, help="of the outer folds; 1000 for final tables")
    run.add_argument("--results", type=Path, default=HERE / "results", help="folder of the results")
    for name, does in (("list", "the tables, their rows and methods"), ("tables", "write docs/results")):
        command = commands.add_parser(name, help=does)
        command.add_argument("--results", type=Path, default=HERE / "results", help="folder of the results")
        if name == "tables":
            command.add_argument("--out", type=Path, default=HERE.parent / "docs" / "results")
    options = parser.parse_args(arguments)
    from experiments.data import DataError

    try:
        return {"run": _run, "list": _list, "tables": _tables}[options.command](options)
    except (DataError, _UnknownNameError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


class _UnknownNameError(ValueError):
    """A name on the command line that means nothing."""


def _known(what: str, given: list[str] | None, known: list[str]) -> list[str]:
    if given is None:
        return known
    for name in given:
        if name not in known:
            raise _UnknownNameError(f"there is no {what} {name!r}: take {', '.join(known)}.")
    return given


def _run(options: argparse.Namespace) -> int:
    from experiments.records import Record
    from experiments.running import run
    from experiments.tables import FIRST_SEED, TABLES

    first = FIRST_SEED if options.first_seed is None else options.first_seed
    if first != FIRST_SEED and options.results == HERE / "results":
        raise _UnknownNameError(f"folds of seed {first} are not those of the tables: say --results FOLDER.")
    failed = []
    for name in _known("table", options.tables, list(TABLES)):
        table = TABLES[name]
        registry = table.methods
        methods = _known("method", options.methods, list(registry))
        if options.quick and options.methods is None:
            methods = [m for m in methods if registry[m].quick]
        repeats = options.repeats or (table.n_quick_repeats if options.quick else table.n_repeats)
        rows = _known("row", options.rows, list(table.rows))
        record = Record(options.results / f"{name}.json")
        if options.again:
            gone = record.drop(_known("method", options.again, list(registry)), options.rows)
            print(f"{name}: dropped {gone} cells", file=sys.stderr)
        command = "python -m experiments " + " ".join(_told(sys.argv[1:]))
        seeds = range(first, first + repeats)
        failed += run(table, record, rows, methods, seeds, options.jobs, command)
    for key, why in failed:
        print(f"failed: {key.method}, {key.row}, seed {key.seed}, fold {key.fold}: {why}", file=sys.stderr)
    return 1 if failed else 0


def _told(arguments: list[str]) -> list[str]:
    """The arguments of a command, but not where its results went: that is a place on one machine."""
    places = {i + k for i, a in enumerate(arguments) if a == "--results" for k in (0, 1)}
    return [a for i, a in enumerate(arguments) if i not in places and not a.startswith("--results=")]


def _list(options: argparse.Namespace) -> int:
    from experiments.records import Record
    from experiments.tables import TABLES

    for name, table in TABLES.items():
        cells = Record(options.results / f"{name}.json").cells()
        print(f"{name}: {len(table.rows)} rows, {table.n_repeats} repeats of {table.n_folds} folds")
        for method, entry in table.methods.items():
            done = sum(key.method == method for key in cells)
            everything = len(table.rows) * table.n_repeats * table.n_folds
            print(f"  {method:16} {entry.title:46} {done:5} of {everything} cells")
    return 0


def _tables(options: argparse.Namespace) -> int:
    from experiments.pages import write_pages

    for path in write_pages(options.results, options.out):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
