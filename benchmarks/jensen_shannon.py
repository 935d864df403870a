"""Time to rank 100,000 features of 20 classes by Jensen-Shannon, beside js_gm, in one thread; and its error.

Run with ``make bench-jensen-shannon``. Text is made as in ``memory.py``; the table is 600 rows of numbers
whose class means and spreads differ. Seconds are those of the processor: in one thread, on a machine that
does nothing else, they are those of the clock.
"""

from __future__ import annotations

import os

os.environ["MAXDISC_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import json
import platform
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
from memory import zipf_rows

from maxdisc import Smoothing, divergences
from maxdisc.decisions.linear import ranked_decision
from maxdisc.densities.class_densities import estimate
from maxdisc.families import Gaussian, Poisson
from maxdisc.rows.row_sources import ArrayRows

RESULTS = Path(__file__).resolve().parent / "results" / "jensen_shannon.json"
N_CLASSES, N_FEATURES, REPEATS = 20, 100_000, 3
COMPARED = 2000


def numbers():
    rng = np.random.default_rng(0)
    y = np.arange(600) % N_CLASSES
    center = rng.normal(scale=0.7, size=(N_CLASSES, N_FEATURES)).astype(np.float32)
    spread = np.exp(rng.normal(scale=0.4, size=(N_CLASSES, N_FEATURES))).astype(np.float32)
    X = rng.standard_normal(size=(600, N_FEATURES), dtype=np.float32)
    for row, c in zip(X, y, strict=True):
        row *= spread[c]
        row += center[c]
    return X, y


def measured(family, X, y):
    moments = ArrayRows(X, y, N_CLASSES).moments(family)[0]
    best = dict.fromkeys(("js_gm", "jensen_shannon"), np.inf)
    for _ in range(REPEATS):
        for name in best:
            start = time.process_time()
            ranked_decision(family, moments, Smoothing(1.0), divergences.DIVERGENCES[name], size=1)
            best[name] = min(best[name], time.process_time() - start)
    densities = estimate(family, moments.select(slice(0, COMPARED)), Smoothing(1.0))
    usable = densities.usable
    natural, prior = (
        densities.natural[:, :, usable],
        np.broadcast_to(densities.prior, (N_CLASSES, usable.sum())),
    )
    scores = divergences._integrals(family, natural, prior, divergences.WIDTH)[0]
    finer = divergences._integrals(family, natural, prior, divergences.WIDTH / 4)[0]
    some = finer > divergences.NOISE
    return best, float(np.max(np.abs(scores - finer)[some] / finer[some]))


def main() -> None:
    record = {
        "command": "make bench-jensen-shannon",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("maxdisc", "numpy", "scipy")},
        "classes": N_CLASSES,
        "features": N_FEATURES,
        "threads": 1,
        "processor seconds, best of": REPEATS,
        "results": {},
    }
    for name, family, rows in (
        ("poisson", Poisson(), zipf_rows(20_000, N_FEATURES, N_CLASSES, 150)),
        ("gaussian", Gaussian(), numbers()),
    ):
        seconds, error = measured(family, *rows)
        record["results"][name] = {
            "seconds": {k: round(v, 3) for k, v in seconds.items()},
            "largest relative difference from nodes four times as dense": error,
        }
        print(
            f"{name:10} js_gm {seconds['js_gm']:7.2f} s  jensen_shannon {seconds['jensen_shannon']:7.2f} s  "
            f"within {error:.1e} of nodes four times as dense",
            flush=True,
        )
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
