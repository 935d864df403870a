"""Marker genes beside scanpy's t-test and Wilcoxon: ``make bench-cells``.

On ``scanpy.datasets.pbmc68k_reduced()``, which scanpy ships: 700 cells, 765 genes, two columns of groups.
Three questions. How many of the first 20 genes of a group are the same. How well few genes tell cells apart:
of each group's ranking the first genes are taken in turn until there are 10, 20 or 40 different ones; the
ranking is made from the training folds alone, and logistic regression and Gaussian naive Bayes learn and
predict on the same folds, all methods on the same ones. How long it takes, the methods taking turns in one
run, here and on made-up counts of 4,000 cells and 2,000 genes.

"log" are the logs of normalised counts in ``raw``, "scaled" the scaled values in ``X``. The family of
densities was chosen before, on other folds (``--seed 100``) of the same cells, among those that
``--families`` compares. The result goes to ``benchmarks/results/single_cells.json``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import scanpy as sc
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from timing import best_seconds, stamp

from maxdisc.adapters.anndata import rank_genes
from maxdisc.significance.markers import DERIVED

RESULTS = Path(__file__).resolve().parent / "results" / "single_cells.json"
KEY, GROUP = "rank_genes_groups", "group"
SIZES = (10, 20, 40)
TOP = 20
PARTS = ["bulk_labels, log", "louvain, log", "bulk_labels, scaled", "louvain, scaled", "overlap", "seconds"]

Method = Callable[[anndata.AnnData], Any]


def ours(family: str = "auto") -> Method:
    return lambda adata: rank_genes(adata, GROUP, use_raw=False, family=family)


def scanpys(method: str) -> Method:
    return lambda adata: sc.tl.rank_genes_groups(adata, GROUP, method=method, use_raw=False)


METHODS: dict[str, Method] = {
    "maxdisc": ours(),
    "scanpy t-test": scanpys("t-test"),
    "scanpy t-test, overestimated variance": scanpys("t-test_overestim_var"),
    "scanpy Wilcoxon": scanpys("wilcoxon"),
}
CLASSIFIERS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200, tol=1e-3)),
    "naive Bayes": lambda: GaussianNB(var_smoothing=1e-2),
}


def cells(X: Any, groups: Any) -> anndata.AnnData:
    obs = pd.DataFrame({GROUP: pd.Categorical(groups)}, index=[f"c{i}" for i in range(X.shape[0])])
    return anndata.AnnData(X, obs, pd.DataFrame(index=[f"{j}" for j in range(X.shape[1])]))


def orders(method: Method, X: Any, groups: Any) -> list[np.ndarray]:
    """Columns of each group, best first."""
    adata = cells(X.copy(), groups)
    method(adata)
    names = adata.uns[KEY]["names"]
    return [names[group].astype(int) for group in names.dtype.names]


def in_turn(rankings: list[np.ndarray], n: int) -> list[int]:
    """The first genes of all groups, in turn, until there are n different ones."""
    chosen: dict[int, None] = {}
    for ranks in zip(*rankings, strict=True):
        for gene in ranks:
            chosen.setdefault(int(gene))
            if len(chosen) == n:
                return list(chosen)
    return list(chosen)


def accuracies(X: Any, groups: Any, methods: dict[str, Method], folds: Any) -> dict[str, Any]:
    """For each method and classifier the mean accuracy with each number of genes, and its deviation."""
    found: dict[str, dict[str, list[list[float]]]] = {m: {c: [] for c in CLASSIFIERS} for m in methods}
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    for train, test in folds.split(dense, groups):
        for name, method in methods.items():
            rankings = orders(method, X[train], groups[train])
            for called, classifier in CLASSIFIERS.items():
                row = []
                for n in SIZES:
                    A = dense[:, in_turn(rankings, n)]
                    row.append(classifier().fit(A[train], groups[train]).score(A[test], groups[test]))
                found[name][called].append(row)
    return {
        name: {
            called: {
                "mean": np.mean(rows, axis=0).round(4).tolist(),
                "deviation": np.std(rows, axis=0, ddof=1).round(4).tolist(),
            }
            for called, rows in by.items()
        }
        for name, by in found.items()
    }


def overlaps(X: Any, groups: Any) -> dict[str, float]:
    """Jaccard index of the first genes of a group by two methods, averaged over groups."""
    tops = {name: [set(o[:TOP].tolist()) for o in orders(m, X, groups)] for name, m in METHODS.items()}
    names = list(tops)
    return {
        f"{a} | {b}": round(
            float(np.mean([len(x & y) / len(x | y) for x, y in zip(tops[a], tops[b], strict=True)])), 3
        )
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    }


def made_up(n_cells: int = 4000, n_genes: int = 2000, n_groups: int = 12) -> anndata.AnnData:
    """Logs of counts, a tenth of them not zero, some genes more frequent in some groups."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, n_groups, n_cells)
    rate = rng.gamma(0.5, 0.2, n_genes) * np.where(rng.random((n_groups, n_genes)) < 0.05, 5.0, 1.0)
    X = sp.csr_matrix(np.log1p(rng.poisson(rate[groups])).astype(np.float32))
    return cells(X, groups.astype(str))


