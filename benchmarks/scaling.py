"""How the cost of a fit grows: rows N, cells per row (nnz), features D, classes C, kept features K.

The whole raw fit and its class sums on sparse counts, each axis over two decades, the others held fixed. One
thread; processor time, so that what else the machine does counts little; the best of several, all sizes
taking turns. Memory stays with the process once it has it: tables of 480 MB take a tenth of a second to fill,
and a virtual machine may take five times as long to find them, now and then, which says nothing of the work.
An exponent is the slope of log time over log size, by least squares over the sizes where the axis shows. Left
out at the lower end are sizes of another method (from some size on code is compiled: times fall there, and a
slope across the fall would flatter), and sizes that take less than twice the time of the first that is left,
as long as four remain: there, what does not grow hides the slope. Run with ``make bench-scaling``; the record
goes to ``benchmarks/results/scaling.json``. ``--quick`` takes small sizes and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from speed_runs import threads_held
from speed_sparse import both_moments, fitted, raw_model
from timing import best_seconds, keep_memory, stamp, zipf_rows

RESULTS = Path(__file__).resolve().parent / "results" / "scaling.json"
GOAL = 1.05
FIT, SUMS, PREDICT = "whole raw fit", "class sums", "prediction"


@dataclass(frozen=True)
class Axis:
    """What is varied, from where (over two decades), and the numbers that are held fixed meanwhile."""

    name: str
    means: str
    first: int
    fixed: dict[str, int]
    works: tuple[str, ...] = (FIT, SUMS)

    def sizes(self, quick: bool) -> list[int]:
        """Three to a decade; a quick run takes the smaller decade."""
        steps = np.arange(4 if quick else 7)
        return np.unique((self.first * 10 ** (steps / 3)).round().astype(int)).tolist()


AXES = (
    Axis("N", "rows", 1_000, {"nnz": 60, "D": 10_000, "C": 5}),
    Axis("nnz", "cells", 6, {"N": 40_000, "D": 10_000, "C": 5}),
    Axis("D", "features", 3_000, {"N": 5_000, "nnz": 60, "C": 100}),
    Axis("C", "classes", 2, {"N": 10_000, "nnz": 60, "D": 100_000}),
    Axis("K", "kept features", 200, {"N": 10_000, "nnz": 60, "D": 20_000, "C": 10}, (FIT, PREDICT)),
)
#: A time that falls by so much from one size to the next is that of another method.
FALL = 0.7
#: So many sizes at least are in a slope, if the method has them.
FEWEST = 4


def rows_of(numbers: dict[str, int]) -> tuple[Any, np.ndarray]:
    """Counts with about so many cells per row: some words occur twice."""
    return zipf_rows(numbers["N"], numbers["D"], numbers["C"], numbers["nnz"])


def works_of(axis: Axis, size: int, X: Any, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """What is timed at one size."""
    kept = {"n_features": size} if axis.name == "K" else {}
    works: dict[str, Callable[[], Any]] = {FIT: lambda: fitted(raw_model(**kept), X, y)}
    if SUMS in axis.works:
        works[SUMS] = lambda: both_moments(X, y)
    if PREDICT in axis.works:
        model = raw_model(**kept).fit(X, y)
        works[PREDICT] = lambda: model.predict(X)
    return works


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[list[int], float]:
    """The sizes over which the axis shows, and the slope there."""
    if len(sizes) > 2 and seconds[-1] < FALL * seconds[-2]:
        return exponent(sizes[:-1], seconds[:-1])  # one size alone has no slope
    begin = max([i for i in range(1, len(sizes)) if seconds[i] < FALL * seconds[i - 1]], default=0)
    shows = [i for i in range(begin, len(sizes)) if seconds[i] >= 2 * seconds[begin]]
    begin = max(begin, min([*shows, len(sizes) - FEWEST]))
    slope = np.polyfit(np.log(sizes[begin:]), np.log(seconds[begin:]), 1)[0]
    return list(sizes[begin:]), float(slope)


def measured(axis: Axis, quick: bool, repeats: int) -> dict[str, Any]:
    """Times of all works at all sizes of one axis, and their exponents."""
    works: dict[tuple[str, int], Callable[[], Any]] = {}
    for size in axis.sizes(quick):
        X, y = rows_of({**axis.fixed, axis.name: size})
        # Words that occur twice in a row share a cell: what grows is the number of cells there are.
        at = X.nnz if axis.name == "nnz" else size
        works |= {(name, at): work for name, work in works_of(axis, size, X, y).items()}
    sizes = list(dict.fromkeys(size for _, size in works))
    best = best_seconds(works, repeats, 8.0, time.process_time)
    seconds = {name: [best[name, size] for size in sizes] for name in axis.works}
    fits = {}
    for name, times in seconds.items():
        used, slope = exponent(sizes, times)
        fits[name] = {"sizes": used, "exponent": slope}
    return {"means": axis.means, "fixed": axis.fixed, "sizes": sizes, "seconds": seconds, "fits": fits}


def show(axis: Axis, found: dict[str, Any]) -> None:
    for name, times in found["seconds"].items():
        fit = found["fits"][name]
        told = "  ".join(
            f"{size:,}: {1000 * took:.3g} ms" for size, took in zip(found["sizes"], times, strict=True)
        )
        print(
            f"{axis.name:4} {name:14} exponent {fit['exponent']:5.2f} from {fit['sizes'][0]:,} on   {told}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one decade, one repeat, nothing stored")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--only", choices=[axis.name for axis in AXES], help="one axis, nothing stored")
    parser.add_argument("--json", type=Path, help="store the record there (benchmarks/results/scaling.json)")
    options = parser.parse_args()
    axes = {}
    kept = keep_memory()
    with threads_held(1):
        for axis in AXES:
            if options.only not in (None, axis.name):
                continue
            axes[axis.name] = measured(axis, options.quick, 1 if options.quick else options.repeats)
            show(axis, axes[axis.name])
    file = options.json or (None if options.quick or options.only else RESULTS)
    if file:
        numbers = {"threads": 1, "memory kept": kept, "goal": GOAL}
        record = {**stamp("make bench-scaling"), **numbers, "axes": axes}
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
