"""False discoveries and power at q = 0.1, beside the analysis of variance and Kruskal-Wallis with the same q.

Run with ``make bench-fdr``. 10,000 features of which classes differ in 50, two classes of N / 2 rows; every
figure is a mean over replications. "moments" is ``ranking_table()``, "rows" is ``ranking_table(X, y)``.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.stats as ss

from maxdisc import MaxDiscClassifier

RESULTS = Path(__file__).resolve().parent / "results" / "false_discoveries.json"
N_NOISE, N_REAL, Q = 10_000, 50, 0.1
ROWS = (60, 100, 400)


def shifted(draw):
    """Real features are moved in one class, less where there are more rows."""
    return lambda rng, shape, effect: draw(rng, shape) + effect


def scaled(draw):
    return lambda rng, shape, effect: draw(rng, shape) * np.exp(effect)


LAWS = {
    "Gaussian": ("gaussian", shifted(lambda rng, shape: rng.normal(size=shape))),
    "Student t, 3 df": ("gaussian", shifted(lambda rng, shape: rng.standard_t(3, shape))),
    "lognormal": ("gaussian", scaled(lambda rng, shape: rng.lognormal(size=shape))),
    "exponential": ("exponential", scaled(lambda rng, shape: rng.exponential(size=shape))),
    "gamma, shape 2": ("gamma", scaled(lambda rng, shape: rng.gamma(2.0, size=shape))),
    "Poisson, mean 1": ("poisson", lambda rng, shape, effect: rng.poisson(np.exp(effect), shape)),
    "Poisson, mean 0.1": ("poisson", lambda rng, shape, effect: rng.poisson(0.1 * np.exp(2 * effect), shape)),
    "negative binomial, mean 1, variance 3": (
        "poisson",
        lambda rng, shape, effect: rng.poisson(rng.gamma(0.5, 2 * np.exp(1.5 * effect), shape)),
    ),
}


def data(law, n_rows, seed):
    rng, y = np.random.default_rng(seed), np.arange(n_rows) % 2
    effect = np.where(np.arange(N_NOISE + N_REAL) < N_REAL, 1.5 * np.sqrt(60 / n_rows), 0.0) * y[:, None]
    return LAWS[law][1](rng, effect.shape, effect).astype(float), y


def judged(found):
    """Share of false ones among those found, and share of the real ones that were."""
    return float(found[N_REAL:].sum() / max(found.sum(), 1)), float(found[:N_REAL].mean())


def by_moments(X, y, family):
    return _by_table(X, y, family)


def by_rows(X, y, family):
    return _by_table(X, y, family, X, y)


def _by_table(X, y, family, *rows):
    model = MaxDiscClassifier(family, n_features="all", smoothing=1.0, evidence="raw").fit(X, y)
    table, q = model.ranking_table(*rows), np.empty(X.shape[1])
    q[model.ranking_] = table["q"]
    return q <= Q


def _adjusted(p):
    return ss.false_discovery_control(np.nan_to_num(p, nan=1.0)) <= Q


METHODS = {
    "moments": by_moments,
    "rows": by_rows,
    "f_oneway": lambda X, y, _: _adjusted(ss.f_oneway(X[y == 0], X[y == 1]).pvalue),
    "kruskal": lambda X, y, _: _adjusted(ss.kruskal(X[y == 0], X[y == 1]).pvalue),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=6)
    parser.add_argument("--laws", nargs="+", default=list(LAWS), choices=list(LAWS))
    parser.add_argument("--no-record", action="store_true", help="do not store the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start, results = time.perf_counter(), []
    print(f"{'':38} {'N':>4}  " + "  ".join(f"{name:>12}" for name in METHODS) + "   (false / power)")
    for law in options.laws:
        for n_rows in ROWS:
            found = {name: [] for name in METHODS}
            for seed in range(options.replications):
                X, y = data(law, n_rows, seed)
                for name, method in METHODS.items():
                    if name != "moments" or LAWS[law][0] != "gamma":
                        found[name].append(judged(method(X, y, LAWS[law][0])))
            means = {name: np.mean(pairs, axis=0).tolist() for name, pairs in found.items() if pairs}
            shown = {name: f"{false:.3f} / {power:.2f}" for name, (false, power) in means.items()}
            cells = [f"{shown.get(name, ''):>12}" for name in METHODS]
            print(f"{law:38} {n_rows:4}  " + "  ".join(cells), flush=True)
            results.append({"law": law, "rows": n_rows, "false, power": means})
    record = {
        "command": "make bench-fdr",
        "q": Q,
        "noise": N_NOISE,
        "real": N_REAL,
        "replications": options.replications,
        "results": results,
        "seconds": round(time.perf_counter() - start),
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("maxdisc", "numpy", "scipy", "scikit-learn")},
    }
    if not options.no_record:
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
