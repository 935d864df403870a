"""Pages of the documentation, written from the records alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.comparing import Comparison, compared, methods_of, score, seeds_of
from experiments.data import ROOT
from experiments.paper import COLUMNS, EXACT, GENE_TABLE, TEXT_TABLE
from experiments.records import Cells, Record, write_whole
from experiments.tables import TABLES

BENCHMARKS = ROOT / "benchmarks" / "results"

#: Competitors that the default is compared with; all other methods are in the second table.
RIVALS = {"text": ("linear_svc", "logistic", "multinomial_nb", "complement_nb"), "genes": ("svm", "svm_all")}
LEVEL = 0.05
OURS = "default"

PLAIN_TITLES = {
    "posts": "Text, posts",
    "bodies": "Text, bodies",
    "genes": "Genes",
}

INTRODUCTIONS = {
    "posts": "The paper's text table: 20 Newsgroups, full posts with their headers, words of two letters "
    "or more that are in more than two documents, two folds.",
    "bodies": "The same documents without their headers, words of three letters or more that occur more than "
    "twice: the harder table, since headers often name the group.",
    "genes": "The paper's gene table: ten folds, everything that is open chosen on inner folds. The "
    "sets lung and gcm have the paper's samples but an eighth of its genes or fewer: the paper's figures for "
    "them are shown, not compared.",
}


def write_pages(results: Path, out: Path) -> list[Path]:
    """All pages for which there are records; returns the files written."""
    out.mkdir(parents=True, exist_ok=True)
    written, linked = [], []
    for name, page in PAGES.items():
        text = page(results, out)
        if text is not None:
            write_whole(out / f"{name}.md", text)
            written.append(out / f"{name}.md")
            linked.append(name)
    links = "\n".join(linked)
    index = (
        "# Results\n\nEvery page here is written by `python -m experiments tables` from the records in "
        "`experiments/results`, which `make paper` makes (`make paper-quick`: two repeats, fewer methods). "
        "All methods see the same outer folds; what a method leaves open is chosen on inner folds. The "
        "text models were settled on other folds before these tables were run. The gene table was run twice: "
        "a first, partial run on its folds showed that the search took models flattered by their own "
        "parameters, whereupon held-out losses were cross-fitted.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{links}\n```\n"
    )
    write_whole(out / "index.md", index)
    return [*written, out / "index.md"]


# ------------------------------------------------------------------ pieces


def percent(value: float | None, digits: int = 2) -> str:
    return "" if value is None or np.isnan(value) else f"{100 * value:.{digits}f}"


def number(value: float | None, digits: int = 2) -> str:
    return "" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    return "\n".join(lines)


def bold_best(texts: Sequence[str]) -> list[str]:
    """The largest number in bold, where it is shown several times all of them."""
    values = [float(text) if text else -np.inf for text in texts]
    best = max(values, default=-np.inf)
    return [f"**{t}**" if t and v == best else t for t, v in zip(texts, values, strict=True)]


def provenance_note(record: Record, cells: Cells) -> str:
    """Seeds, commands, dates and versions of what a page shows."""
    seeds = seeds_of(cells)
    runs = record.runs()
    commands = dict.fromkeys(f"`{run['command']}`" for run in runs)
    dates = sorted({run["date"][:10] for run in runs})
    versions = sorted({", ".join(f"{k} {v}" for k, v in run["versions"].items()) for run in runs})
    return (
        f"Outer folds of seeds {', '.join(map(str, seeds))}. "
        f"Record: `{_short(record.path)}`; "
        f"{' and '.join(dates)}; {'; '.join(versions)}. Commands: {', '.join(commands)}."
    )


def _short(path: Path) -> str:
    """A path as seen from the checkout; elsewhere its name is enough."""
    path = path.resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def _few_repeats(cells: Cells, rows: Sequence[str], methods: Sequence[str], titles: dict[str, str]) -> str:
    """Which methods were repeated less often than others, or not on all rows."""
    repeats = {m: min((s.n_repeats if (s := score(cells, row, m)) else 0) for row in rows) for m in methods}
    most = max(repeats.values(), default=0)
    few = [f"{titles[m]} ({n})" for m, n in repeats.items() if n < most]
    return f" Repeats: {most}" + (f", but fewer for {', '.join(few)}." if few else ".")


# ------------------------------------------------------------------ accuracy tables


def comparable(kind: str, row: str) -> bool:
    """Whether the paper's figures are of the same data."""
    return kind == "text" or row in EXACT


