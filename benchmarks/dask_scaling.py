"""Two Dask workers beside one, on rows that they generate: the ratio, and whether the models are equal.

Run with ``make bench-dask``. Workers are processes of one thread each; times are best of several, the two
numbers of workers in turn, with workers that have been warmed up. Prints a table; with ``--json FILE`` also
stores it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

from maxdisc import MaxDiscClassifier
from maxdisc.adapters.dask import fit

GOAL = 1.5
N_CLASSES = 5


def labels_of(number, n_rows):
    return np.random.default_rng([1, number]).integers(0, N_CLASSES, n_rows)


def rows_of(number, n_rows, n_features):
    """The same rows on every worker: Gaussian, one feature in five a little apart for each class."""
    rng = np.random.default_rng([2, number])
    apart = np.arange(n_features) % (5 * N_CLASSES) == 5 * labels_of(number, n_rows)[:, None]
    return rng.standard_normal((n_rows, n_features)) + 0.1 * apart


def generated(n_blocks, n_rows, n_features):
    X = [
        da.from_delayed(delayed(rows_of)(i, n_rows, n_features), (n_rows, n_features), dtype=float)
        for i in range(n_blocks)
    ]
    y = [da.from_delayed(delayed(labels_of)(i, n_rows), (n_rows,), dtype=int) for i in range(n_blocks)]
    return da.concatenate(X), da.concatenate(y)


def model():
    return MaxDiscClassifier("gaussian", cv="hash", evidence="raw", smoothing=1.0)


def difference(one, other):
    """The largest relative difference of moments; infinite if anything that is chosen differs."""
    if one.n_selected_ != other.n_selected_ or not np.array_equal(one.ranking_, other.ranking_):
        return float("inf")
    differences = [np.abs(one.moments_.weight / other.moments_.weight - 1).max()]
    for a, b in zip(one.moments_.centred(), other.moments_.centred(), strict=True):
        differences.append((np.abs(a - b) / (np.abs(b) + np.abs(b).mean())).max())
    return float(max(differences))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--rows", type=int, default=4_000, help="in each block")
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="store the results")
    options = parser.parse_args()
    size = (options.blocks, options.rows, options.features)
    X, y = generated(*size)
    seconds, models = {1: [], 2: []}, {}
    for _ in range(options.repeats):
        for workers in seconds:
            with (
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
                ) as cluster,
                Client(cluster) as client,
            ):
                client.wait_for_workers(workers)
                warm = da.concatenate([X.blocks[i][:200] for i in range(4)])
                fit(model(), warm, da.concatenate([y.blocks[i][:200] for i in range(4)]))
                start = time.perf_counter()
                models[workers] = fit(model(), X, y)
                seconds[workers].append(time.perf_counter() - start)
    blocks = range(options.blocks)
    here = model().fit(
        np.concatenate([rows_of(i, *size[1:]) for i in blocks]),
        np.concatenate([labels_of(i, size[1]) for i in blocks]),
    )
    probe = rows_of(options.blocks, 2_000, options.features)
    best = {workers: min(times) for workers, times in seconds.items()}
    ratio = best[1] / best[2]
    results = [
        {
            "workers": workers,
            "seconds": best[workers],
            "all_seconds": seconds[workers],
            "largest_relative_difference_of_moments": difference(models[workers], here),
            "same_predictions": bool(np.array_equal(models[workers].predict(probe), here.predict(probe))),
        }
        for workers in seconds
    ]
    print(f"{options.blocks} blocks of {options.rows:,} x {options.features:,}, generated in the workers")
    print(f"{'workers':>7} {'seconds':>8} {'moments differ by':>18} {'same predictions':>17}")
    for row in results:
        told = row["largest_relative_difference_of_moments"]
        print(f"{row['workers']:7} {row['seconds']:8.2f} {told:18.1e} {row['same_predictions']!s:>17}")
    print(f"2 workers are {ratio:.2f} x as fast as 1 (goal: {GOAL} x)")
    if options.json:
        record = {
            "command": " ".join(["python", *sys.argv]),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("maxdisc", "dask", "distributed", "numpy")},
            },
            "cores": os.cpu_count(),
            "load_average": os.getloadavg()[0],
            "blocks, rows in each, features": size,
            "goal": GOAL,
            "ratio": ratio,
            "results": results,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=2)
            file.write("\n")
    equal = all(
        row["same_predictions"] and row["largest_relative_difference_of_moments"] < 1e-12 for row in results
    )
    return int(ratio < GOAL or not equal)


if __name__ == "__main__":
    sys.exit(main())
