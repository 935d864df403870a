"""Figures of the results; colours are those of Okabe and Ito, which all readers can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from experiments.comparing import score
from experiments.paper import COLUMNS
from experiments.records import Cells

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")


def _save(figure: Figure, path: Path) -> None:
    # The same record gives the same file: no date, no random names.
    with mpl.rc_context({"svg.hashsalt": "maxdisc", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def draw_rows(
    cells: Cells,
    rows: Sequence[str],
    ours: str,
    competitors: Sequence[str],
    titles: dict[str, str],
    figures: dict[str, dict[str, float]],
    path: Path,
) -> None:
    """Draw every method's distance to the default, row by row; the paper's best as a cross."""
    figure = Figure(figsize=(8, 0.42 * len(rows) + 1.8))
    axes = figure.subplots()
    places = np.arange(len(rows))[::-1]
    base = [100 * s.mean if (s := score(cells, row, ours)) else np.nan for row in rows]
    for i, m in enumerate(competitors):
        values = [100 * s.mean if (s := score(cells, row, m)) else np.nan for row in rows]
        marker = "os^vD<>ph*"[i % 10]
        axes.plot(np.subtract(values, base), places, marker, color=COLOURS[i % 8], alpha=0.8, label=titles[m])
    if figures:
        given = [[figures.get(row, {}).get(c, np.nan) for c in COLUMNS] for row in rows]
        best = np.fmax.reduce(given, axis=1)
        axes.plot(np.subtract(best, base), places, "x", color="black", label="best of the paper's")
    axes.axvline(0, color="#444444", linewidth=1)
    axes.set_yticks(places, rows)
    axes.set_xlabel("points ahead of the default (left of the line: behind)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.35, -0.12), ncols=2, fontsize=8, frameon=False)
    _save(figure, path)


def draw_curves(
    sizes: Sequence[int],
    curves: dict[str, list[float]],
    titles: dict[str, str],
    ours: dict[str, bool],
    path: Path,
) -> None:
    """Accuracy against K, one line for each ranking; those of this library are solid."""
    figure = Figure(figsize=(7, 4.5))
    axes = figure.subplots()
    for i, (m, values) in enumerate(curves.items()):
        style = "-" if ours[m] else "--"
        shown = 100 * np.asarray(values)
        axes.plot(sizes, shown, style, marker="o", markersize=3, color=COLOURS[i % 8], label=titles[m])
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(k) for k in sizes])
    axes.minorticks_off()
    axes.set_xlabel("features kept")
    axes.set_ylabel("accuracy, percent")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    _save(figure, path)


def draw_paths(
    shares: Sequence[float],
    curves: dict[str, dict[str, list[float]]],
    features: dict[str, int],
    titles: dict[str, str],
    path: Path,
) -> None:
    """Accuracy against K, one panel for each row, one line for each model."""
    columns = 3
    height = -(-len(features) // columns)
    figure = Figure(figsize=(9, 2.3 * height))
    panels = figure.subplots(height, columns, squeeze=False).ravel()
    for panel, row in zip(panels, features, strict=False):
        for i, (m, by_row) in enumerate(curves.items()):
            if row in by_row:
                sizes = [max(round(s * features[row]), 1) for s in shares]
                panel.plot(sizes, 100 * np.asarray(by_row[row]), color=COLOURS[i], label=titles[m])
        panel.set_xscale("log")
        panel.set_title(row, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.grid(alpha=0.3)
    for panel in panels[len(features) :]:
        panel.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower right", fontsize=8, frameon=False)
    figure.supxlabel("words kept", fontsize=9)
    figure.supylabel("accuracy, percent", fontsize=9)
    figure.tight_layout()
    _save(figure, path)