def verdict(difference: float, comparison: Comparison | None) -> str:
    """In words: ahead, level or lost, and whether the loss to a method run here is significant."""
    if comparison is not None and comparison.difference < 0 and comparison.p < LEVEL:
        return "**lost, significant**"
    if difference < 0:
        return "lost"
    return "ahead" if difference > 0 else "level"


def accuracy_page(name: str) -> Callable[[Path, Path], str | None]:
    def page(results: Path, out: Path) -> str | None:
        record = Record(results / f"{name}.json")
        cells = record.cells()
        if not cells:
            return None
        table = TABLES[name]
        # Only posts are the paper's documents.
        figures = {"posts": TEXT_TABLE, "genes": GENE_TABLE}.get(name, {})
        methods = methods_of(cells, table.methods)
        titles = {m: table.methods[m].title for m in methods}
        rows = [row for row in table.rows if any(key.row == row for key in cells)]
        parts = [f"# {PLAIN_TITLES[name]}", INTRODUCTIONS[name], provenance_note(record, cells)]
        rivals = [m for m in RIVALS[table.kind] if m in methods]
        if OURS in methods and rivals:
            parts += _verdicts(name, cells, rows, rivals, titles, figures)
            from experiments.figures import draw_rows

            competitors = [m for m in methods if not table.methods[m].ours]
            same = {row: figures[row] for row in figures if comparable(table.kind, row)}
            draw_rows(cells, rows, OURS, competitors, titles, same, out / f"{name}.svg")
            parts.append(f"![Accuracy of each method on each row]({name}.svg)")
        else:
            parts.append("The default was not run yet.")
        parts.append("## All methods")
        parts.append(
            "Mean accuracy in percent, with the deviation of the repeats' means; the best of a row is bold."
            + _few_repeats(cells, rows, methods, titles)
        )
        parts.append(_all_methods(cells, rows, methods, titles))
        if figures:
            parts.append("## The paper's figures")
            parts.append(_paper_figures(cells, rows, figures, name))
        return "\n\n".join(parts) + "\n"

    return page


