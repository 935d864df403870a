"""Draw ``accuracy-path.svg``: held-out accuracy against the number of features, on the docstring corpus.

Run with ``python docs/pictures/accuracy_path.py``; needs the docs extra.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from maxdisc import MaxDiscClassifier
from maxdisc.cli.demo import docstring_task


def main() -> None:
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "maxdisc", "font.size": 10, "svg.fonttype": "none"})
    task = docstring_task("package")
    path = MaxDiscClassifier(evidence="raw").fit(task.X, task.y).path_
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    accuracy, error = path.mean_accuracy, path.standard_error
    axes.fill_between(
        path.sizes, accuracy - error, accuracy + error, color="#2f6db5", alpha=0.18, linewidth=0
    )
    axes.plot(path.sizes, accuracy, color="#2f6db5", linewidth=1.6)
    for rule, colour in (("best", "#c8501e"), ("one_se", "#3b8a4a")):
        size = path.best_size(rule)
        height = accuracy[path.best_position(rule)]
        axes.plot(
            [size], [height], "o", color=colour, label=f'rule="{rule}": {size:,} features, {height:.3f}'
        )
    axes.set_xscale("log")
    axes.set_xlabel("features kept, best first")
    axes.set_ylabel("held-out accuracy, 5 folds")
    axes.set_title(
        f"{task.X.shape[0]:,} docstrings, {task.X.shape[1]:,} words, {len(set(task.y))} packages: "
        "every number of features from one sweep",
        fontsize=10,
    )
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    figure.savefig(Path(__file__).with_name("accuracy-path.svg"), metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
