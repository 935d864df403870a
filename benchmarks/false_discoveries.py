"""False discoveries and power at q = 0.1, beside the analysis of variance and Kruskal-Wallis with the same q.

Run with ``make bench-fdr``. 10,000 features of which classes differ in 50, two classes of N / 2 rows; every
figure is a mean over replications, with its standard error in the record. "moments" is ``ranking_table()``,
"rows" is ``ranking_table(X, y)``. The result goes to ``benchmarks/results/false_discoveries.json`` and, as a
table, to ``docs/how-to/ranking.md``; ``--page`` writes only the latter, from the record alone. Rows of the
record that are not measured again stay as they are. ``--permutation FIRST LAST`` draws more data sets, with
these seeds, for p-values by permutation alone.
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
from maxdisc.families import FAMILIES
from maxdisc.significance.permutation import permuted_p_values

RESULTS = Path(__file__).resolve().parent / "results" / "false_discoveries.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "ranking.md"
BEGIN, END = "<!-- false discoveries: begin -->", "<!-- false discoveries: end -->"
N_NOISE, N_REAL, Q = 10_000, 50, 0.1
ROWS = (60, 100, 400)
PACKAGES = ("maxdisc", "numpy", "scipy", "scikit-learn")


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


def by_table(X, y, family, *rows):
    model = MaxDiscClassifier(family, n_features="all", smoothing=1.0, evidence="raw").fit(X, y)
    table, q = model.ranking_table(*rows), np.empty(X.shape[1])
    q[model.ranking_] = table["q"]
    return q <= Q


def _adjusted(p):
    return ss.false_discovery_control(np.nan_to_num(p, nan=1.0)) <= Q


METHODS = {
    "moments": by_table,
    "rows": lambda X, y, family: by_table(X, y, family, X, y),
    "f_oneway": lambda X, y, _: _adjusted(ss.f_oneway(X[y == 0], X[y == 1]).pvalue),
    "kruskal": lambda X, y, _: _adjusted(ss.kruskal(X[y == 0], X[y == 1]).pvalue),
}


def summed_up(pairs):
    """Means of false discoveries and power, and the standard error of the first."""
    pairs = np.array(pairs)
    error = pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return {
        "false": round(float(pairs[:, 0].mean()), 4),
        "its standard error": round(float(error[0]), 4),
        "power": round(float(pairs[:, 1].mean()), 4),
    }


def by_permutation(law, n_rows, first, last):
    """False discoveries of p-values by permutation, on data sets with these seeds."""
    pairs = []
    for seed in range(first, last + 1):
        X, y = data(law, n_rows, seed)
        pairs.append(judged(_adjusted(permuted_p_values(FAMILIES[LAWS[law][0]], X, y, 2))))
    return {
        "law": law,
        "rows": n_rows,
        "seeds": [first, last],
        **summed_up(pairs),
        "date": date.today().isoformat(),
    }


def table_of(record):
    """The page's part, from the record alone."""
    counts = sorted({run["replications"] for run in record["results"]})
    many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lines = [
        f"{record['noise']:,} features in which two classes do not differ and {record['real']} in which they "
        f"do; false discoveries (± one standard error) / share of the {record['real']}\nfound at "
        f"q ≤ {record['q']}, "
        f"means over {many} replications. `{record['command']}` prints it, and "
        "`benchmarks/results/false_discoveries.json` has it:",
        "",
        "| features | N | moments | rows | `f_oneway` | `kruskal` |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    before = None
    for run in record["results"]:
        cells = [_cell(run["by method"].get(name)) for name in METHODS]
        law = "" if run["law"] == before else run["law"]
        lines.append(f"| {law} | {run['rows']} | " + " | ".join(cells) + " |")
        before = run["law"]
    for run in record.get("by permutation alone", []):
        first, last = run["seeds"]
        lines += [
            "",
            f"{run['law']}, N = {run['rows']}, by permutation on {last - first + 1} data sets more: "
            f"{run['false']:.3f} ± {run['its standard error']:.3f} / {run['power']:.2f}",
            f"(`benchmarks/false_discoveries.py --laws '{run['law']}' --rows {run['rows']} "
            f"--permutation {first} {last}`).",
        ]
    return "\n".join(lines)


def _cell(found):
    if found is None:
        return ""
    return f"{found['false']:.3f} ± {found['its standard error']:.3f} / {found['power']:.2f}"


def written(page, record):
    """The page with the table in its place."""
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    return f"{head}{BEGIN}\n\n{table_of(record)}\n\n{END}{tail}"


def measured(law, n_rows, replications):
    """Every method on one kind of features."""
    found = {name: [] for name in METHODS}
    for seed in range(replications):
        X, y = data(law, n_rows, seed)
        for name, method in METHODS.items():
            # Gamma has no p-values from moments.
            if name != "moments" or LAWS[law][0] != "gamma":
                found[name].append(judged(method(X, y, LAWS[law][0])))
    return {name: summed_up(pairs) for name, pairs in found.items() if pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=20, help="at least 2")
    parser.add_argument("--laws", nargs="+", default=list(LAWS), choices=list(LAWS))
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS), choices=ROWS)
    parser.add_argument("--permutation", nargs=2, type=int, metavar=("FIRST", "LAST"), help="seeds of data")
    parser.add_argument("--no-record", action="store_true", help="do not store the results")
    parser.add_argument("--page", action="store_true", help="write the page from the record, and no more")
    options = parser.parse_args()
    if options.page:
        record = json.loads(RESULTS.read_text(encoding="utf-8"))
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
        return
    warnings.simplefilter("ignore")
    if options.permutation:
        for law in options.laws:
            for n_rows in options.rows:
                run = by_permutation(law, n_rows, *options.permutation)
                print(json.dumps(run), flush=True)
                if not options.no_record:
                    store(run, "by permutation alone")
        return
    print(f"{'':38} {'N':>4}  " + "  ".join(f"{name:>12}" for name in METHODS) + "   (false / power)")
    for n_rows in options.rows:
        for law in options.laws:
            start = time.perf_counter()
            found = measured(law, n_rows, options.replications)
            shown = {name: f"{one['false']:.3f} / {one['power']:.2f}" for name, one in found.items()}
            cells = [f"{shown.get(name, ''):>12}" for name in METHODS]
            print(f"{law:38} {n_rows:4}  " + "  ".join(cells), flush=True)
            run = {
                "law": law,
                "rows": n_rows,
                "replications": options.replications,
                "by method": found,
                "seconds": round(time.perf_counter() - start),
                "date": date.today().isoformat(),
            }
            if not options.no_record:
                store(run)


def store(run, part="results"):
    """Put what was measured in its place in the record, and on the page."""
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    runs = {(one["law"], one["rows"]): one for one in [*before.get(part, []), run]}
    record = {
        "command": "make bench-fdr",
        "q": Q,
        "noise": N_NOISE,
        "real": N_REAL,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        **{key: before[key] for key in ("results", "by permutation alone") if key in before},
        part: [runs[law, n] for law in LAWS for n in ROWS if (law, n) in runs],
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


if __name__ == "__main__":
    main()