def _verdicts(
    name: str,
    cells: Cells,
    rows: Sequence[str],
    rivals: Sequence[str],
    titles: dict[str, str],
    figures: dict[str, dict[str, float]],
) -> list[str]:
    """Return the default compared with the best of the columns of the paper and of the rivals, by row."""
    table = TABLES[name]
    tests = {c.row: c for c in compared(cells, rows, OURS, rivals, table.n_folds)}
    body, ahead, lost = [], 0, []
    for row in rows:
        ours = score(cells, row, OURS)
        if ours is None or row not in tests:
            continue
        test = tests[row]
        best = score(cells, row, test.rival)
        paper = max((figures[row][c] for c in COLUMNS if c in figures.get(row, {})), default=float("nan"))
        counts = row in figures and comparable(table.kind, row)
        bar = max(100 * best.mean, paper) if counts else 100 * best.mean
        difference = round(100 * ours.mean - bar, 6)
        said = verdict(difference, test)
        ahead += difference >= 0
        if "significant" in said:
            lost.append(row)
        shown = number(paper) if counts or np.isnan(paper) else f"({number(paper)})"
        body.append(
            [
                row,
                *([shown] if figures else []),
                f"{titles[test.rival].split(',')[0].split(';')[0]} {percent(best.mean)}",
                f"{percent(ours.mean)} ± {percent(ours.spread)}",
                f"{difference:+.2f}",
                f"{100 * test.difference:+.2f} ({test.p:.3f})",
                said,
            ]
        )
    head = [
        "row",
        *(["best of the paper's"] if figures else []),
        "best competitor here",
        "default",
        "to the best",
        "to the competitor (p)",
        "",
    ]
    means = {m: _mean_over(cells, rows, m) for m in (OURS, *rivals)}
    best = max(rivals, key=lambda m: -1 if means[m] is None else means[m])
    sums = f"At or above the best on {ahead} of {len(body)} rows, {len(lost)} significant losses. "
    sums += f"Mean over the rows: {percent(means[OURS])}; {titles[best]}: {percent(means[best])}."
    if name == "genes":
        exact = [row for row in rows if row in EXACT]
        six = {m: _mean_over(cells, exact, m) for m in (OURS, *rivals)}
        sums += f" Over the sets with all genes: {percent(six[OURS])}; " + ", ".join(
            f"{titles[m]} {percent(six[m])}" for m in rivals
        )
        sums += "."
    explained = (
        f"Competitors here are {'; '.join(titles[m] for m in rivals)}. The best of them is taken for each "
        "row. Differences are in points; p is that of the corrected resampled t-test (Nadeau and Bengio) of "
        "paired differences on the same folds, adjusted over the rows (Holm); a loss is significant below "
        f"{LEVEL}. The paper gives one figure for each row, which cannot be tested."
    )
    return ["## The default compared with the best", sums, markdown(head, body), explained]


def _mean_over(cells: Cells, rows: Sequence[str], method: str) -> float | None:
    """Mean of a method over rows, if it was run on all of them."""
    scores = [score(cells, row, method) for row in rows]
    return None if not scores or any(s is None for s in scores) else float(np.mean([s.mean for s in scores]))


def _all_methods(cells: Cells, rows: Sequence[str], methods: Sequence[str], titles: dict[str, str]) -> str:
    numbers = {
        row: [percent(s.mean if (s := score(cells, row, m)) else None) for m in methods] for row in rows
    }
    body = []
    for row in rows:
        spreads = [percent(s.spread if (s := score(cells, row, m)) else None) for m in methods]
        marked = bold_best(numbers[row])
        body.append([row, *(f"{t} ± {d}" if d else t for t, d in zip(marked, spreads, strict=True))])
    body.append(["mean", *bold_best([percent(_mean_over(cells, rows, m)) for m in methods])])
    seconds = [score(cells, row, m, "seconds") for row in rows for m in methods]
    table = np.array([np.nan if s is None else s.mean for s in seconds]).reshape(len(rows), len(methods))
    with np.errstate(all="ignore"):
        body.append(["seconds for a fold", *(number(v, 1) for v in table.mean(axis=0))])
    return markdown(["row", *(titles[m] for m in methods)], body)


def _paper_figures(cells: Cells, rows: Sequence[str], figures: dict[str, dict[str, float]], name: str) -> str:
    here = {"SVM": "libsvm" if name == "posts" else "svm_all", "DME": "dme", "MeMd-J": "memd_j"}
    here["MeMd-JS"] = "memd_js"
    columns = [c for c in COLUMNS if any(c in figures[row] for row in rows)]
    body = []
    for row in rows:
        line = [row, f"{figures[row]['rows']}", f"{figures[row]['features']}"]
        for column in columns:
            ours = score(cells, row, here[column])
            line += [number(figures[row].get(column)), percent(ours.mean if ours else None)]
        body.append(line)
    line = ["mean", "", ""]
    for column in columns:
        # Where the paper gives one figure for both algorithms it is the figure of both.
        given = [figures[row].get(column, figures[row].get("MeMd-J", np.nan)) for row in rows]
        line += [number(float(np.mean(given))), percent(_mean_over(cells, rows, here[column]))]
    body.append(line)
    head = ["row", "samples", "features", *(f"{c}, {where}" for c in columns for where in ("paper", "here"))]
    note = (
        "For two classes MeMd-J and MeMd-JS rank alike, and the paper gives one figure for both; the mean of "
        "its MeMd-JS takes that figure there."
    )
    return markdown(head, body) + "\n\n" + note