def seconds(adata: anndata.AnnData, repeats: int) -> dict[str, float]:
    """The best time of each, over that of maxdisc."""
    best = best_seconds({name: lambda m=m: m(adata) for name, m in METHODS.items()}, repeats)
    return {name: round(took, 4) for name, took in best.items()}


def show(title: str, table: dict[str, Any]) -> None:
    print(
        f"\n{title}\n| method | " + " | ".join(f"{c}, {n}" for c in CLASSIFIERS for n in SIZES) + " | mean |"
    )
    print("| --- |" + " ---: |" * (1 + len(CLASSIFIERS) * len(SIZES)))
    for name, by in table.items():
        figures = [x for c in CLASSIFIERS for x in by[c]["mean"]]
        print(
            f"| {name} | " + " | ".join(f"{x:.3f}" for x in figures) + f" | {np.mean(figures):.3f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the folds; 100 was used to choose the family")
    parser.add_argument("--repeats", type=int, default=1, help="of 5 folds")
    parser.add_argument("--turns", type=int, default=3, help="of timing")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS, help="only some of the record")
    parser.add_argument(
        "--families", action="store_true", help="compare our families alone, without a record"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pbmc = sc.datasets.pbmc68k_reduced()
    values = {"log": sp.csr_matrix(pbmc.raw.X), "scaled": pbmc.X}
    groups = {column: pbmc.obs[column].astype(str).to_numpy() for column in ("bulk_labels", "louvain")}
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=options.repeats, random_state=options.seed)
    methods = {family: ours(family) for family in DERIVED} if options.families else METHODS
    record = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for part in options.parts:
        if part == "overlap":
            found: Any = {column: overlaps(values["log"], of) for column, of in groups.items()}
            for column, pairs in found.items():
                print(f"\n{column}\n" + "\n".join(f"{pair}: {share:.3f}" for pair, share in pairs.items()))
        elif part == "seconds":
            found = {
                "pbmc68k_reduced, 700 x 765, 10 groups": seconds(
                    cells(values["log"], groups["bulk_labels"]), options.turns
                ),
                "made up, 4,000 x 2,000, 12 groups": seconds(made_up(), options.turns),
            }
            for data, times in found.items():
                ratios = (f"{m} {t:.3f} s ({t / times['maxdisc']:.2f})" for m, t in times.items())
                print(f"\n{data}: " + ", ".join(ratios))
        else:
            column, kind = part.split(", ")
            found = accuracies(values[kind], groups[column], methods, folds)
            show(f"{part}: accuracy on held-out cells", found)
        record[part] = found
    if options.families:
        return
    about = stamp("make bench-cells")
    about["versions"] |= {name: version(name) for name in ("anndata", "scanpy")}
    settings = {"sizes": SIZES, "top": TOP, "seed": options.seed, "folds": 5, "repeats": options.repeats}
    kept = {part: record[part] for part in PARTS if part in record}
    RESULTS.write_text(json.dumps(about | settings | kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
