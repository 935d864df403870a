"""Peak memory of ``fit`` beyond its input, for sparse data with many classes and features.

Run with ``make bench-memory``, or ``python benchmarks/memory.py --large`` for the case of 100 classes and a
million features. Prints a table; with ``--json FILE`` also stores it.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import threading
import time
from datetime import UTC, datetime

import numpy as np
import psutil
import scipy
import scipy.sparse as sp
import sklearn

import maxdisc
from maxdisc import MaxDiscClassifier

#: name: (rows, features, classes, stored cells a row, limit in MB)
CASES = {
    "20 classes x 100,000 features x 20,000 rows": (20_000, 100_000, 20, 150, 400),
    "100 classes x 1,000,000 features x 20,000 rows": (20_000, 1_000_000, 100, 150, 8000),
}


def zipf_rows(n_rows, n_features, n_classes, per_row, seed=0):
    """Counts with word frequencies like those of text, and classes that differ in some of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    rank = np.minimum((rng.pareto(0.9, n_rows * per_row) * 5).astype(np.int64), n_features - 1)
    shift = np.repeat(y, per_row) * (rng.random(n_rows * per_row) < 0.2)
    columns = (rank * 7919 + shift * 104_729) % n_features
    indptr = np.arange(0, n_rows * per_row + 1, per_row)
    X = sp.csr_array((np.ones(n_rows * per_row), columns, indptr), shape=(n_rows, n_features))
    X.sum_duplicates()
    return X, y


class PeakMemory:
    """The largest resident size of this process while the block runs, beyond that at its start, in MB."""

    def __enter__(self):
        self._process = psutil.Process()
        self._start = self._peak = self._process.memory_info().rss
        self._running = True
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while self._running:
            self._peak = max(self._peak, self._process.memory_info().rss)
            time.sleep(0.002)

    def __exit__(self, *_):
        self._running = False
        self._thread.join()
        self.megabytes = (self._peak - self._start) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also 100 classes x 1,000,000 features")
    parser.add_argument("--json", metavar="FILE", help="store the results")
    options = parser.parse_args()
    MaxDiscClassifier(evidence="raw").fit(*zipf_rows(200, 100, 2, 10))  # whatever is allocated once
    results = []
    print(f"{'case':50} {'family':9} {'seconds':>8} {'MB':>7} {'limit':>6}")
    for name, (n_rows, n_features, n_classes, per_row, limit) in list(CASES.items())[: 1 + options.large]:
        X, y = zipf_rows(n_rows, n_features, n_classes, per_row)
        for family in ("poisson", "gaussian")[: 1 if limit > 1000 else 2]:
            start = time.perf_counter()
            with PeakMemory() as peak:
                MaxDiscClassifier(family, evidence="raw").fit(X, y)
            seconds = time.perf_counter() - start
            print(f"{name:50} {family:9} {seconds:8.1f} {peak.megabytes:7.0f} {limit:6}", flush=True)
            results.append(
                {
                    "case": name,
                    "family": family,
                    "seconds": seconds,
                    "megabytes": peak.megabytes,
                    "limit": limit,
                }
            )
    if options.json:
        record = {
            "command": " ".join(["python", *sys.argv]),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {
                "maxdisc": maxdisc.__version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
                "scikit-learn": sklearn.__version__,
            },
            "seed": 0,
            "results": results,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=2)
            file.write("\n")
    return int(any(r["megabytes"] > r["limit"] for r in results))


if __name__ == "__main__":
    sys.exit(main())