# ------------------------------------------------------------------ probabilities


CALIBRATION = (
    "raw",
    "calibrated",
    "refined",
    "default",
    "automatic",
    "calibrated_nb",
    "multinomial_nb",
    "logistic",
)


def calibration_page(results: Path, out: Path) -> str | None:
    del out
    parts = [
        "# Are probabilities what they say?",
        "Log-loss, and expected calibration error (15 bins of equal width, of the probability of the "
        "predicted class), over the rows of the text tables. Lower is better.",
    ]
    found = False
    for name in ("posts", "bodies"):
        record = Record(results / f"{name}.json")
        cells, table = record.cells(), TABLES[name]
        methods = [m for m in CALIBRATION if any(key.method == m and "ece" in cells[key] for key in cells)]
        if not methods:
            continue
        found = True
        rows = [row for row in table.rows if any(key.row == row for key in cells)]
        parts += [f"## {PLAIN_TITLES[name]}", provenance_note(record, cells)]
        for value, title, show in (
            ("log_loss", "Log-loss", lambda v: number(v, 3)),
            ("ece", "Expected calibration error, percent", percent),
        ):
            grid = {
                m: [s.mean if (s := score(cells, row, m, value)) else np.nan for row in rows] for m in methods
            }
            body = [[row, *(show(grid[m][i]) for m in methods)] for i, row in enumerate(rows)]
            body.append(["mean", *(show(float(np.mean(grid[m]))) for m in methods)])
            head = ["row", *(table.methods[m].title for m in methods)]
            parts += [f"### {title}", markdown(head, body)]
    return "\n\n".join(parts) + "\n" if found else None


# ------------------------------------------------------------------ selection


def selection_page(results: Path, out: Path) -> str | None:
    from experiments.figures import draw_curves

    parts = [
        "# Feature selection as such",
        "The best K features by each ranking of the training rows, given to classifiers of other kinds with "
        "fixed settings: naive Bayes, a linear SVM and logistic regression. Mean accuracy in percent over "
        "rows and folds.",
    ]
    found = False
    for name, title in (("selection", "Words of posts"), ("gene_selection", "Genes")):
        record = Record(results / f"{name}.json")
        cells, table = record.cells(), TABLES[name]
        methods = methods_of(cells, table.methods)
        if not methods:
            continue
        found = True
        means = selection_means(cells, methods)
        sizes = sorted({size for by_size in means.values() for _, size in by_size})
        models = list(dict.fromkeys(model for by_size in means.values() for model, _ in by_size))
        parts += [f"## {title}", provenance_note(record, cells)]
        overall = {m: [float(np.mean([means[m][c, k] for c in models])) for k in sizes] for m in methods}
        titles = {m: table.methods[m].title for m in methods}
        blocks = [("All three classifiers", overall)] + [
            (model[0].upper() + model[1:], {m: [means[m][model, size] for size in sizes] for m in methods})
            for model in models
        ]
        for block, values in blocks:
            columns = np.array([[round(100 * v, 2) for v in values[m]] for m in methods])
            body = []
            for i, m in enumerate(methods):
                texts = [f"{v:.2f}" for v in columns[i]]
                texts = [
                    f"**{t}**" if v == columns[:, j].max() else t
                    for j, (t, v) in enumerate(zip(texts, columns[i], strict=True))
                ]
                body.append([titles[m] + (" (maxdisc)" if table.methods[m].ours else ""), *texts])
            parts += [f"### {block}", markdown(["ranking", *(f"K={k}" for k in sizes)], body)]
        parts.append(_selection_summary(overall, sizes, {m: table.methods[m].ours for m in methods}, titles))
        draw_curves(sizes, overall, titles, {m: table.methods[m].ours for m in methods}, out / f"{name}.svg")
        parts.append(f"![Accuracy against K, mean of three classifiers]({name}.svg)")
    return "\n\n".join(parts) + "\n" if found else None


