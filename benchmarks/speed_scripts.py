"""Rows of the table of speed that have benchmarks of their own, run as processes: streams, Dask, growth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from comparing import Comparison, Row, at_least, at_most
from speed_runs import Run

HERE = Path(__file__).resolve().parent
#: The largest exponent that counts as linear; over a decade the time for one item then grows 1.12 times.
LINEAR = 1.05


def recorded(run: Run, script: str, arguments: Sequence[str], threads: int) -> dict[str, Any] | str:
    """The record that a script makes, kept with the others unless the run is quick; or why there is none."""
    with tempfile.TemporaryDirectory() as temporary:
        file = (Path(temporary) if run.quick else HERE / "results") / f"{script}.json"
        before = file.stat().st_mtime_ns if file.exists() else None
        command = [sys.executable, str(HERE / f"{script}.py"), *arguments, "--json", str(file)]
        limits = dict.fromkeys(("OMP_NUM_THREADS", "MAXDISC_NUM_THREADS"), str(threads))
        done = subprocess.run(command, env={**os.environ, **limits}, stderr=subprocess.PIPE, text=True)
        # A script may end with 1 to say that its goal is missed: what counts is whether it made a record.
        if not file.exists() or file.stat().st_mtime_ns == before:
            told = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
            return f"benchmarks/{script}.py: {told[-1]}"
        return json.loads(file.read_text(encoding="utf-8"))


def stream(run: Run) -> Iterable[Row]:
    sizes = (20_000, 60_000) if run.quick else (500_000, 5_000_000)
    what = f"stream fit of {sizes[1]:,} short documents"
    record = recorded(run, "stream", ["--sizes", *map(str, sizes)], run.threads)
    if isinstance(record, str):
        yield Row(what, skipped=record)
        return
    few, many = record["rows"]
    for column, unit, name, bound in (
        ("peak_bytes", "MB", "peak memory", 1.2),
        ("seconds", "µs", "time for a document", 1.12),
    ):
        ours, theirs = (
            row[column] / 1e6 if column == "peak_bytes" else 1e6 * row[column] / row["documents"]
            for row in (many, few)
        )
        other = Comparison(f"{few['documents']:,} documents", theirs, "floor", at_most(bound))
        yield Row(f"{what}, {name}", ours, [other], unit, run.threads, {"documents": many["documents"]})


def dask(run: Run) -> Iterable[Row]:
    what = "Dask, 2 workers of one thread"
    if not find_spec("distributed"):
        yield Row(what, skipped="Dask is not installed")
        return
    small = ["--blocks", "4", "--rows", "300", "--features", "40", "--repeats", "1"] if run.quick else []
    record = recorded(run, "dask_scaling", small, 1)
    if isinstance(record, str):
        yield Row(what, skipped=record)
        return
    one, two = record["results"]
    facts = {"blocks, rows in each, features": record["blocks, rows in each, features"]}
    others = [Comparison("1 worker", one["seconds"], goal=at_least(record["goal"]))]
    yield Row(what, two["seconds"], others, threads=2, facts=facts)
    same = all(row["same_predictions"] for row in (one, two))
    apart = max(row["largest_relative_difference_of_moments"] for row in (one, two))
    yield Row(
        "Dask, moments beside those of the local fit; K, ranking and predictions are equal"
        if same
        else "Dask, beside the local fit: PREDICTIONS DIFFER",
        apart if same else float("inf"),
        [Comparison("relative difference allowed", 1e-12, "floor", at_most(1.0))],
        unit="",
    )


def growth(run: Run) -> Iterable[Row]:
    record = recorded(run, "scaling", ["--quick"] if run.quick else [], 1)
    if isinstance(record, str):
        yield Row("growth of the whole raw fit", skipped=record)
        return
    for axis, found in record["axes"].items():
        goal = at_most(LINEAR) if axis in ("N", "nnz", "D", "C") else None
        for work, fit in found["fits"].items():
            linear = Comparison("linear", 1.0, "floor", goal)
            sizes = f"{min(fit['sizes']):,} to {max(fit['sizes']):,}"
            what = f"exponent of {work} in {found['means']} ({axis}), {sizes}"
            yield Row(what, fit["exponent"], [linear], "", 1, found["fixed"])