def selection_means(cells: Cells, methods: Sequence[str]) -> dict[str, dict[tuple[str, int], float]]:
    """Mean accuracy by ranking, then by classifier and K, over the rows and folds that all rankings have."""
    by_fold: dict[tuple[str, int, int], dict[str, dict[str, dict[str, float]]]] = {}
    for key, cell in cells.items():
        by_fold.setdefault((key.row, key.seed, key.fold), {})[key.method] = cell["accuracy"]
    whole = [fold for fold in by_fold.values() if all(m in fold for m in methods)]
    # Rows have equally many folds, so that a mean over folds is one over rows.
    means: dict[str, dict[tuple[str, int], float]] = {m: {} for m in methods}
    for m in methods:
        gathered: dict[tuple[str, int], list[float]] = {}
        for fold in whole:
            for model, by_size in fold[m].items():
                for size, accuracy in by_size.items():
                    gathered.setdefault((model, int(size)), []).append(accuracy)
        means[m] = {k: float(np.mean(v)) for k, v in gathered.items()}
    return means


def _selection_summary(
    overall: dict[str, list[float]], sizes: Sequence[int], ours: dict[str, bool], titles: dict[str, str]
) -> str:
    """The best ranking of the library beside the usual scores, at every K."""
    usual = [m for m in ("chi2", "f_classif", "mutual_info") if m in overall]
    body = []
    for j, size in enumerate(sizes):
        best = max((m for m in overall if ours[m]), key=lambda m: overall[m][j], default=None)
        if best is None or not usual:
            return ""
        rival = max(usual, key=lambda m: overall[m][j])
        difference = 100 * (overall[best][j] - overall[rival][j])
        aware = [
            f"{100 * (overall[m][j] - overall[rival][j]):+.2f}" if m in overall else ""
            for m in ("redundancy", "redundancy_js", "redundancy_rao")
        ]
        said = "ahead" if round(difference, 2) > 0 else "level" if round(difference, 2) == 0 else "behind"
        body.append([f"K={size}", titles[best], titles[rival], f"{difference:+.2f}", *aware, said])
    head = ["", "best of maxdisc", "best of chi2, f_classif, information", "points"]
    head += ["redundancy 1, js_gm", "redundancy 1, jensen_shannon", "redundancy 1, rao", ""]
    return "### Beside the usual scores\n\n" + markdown(head, body)


def stability_page(results: Path, out: Path) -> str | None:
    del out
    parts = [
        "# How stable is the choice?",
        "Each ranking on four random halves of the rows: how much the best K features agree. Jaccard is the "
        "mean share that two choices have in common; Nogueira's index is 1 for equal choices and 0 on "
        "average for random ones.",
    ]
    found = False
    for name, title in (("stability", "Words of posts"), ("gene_stability", "Genes")):
        record = Record(results / f"{name}.json")
        cells, table = record.cells(), TABLES[name]
        methods = methods_of(cells, table.methods)
        if not methods:
            continue
        found = True
        parts += [f"## {title}", provenance_note(record, cells)]
        sizes = sorted({int(k) for cell in cells.values() for k in cell["nogueira"]})
        body = []
        for m in methods:
            line = [table.methods[m].title]
            for value in ("nogueira", "jaccard"):
                for size in sizes:
                    of_method = [cell[value] for key, cell in cells.items() if key.method == m]
                    got = [by_size[str(size)] for by_size in of_method if str(size) in by_size]
                    line.append(f"{np.mean(got):.2f}" if got else "")
            body.append(line)
        head = ["ranking", *(f"{v}, K={k}" for v in ("Nogueira", "Jaccard") for k in sizes)]
        parts.append(markdown(head, body))
    return "\n\n".join(parts) + "\n" if found else None


# ------------------------------------------------------------------ accuracy against K


def paths_page(results: Path, out: Path) -> str | None:
    from experiments.figures import draw_paths

    record = Record(results / "paths.json")
    cells, table = record.cells(), TABLES["paths"]
    methods = methods_of(cells, table.methods)
    if not methods:
        return None
    rows = [row for row in table.rows if any(key.row == row for key in cells)]
    shares = sorted({float(s) for cell in cells.values() for s in cell["accuracy"]})
    curves: dict[str, dict[str, list[float]]] = {m: {} for m in methods}
    features: dict[str, int] = {}
    for row in rows:
        for m in methods:
            got = [cell for key, cell in cells.items() if (key.row, key.method) == (row, m)]
            if got:
                curves[m][row] = [float(np.mean([c["accuracy"][str(s)] for c in got])) for s in shares]
                features[row] = got[0]["features"]
    means = {m: np.mean(list(curves[m].values()), axis=0) for m in methods}
    titles = {m: table.methods[m].title for m in methods}
    body = [[titles[m], *(percent(v) for v in means[m])] for m in methods]
    cost = [
        [titles[m], *(f"{100 * (means[m][-1] - means[m][shares.index(s)]):.2f}" for s in (0.1, 0.01))]
        for m in methods
    ]
    draw_paths(shares, curves, features, titles, out / "accuracy-against-k.svg")
    parts = [
        "# Accuracy against the number of words",
        "The plot from which the paper chooses K, on held-out rows: the best words by the ranking of the "
        "training rows are kept, the rest left out. Posts, mean over the rows, accuracy in percent.",
        provenance_note(record, cells),
        markdown(["model", *(f"{100 * s:g} %" for s in shares)], body),
        "What it costs, in points, to keep a part of the words:",
        markdown(["model", "10 %", "1 %"], cost),
        "![Accuracy against the number of words, for each row](accuracy-against-k.svg)",
    ]
    return "\n\n".join(parts) + "\n"


# ------------------------------------------------------------------ complexity


def complexity_page(results: Path, out: Path) -> str | None:
    del results, out
    file = BENCHMARKS / "complexity.json"
    if not file.exists():
        return None
    stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    body = []
    for name, row in stored["rows"].items():
        exponents = row["exponents"]
        phases = list(dict.fromkeys(phase for by_phase in exponents.values() for phase in by_phase))
        for i, phase in enumerate(phases):
            order = row.get("paper", {}).get(phase, "")
            found = [number(exponents[axis].get(phase)) if axis in exponents else "" for axis in "NDC"]
            body.append(["" if i else name, phase, order, *found])
    versions = ", ".join(f"{k} {v}" for k, v in stored["versions"].items())
    head = ["algorithm", "phase", "the paper's order", "N", "D", "C"]
    return (
        "# Complexity\n\nThe paper's table of complexities, and the exponents that were measured: the slope "
        "of log time over log size, for rows N, features D and classes C. Where they differ, and why, is on "
        "[its own page](../complexity.md).\n\n"
        f"Record: `benchmarks/results/complexity.json`; {stored['date']}; "
        f"python {stored['python']}, {versions}. "
        f"Command: `{stored['command']}`.\n\n" + markdown(head, body) + "\n"
    )


PAGES: dict[str, Callable[[Path, Path], str | None]] = {
    "text-posts": accuracy_page("posts"),
    "text-bodies": accuracy_page("bodies"),
    "genes": accuracy_page("genes"),
    "accuracy-against-k": paths_page,
    "selection": selection_page,
    "stability": stability_page,
    "calibration": calibration_page,
    "complexity": complexity_page,
}
